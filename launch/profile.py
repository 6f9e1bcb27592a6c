"""`smpc profile`: a job's protocol on synthetic tables of several sizes, and where its time, bytes and memory go.

Tables are uniform within the job's bounds; the parties are the job's, repeated in turn. Parties and server run as
processes of this machine that live through all sizes of their number, so what it costs to start them is not counted.
Rows above what is run are extrapolated: bytes by the formulas, times and memory in proportion.
"""

from __future__ import annotations

import contextlib
import csv
import io
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from launch.backend import Backend
from launch.job import load_job
from launch.outputs import check_free, write_folder
from launch.pool import Pool
from launch.reproduce.figure import Figure, Line, Panel, check_can_draw, draw
from launch.tables.table import Table
from launch.tasks.functional import FunctionalTask
from launch.tasks.own_table import held_tables
from protocols.evaluation import summarise
from protocols.functional import protocol as functional
from protocols.schema import Column, Floats
from smpc.bgn.modes import Keys
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.cost import peak_memory
from smpc.errors import InputError
from smpc.values import Held

BACKENDS = ("crypten", "bgn", "clear")
_TOGETHER = "all in one"  # the only process of the clear backend


@dataclass(frozen=True)
class Cost:
    """What one participant spent: seconds (median of the repeats), bytes, and by how much its memory grew."""

    backend: str
    parties: int
    rows: int
    participant: str
    extrapolated: bool
    seconds: float
    local: float
    waited: float
    sockets: float
    bytes_sent: int
    bytes_predicted: int
    rounds: int
    memory: int


def profile(
    path: Path,
    out: Path,
    *,
    rows: Sequence[int],
    parties: Sequence[int],
    backends: Sequence[str],
    repeats: int,
    run_up_to: int,
) -> str:
    """Write profile.csv and profile.png into the new folder `out`; the table for people."""
    check_free(out)
    check_can_draw()
    task = load_job(path).task
    if not isinstance(task, FunctionalTask):
        raise InputError(f"{path}: profile runs jobs of protocol = 'functional'; use cost.json of a run for others")
    costs: list[Cost] = []
    for backend in backends:
        for count in parties:
            costs += _measure(resized(task, count, backend), backend, sorted(rows), repeats, run_up_to)
    write_folder(out, {"profile.csv": _csv(costs), "profile.png": draw(_figure(costs))})
    return f"{_text(costs)}\n\n{out}: profile.csv, profile.png"


def resized(task: FunctionalTask, count: int, backend: str) -> FunctionalTask:
    """The same job for `count` parties p1, p2, .. that bring the columns of the job's parties in turn."""
    if not 2 <= count <= 64:
        raise InputError(f"--vary parties={count}: must be from 2 to 64")
    names = [party.name for party in task.parties]
    holder = min(names.index(task.label_party), count - 1)
    made = []
    for number in range(count):
        name = names[number % len(names)]
        copy = number // len(names)
        columns = [_copied(column, copy) for column in task.features[name]]
        label = [task.label] if number == holder else []
        spec = replace(task.parties[number % len(names)], name=f"p{number + 1}", ledger=None)
        made.append(replace(spec, columns=(*columns, *label)))
    parties = tuple(party for party in made if party.columns)
    keys = (task.backend.keys or Keys("pair", None)) if backend == "bgn" else None
    return replace(task, parties=parties, label_party=f"p{holder + 1}", backend=Backend(keys))


def _copied(column: Column, copy: int) -> Column:
    if not copy:
        return column
    category = None if column.category is None else f"{column.category} {copy}"
    return replace(column, name=f"{column.name} {copy}", category=category)


def _measure(task: FunctionalTask, backend: str, rows: Sequence[int], repeats: int, run_up_to: int) -> list[Cost]:
    names = tuple(party.name for party in task.parties)
    cast = task.backend.cast(Cast(names, dealer="dealer" if backend == "crypten" else None))

    def predicted(count: int) -> Mapping[str, int]:
        forecast = None if backend == "clear" else task.outlook(cast, count).forecast
        return defaultdict(int) if forecast is None else {name: forecast.sent(name) for name in cast.everyone}

    costs: list[Cost] = []
    with _runner(task, backend, cast) as run:
        for count in (n for n in rows if n <= run_up_to):
            sent = predicted(count)
            for name, found in run(count, repeats).items():
                costs.append(Cost(backend, len(names), count, name, False, bytes_predicted=sent[name], **found))
    largest = [cost for cost in costs if cost.rows == max(cost.rows for cost in costs)] if costs else []
    for count in (n for n in rows if n > run_up_to):
        if not largest:
            raise InputError(
                f"--vary rows={count}: all sizes are above --run-up-to {run_up_to}; give a smaller one, too"
            )
        sent = predicted(count)
        costs += [_extrapolated(cost, count, sent[cost.participant]) for cost in largest]
    return costs


def _extrapolated(cost: Cost, rows: int, predicted: int) -> Cost:
    times = rows / cost.rows
    return replace(
        cost,
        rows=rows,
        extrapolated=True,
        seconds=cost.seconds * times,
        local=cost.local * times,
        waited=cost.waited * times,
        sockets=cost.sockets * times,
        bytes_sent=predicted,
        bytes_predicted=predicted,
        memory=round(cost.memory * times),
    )


