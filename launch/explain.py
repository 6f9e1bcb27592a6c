"""`smpc explain`: what a job will send, who learns what, what is guaranteed and what it costs, before anything runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

from launch.job import Job, load_job
from launch.jobfile.fields import JobError
from launch.jobfile.parties import PartySpec
from launch.tables.files import is_here
from launch.tasks.own_table import SAME_IDS
from launch.tasks.task import Prepared
from mechanisms.ledger import BudgetError
from smpc.transcript import ALL, DEALER, OTHER_PARTY, PARTY, SERVER, full_table

_WIDTH = 100


def explain(path: Path, rows: int | None) -> tuple[str, BudgetError | None]:
    """The text for a job file, and why a ledger would refuse the run.

    Tables that are here are read and checked; `rows` is for where there is none.
    """
    job = load_job(path)
    mine = {party.name: job.task.prepare(party.name) for party in _tables(job) if is_here(party.table)}
    rows = _count(job, mine, rows)
    outlook = job.task.outlook(job.cast, rows)
    size = f"{rows:,} rows, " if rows else ""
    lines = [f"{job.name}: {job.protocol}, {size}{len(job.task.parties)} parties", "", *_who(job), ""]
    lines += [*_steps(outlook.table), "", str(outlook.guarantee), ""]
    if outlook.noise:
        lines += [outlook.noise, ""]
    names = [endpoint.name for endpoint in job.participants]
    width = max(map(len, names))
    lines.append(f"bytes that will be sent, handshake apart{outlook.supposed and f', if {outlook.supposed}'}:")
    for name in names:
        routes = ((to, count) for (sender, to), count in outlook.forecast.bytes.items() if sender == name and count)
        told = ", ".join(f"{to} {count / 1000:,.1f} kB" for to, count in routes)
        lines.append(f"  {name:<{width}}  {outlook.forecast.sent(name) / 1000:>12,.1f} kB  {told}")
    absent = [party for party in _tables(job) if party.name not in mine]
    if absent:
        lines += ["", "not checked, for it is not on this machine:"]
        lines += [f"  {party.table} of {party.name}" for party in absent]
    return "\n".join(lines), _refusal(mine.values())


def _refusal(mine: Iterable[Prepared]) -> BudgetError | None:
    for prepared in mine:
        try:
            prepared.check_budget()
        except BudgetError as error:
            return error
    return None


def _tables(job: Job) -> list[PartySpec]:
    return [party for party in job.task.parties if isinstance(party, PartySpec)]


def _count(job: Job, mine: Mapping[str, Prepared], rows: int | None) -> int:
    """The rows of the tables on this machine, each checked as a run checks it; `rows` where there is none."""
    found = {name: int(prepared.facts["rows"]) for name, prepared in mine.items()}
    counts = set(found.values()) | ({rows} if rows is not None else set())
    if len(counts) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in found.items())
        told += "" if rows is None else f", --rows says {rows}"
        advice = f"; {SAME_IDS}" if len(set(found.values())) > 1 else ""
        raise JobError(f"{job.path}: the tables' rows differ: {told}{advice}")
    ids = [prepared.data.ids for prepared in mine.values()]
    if not all(ids[0].equals(other) for other in ids[1:]):
        raise JobError(f"{job.path}: {' and '.join(mine)} do not hold the same ids: {SAME_IDS}")
    if not counts and _tables(job):
        raise JobError(f"{job.path}: no party's table is on this machine; say how many rows with --rows")
    return counts.pop() if counts else 0


def _who(job: Job) -> list[str]:
    if job.task.roles:
        return [f"{role:<9} {name}" for name, role in job.task.roles.items()]
    parties = ", ".join(party.name for party in job.task.parties)
    roles = {
        f"{PARTY}, {OTHER_PARTY}": f"each of {parties}",
        SERVER: job.cast.server,
        DEALER: job.cast.dealer or "nobody",
    }
    return [f"{role:<9} {name}" for role, name in {**roles, ALL: "all of them but the dealer"}.items()]


def _steps(docstring: str) -> list[str]:
    rows = [("from -> to", "message", "the receiver learns"), *full_table(docstring)]
    route, message = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = []
    for number, (a, b, learns) in enumerate(rows):
        first, *more = textwrap.wrap(learns, _WIDTH - route - message - 10) or [""]
        lines.append(f"{number or 'step':<6}{a:<{route}}  {b:<{message}}  {first}")
        lines += [" " * (10 + route + message) + rest for rest in more]
    return lines
