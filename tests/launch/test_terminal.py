"""Lines for people: who cannot be told anything any more still gets its results."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import launch
from launch import participant
from launch.job import load_job
from launch.progress import Progress
from launch.tasks.split import SplitTask
from launch.terminal import tell
from tests.launch.jobs import write_job
from tests.launch.test_split_job import split_job, write_tables

AFTER_A_CHARGE = ("participant.py", "progress.py", "outputs.py", "tasks/*.py")


def test_a_full_disk_behind_the_terminal_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr(sys, "stderr", TextIOWrapper(full, write_through=True))
        with pytest.raises(OSError, match="No space left"):
            print("a", file=sys.stderr)
        tell("a: a (record): epsilon 1 of 2 spent")
        Progress("a").say("done")
        monkeypatch.undo()


def test_nothing_that_runs_after_a_charge_prints_otherwise() -> None:
    folder = Path(launch.__file__).parent if launch.__file__ else Path(launch.__path__[0])
    files = [path for pattern in AFTER_A_CHARGE for path in folder.glob(pattern)]
    assert len(files) > 10
    assert not [path for path in files if re.search(r"\bprint\((?!json)", path.read_text())]


def test_a_participant_tells_its_progress_until_its_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`smpc run` takes who says nothing for stopped."""
    told: list[Any] = []

    class Watched(Progress):
        @contextmanager
        def watch(self, network: Any) -> Iterator[None]:
            told.append("watch")
            yield
            told.append("end")

    write_tables(tmp_path)
    job = load_job(write_job(tmp_path, split_job()))
    monkeypatch.setattr(participant, "Contexts", lambda *_: None)
    monkeypatch.setattr(participant, "join", lambda *_, **__: (nullcontext(), None))
    monkeypatch.setattr(SplitTask, "run", lambda *_: {"cost.json": "{}"})
    monkeypatch.setattr(participant, "write_folder", lambda *_: told.append("written"))
    nowhere: Any = None
    endpoints: Any = SimpleNamespace(certificates={}, addresses={}, public_facts=dict)
    identity: Any = SimpleNamespace(name="a")
    participant.take_part(job, identity, endpoints, lambda: nowhere, tmp_path / "out", Watched("a"))
    assert told == ["watch", "written", "end"]