@contextlib.contextmanager
def _runner(task: FunctionalTask, backend: str, cast: Cast) -> Iterator[Any]:
    """run(rows, repeats): what each participant measured of itself."""
    if backend == "clear":
        yield lambda rows, repeats: {_TOGETHER: _clear(task, cast, rows, repeats)}
        return
    with Pool(cast, backend=task.backend) as pool:
        yield lambda rows, repeats: pool.run(measured, task=task, rows=rows, repeats=repeats)


def measured(s: Any, task: FunctionalTask, rows: int, repeats: int) -> dict[str, float]:
    """In a participant's process: medians over the repeats of what one run costs it."""
    plan = task.plan(rows)
    own = next((party.columns for party in task.parties if party.name == s.me), None)
    table = None if own is None else Table(None, synthetic(task, s.me, rows))
    tables = held_tables(task.parties, s.me, table)
    runs: list[dict[str, float]] = []
    for _ in range(repeats):
        network, before = s.network, _forget_peak()
        sent, rounds = sum(network.sent_on_purpose().values()), network.round
        waited, sockets, start = network.waited, network.busy, time.perf_counter()
        functional.fit(s, tables, plan)
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
    return _medians(runs)


def _clear(task: FunctionalTask, cast: Cast, rows: int, repeats: int) -> dict[str, float]:
    tables = {party.name: Held(party.name, synthetic(task, party.name, rows)) for party in task.parties}
    plan = task.plan(rows)
    runs = []
    for _ in range(repeats):
        before, start = _forget_peak(), time.perf_counter()
        functional.fit(ClearSession(cast), tables, plan)
        seconds = time.perf_counter() - start
        spent = {"seconds": seconds, "local": seconds, "memory": peak_memory() - before}
        runs.append({**dict.fromkeys(("waited", "sockets", "bytes_sent", "rounds"), 0.0), **spent})
    return _medians(runs)


def synthetic(task: FunctionalTask, name: str, rows: int) -> Floats:
    """A table of `name`: values uniform in their bounds, categories and the label of a logistic loss uniform, too."""
    columns = next(party.columns for party in task.parties if party.name == name)
    rng = np.random.default_rng(rows)  # public by making: nothing here is a secret
    table = np.empty((len(columns), rows))
    for row, column in zip(table, columns, strict=True):
        row[:] = rng.uniform(column.low, column.high, rows)
    for category in {column.category for column in columns} - {None}:
        places = [i for i, column in enumerate(columns) if column.category == category]
        table[places] = np.arange(1, 1 + len(places))[:, None] == rng.integers(0, 1 + len(places), rows)
    if task.options.loss == "logistic" and name == task.label_party:
        table[-1] = rng.integers(0, 2, rows)
    return table


def _forget_peak() -> int:
    """The process's memory now; its peak is counted from here on, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_memory()


def _medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    whole = {"bytes_sent", "rounds", "memory"}
    found = {key: median(run[key] for run in runs) for key in runs[0]}
    return {key: int(value) if key in whole else value for key, value in found.items()}


def _csv(costs: Sequence[Cost]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, [field.name for field in fields(Cost)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(cost) for cost in costs)
    return file.getvalue()


def _figure(costs: Sequence[Cost]) -> Figure:
    """Seconds of the slowest participant and bytes of all, against the rows."""
    panels = []
    for title, value in (("seconds", lambda group: max(c.seconds for c in group)), ("MB sent by all", _megabytes)):
        lines = []
        for backend, count in dict.fromkeys((c.backend, c.parties) for c in costs):
            sizes = sorted({c.rows for c in costs if (c.backend, c.parties) == (backend, count)})
            groups = [[c for c in costs if (c.backend, c.parties, c.rows) == (backend, count, n)] for n in sizes]
            results = tuple(summarise([value(group)]) for group in groups)
            lines.append(Line(f"{backend}, {count} parties", tuple(map(float, sizes)), results))
        panels.append(Panel(title, tuple(lines)))
    return Figure("profile", "rows", "", tuple(panels), log="xy")


def _megabytes(group: Sequence[Cost]) -> float:
    return sum(c.bytes_sent for c in group) / 1e6 or 1e-6  # a logarithmic axis has no zero


def _text(costs: Sequence[Cost]) -> str:
    header = (
        "backend",
        "parties",
        "rows",
        "participant",
        "ms",
        "local",
        "idle",
        "TLS",
        "MB sent",
        "rounds",
        "memory MB",
    )
    lines: list[tuple[str, ...]] = [header]
    for c in costs:
        times = [f"{1000 * value:,.1f}" for value in (c.seconds, c.local, c.waited, c.sockets)]
        rows = f"{c.rows:,}{' *' if c.extrapolated else ''}"
        sizes = [f"{c.bytes_sent / 1e6:,.3f}", str(c.rounds), f"{c.memory / 1e6:,.0f}"]
        lines.append((c.backend, str(c.parties), rows, c.participant, *times, *sizes))
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)
    return text + ("\n* extrapolated" if any(c.extrapolated for c in costs) else "")
