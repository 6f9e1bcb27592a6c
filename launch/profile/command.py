"""`smpc profile`: a job's protocol on made-up data of several sizes, and where its time, bytes and memory go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from launch.job import load_job
from launch.outputs import reserved, write_folder
from launch.profile.measuring import measure
from launch.profile.sizes import backends, sizes
from launch.profile.writing import as_csv, as_figure, as_text
from launch.reproduce.figure import check_can_draw, draw


def profile(path: Path, out: Path, *, vary: Sequence[str], backend: str, repeats: int, run_up_to: int) -> str:
    """Write profile.csv and profile.png into the new folder `out`; the table for people."""
    check_can_draw()
    task = load_job(path).task
    wanted, names = sizes(vary, task.SIZES), backends(backend, task.BACKENDS)
    with reserved(out):
        costs = measure(task, wanted, names, repeats=repeats, run_up_to=run_up_to)
        write_folder(out, {"profile.csv": as_csv(costs), "profile.png": draw(as_figure(costs))})
    return f"{as_text(costs)}\n\n{out}: profile.csv, profile.png"
