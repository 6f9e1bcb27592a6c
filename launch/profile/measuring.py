"""Runs a trial again and again, in the participants' processes or in the clear, and takes down what it costs.

Parties and server are processes of this machine that live through all numbers of rows, so what it costs to start them
is not counted. The smallest size is run once before.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from launch.pool import Pool
from launch.profile.cost import Cost
from launch.tasks.task import Task
from launch.tasks.trial import CLEAR, Trial
from smpc.clear import ClearSession
from smpc.cost import peak_memory
from smpc.errors import InputError

_TOGETHER = "all in one"  # the only process of the clear backend
_WHOLE = ("bytes_sent", "rounds")

Found = Mapping[str, dict[str, Any]]
Run = Callable[[Trial, int], Found]


def measure(
    task: Task, vary: Mapping[str, Sequence[int]], backends: Sequence[str], *, repeats: int, run_up_to: int
) -> list[Cost]:
    """Every combination of sizes on every backend; above `run_up_to` rows, extrapolated from the largest that is run.

    Raises InputError where all rows are above that.
    """
    others = [name for name in vary if name != "rows"]
    costs = []
    for backend in backends:
        for values in itertools.product(*(vary[name] for name in others)):
            fixed = dict(zip(others, values, strict=True))
            costs += _over_rows(task, fixed, vary["rows"], backend, repeats, run_up_to)
    return costs


def _over_rows(
    task: Task, fixed: Mapping[str, int], rows: Sequence[int], backend: str, repeats: int, run_up_to: int
) -> list[Cost]:
    within = [count for count in rows if count <= run_up_to]
    if not within:
        raise InputError(
            f"--vary rows={min(rows)}: all sizes are above --run-up-to {run_up_to}; give a smaller one, too"
        )
    costs: list[Cost] = []
    trials = {count: task.trial({**fixed, "rows": count}, backend) for count in rows}
    sent = {count: _predicted(trial, backend) for count, trial in trials.items()}
    with _runner(trials[within[0]], backend) as run:
        run(trials[within[0]], 1)
        for count in within:
            for name, found in run(trials[count], repeats).items():
                sizes = {**fixed, "rows": count}
                costs.append(Cost(backend, sizes, name, False, bytes_predicted=sent[count][name], **found))
    largest = [cost for cost in costs if cost.rows == within[-1]]
    return costs + [cost.at(n, sent[n][cost.participant]) for n in rows if n > run_up_to for cost in largest]


def _predicted(trial: Trial, backend: str) -> Mapping[str, int]:
    if backend == CLEAR:
        return defaultdict(int)
    forecast = trial.forecast()
    return {name: forecast.sent(name) for name in trial.cast.everyone}


@contextlib.contextmanager
def _runner(trial: Trial, backend: str) -> Iterator[Run]:
    """run(trial, repeats): what each participant measured of itself."""
    if backend == CLEAR:
        yield lambda trial, repeats: {_TOGETHER: _in_the_clear(trial, repeats)}
        return
    with Pool(trial.cast, backend=trial.backend) as pool:
        yield lambda trial, repeats: pool.run(measured, trial=trial, material=trial.material(), repeats=repeats)


def measured(s: Any, trial: Trial, material: Any, repeats: int) -> dict[str, float]:
    """In a participant's process: what one run costs it, over the repeats."""
    network, runs = s.network, []
    for _ in range(repeats):
        with trial.text(s.me, material) as text:
            before, sent, rounds = _forget_peak(), sum(network.sent_on_purpose().values()), network.round
            waited, sockets, start = network.waited, network.busy, time.perf_counter()
            text(s)
            seconds = time.perf_counter() - start
            waited, sockets = network.waited - waited, network.busy - sockets
            runs.append(
                {
                    "seconds": seconds,
                    "local": max(0.0, seconds - waited - sockets),
                    "waited": waited,
                    "sockets": sockets,
                    "bytes_sent": sum(network.sent_on_purpose().values()) - sent,
                    "rounds": network.round - rounds,
                    "memory": peak_memory() - before,
                }
            )
    return _summary(runs)


def _in_the_clear(trial: Trial, repeats: int) -> dict[str, float]:
    runs, material = [], trial.material()
    for _ in range(repeats):
        with trial.text(None, material) as text:
            before, start = _forget_peak(), time.perf_counter()
            text(ClearSession(trial.cast))
            seconds = time.perf_counter() - start
            spent = {"seconds": seconds, "local": seconds, "memory": peak_memory() - before}
            runs.append({**dict.fromkeys(("waited", "sockets", "bytes_sent", "rounds"), 0.0), **spent})
    return _summary(runs)


def _forget_peak() -> int:
    """The process's memory now; its peak is counted from here on, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def _summary(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Medians, and the range of the seconds. Of the memory the most: later runs use what the first one made free."""
    found = {key: median(run[key] for run in runs) for key in runs[0]}
    seconds = [run["seconds"] for run in runs]
    whole = {key: int(found[key]) for key in _WHOLE} | {"memory": int(max(run["memory"] for run in runs))}
    return {**found, **whole, "least": min(seconds), "most": max(seconds)}
