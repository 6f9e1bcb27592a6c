"""`smpc demo`: the main job on real data, and how good its model is at three epsilons."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from importlib import resources
from pathlib import Path
from statistics import median, quantiles
from typing import Any, cast

import numpy as np

from launch.interrupts import ALL, ignored
from launch.job import Job, load_job
from launch.outputs import check_free, reserved
from launch.pool import Pool
from launch.report.command import report_line
from launch.run import run_locally
from launch.summary import summary
from launch.tasks.functional import FunctionalTask
from launch.tasks.own_table import held_tables, own_table
from protocols.functional import protocol as functional
from protocols.schema import Floats
from smpc.cast import Cast
from smpc.engine.session import CryptenSession
from smpc.errors import InputError

_SOURCE = Path(str(resources.files("launch") / "demo.toml"))
_JOB = "randhie.toml"
EPSILONS = ("0.1", "1", "10")
TEST_EVERY = 5  # every fifth person is kept out of the parties' tables, for the reader to test the model on


def run_demo(out: Path, seeds: int) -> None:
    """Write tables and job into `out`, run the job, then repeat it for each epsilon and print test errors."""
    if seeds < 1:
        raise InputError(f"--seeds {seeds}: must be at least 1")
    check_free(out)
    table = _randhie()
    everybody = np.arange(len(table["mdvis"]))
    test = everybody % TEST_EVERY == 0
    release = out / "release"
    own = [_JOB, *(party.table.name for party in _task(load_job(_SOURCE)).parties)]
    with _all_or_nothing(out, [out / name for name in own], release):
        job = _write_job(out, table, ~test)
        start = time.perf_counter()
        run_locally(job.path, release)
        seconds = time.perf_counter() - start
    print(f"{summary(release)}\n\nthe job took {seconds:.1f} s, processes started and ended")
    print(f"{report_line(release)}\n")
    _compare(job.cast, _task(job), table, test, seeds)


@contextmanager
def _all_or_nothing(out: Path, files: Sequence[Path], release: Path) -> Iterator[None]:
    """Keep `out` for this process; if the block fails, remove what the demo wrote: the next one may have the name."""
    with reserved(out):
        try:
            yield
        except BaseException:
            with ignored(*ALL):
                shutil.rmtree(release, ignore_errors=True)
                for path in files:
                    with suppress(OSError):
                        path.unlink(missing_ok=True)
            raise


def _task(job: Job) -> FunctionalTask:
    return cast(FunctionalTask, job.task)  # as demo.toml says


def _randhie() -> dict[str, Floats]:
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        raise InputError("the demo's data come with statsmodels: pip install 'sharewise[demo]'") from None
    data = randhie.load_pandas().data
    return {str(name): np.asarray(data[name], dtype=np.float64) for name in data.columns}


def _write_job(out: Path, table: dict[str, Floats], rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Job:
    """The job file and its parties' tables of these rows."""
    path = out / _JOB
    shutil.copyfile(_SOURCE, path)
    job = load_job(path)
    people = np.flatnonzero(rows)
    for party in _task(job).parties:
        names = [column.name for column in party.columns]
        lines = [",".join([party.id, *names])]
        values = np.column_stack([table[name][people] for name in names])
        lines += [
            ",".join([str(person), *(repr(float(value)) for value in row)])
            for person, row in zip(people, values, strict=True)
        ]
        party.table.write_text("\n".join(lines) + "\n")
    print(f"{job.name}: {len(people):,} people, three parties, a server and a dealer, each its own process\n")
    return job


def repeat(s: CryptenSession, task: FunctionalTask, rows: int, seeds: int) -> list[list[float]]:
    """The protocol, `seeds` times for every epsilon, in a participant's own process: intercept and weights of each."""
    tables = held_tables(task.parties, s.me, own_table(task.parties, s.me, clip=task.clip))
    models = []
    for epsilon in EPSILONS:
        plan = replace(task, epsilon=Fraction(epsilon)).plan(rows)
        models += [functional.fit(s, tables, plan).values.tolist() for _ in range(seeds)]
    return models


def _compare(
    people: Cast,
    task: FunctionalTask,
    table: dict[str, Floats],
    test: np.ndarray[Any, np.dtype[np.bool_]],
    seeds: int,
) -> None:
    """Test errors of released models beside what needs no protocol: the reader has the demo's whole public table."""
    features = [column.name for columns in task.features.values() for column in columns]
    x = np.column_stack([np.ones(len(test)), *(table[name] for name in features)])
    y = np.clip(table[task.label.name], task.label.low, task.label.high)

    def error(weights: Floats) -> float:
        return float(np.mean((x[test] @ weights - y[test]) ** 2))

    rows = int(np.count_nonzero(~test))
    start = time.perf_counter()
    with Pool(people) as pool:
        models = pool.run(repeat, task=task, rows=rows, seeds=seeds)[people.server]
    seconds = time.perf_counter() - start
    print(
        f"mean squared error on {np.count_nonzero(test):,} other people ({task.label.name}, up to {task.label.high:g})"
    )
    print(f"{'':24}{'median':>10}{'10 %':>10}{'90 %':>10}   of {seeds} runs")
    for i, epsilon in enumerate(EPSILONS):
        errors = [error(np.array(weights)) for weights in models[i * seeds : (i + 1) * seeds]]
        low, high = (quantiles(errors, n=10)[0], quantiles(errors, n=10)[-1]) if seeds > 1 else (errors[0], errors[0])
        print(f"private, epsilon {epsilon:<7}{median(errors):>10.3f}{low:>10.3f}{high:>10.3f}")
    plain = np.linalg.lstsq(x[~test], y[~test], rcond=None)[0]
    zero, mean = np.zeros(x.shape[1]), np.eye(x.shape[1])[0] * y[~test].mean()
    for name, weights in (("not private (OLS)", plain), ("predict the mean", mean), ("predict zero", zero)):
        print(f"{name:24}{error(weights):>10.3f}")
    print(
        f"\n{len(EPSILONS) * seeds} runs of the protocol over the same processes took {seconds:.1f} s, start included"
    )
