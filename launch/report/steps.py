"""What a run's recorded messages mean: the protocols' tables that say it, found by what was sent."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import protocols
import smpc
from launch.job import PROTOCOLS
from smpc.transcript import Message, Transcript, full_table

UNKNOWN = "not described in any protocol's table"
_LEARNS = "the receiver learns"


@dataclass(frozen=True)
class Step:
    """One line of a protocol's table, `count` and `shapes` of the messages recorded for it."""

    number: int
    sender: str
    receiver: str
    message: str
    learns: str
    count: int
    shapes: tuple[tuple[int, ...], ...]

    @property
    def route(self) -> str:
        return f"{self.sender} -> {self.receiver}"


@dataclass(frozen=True)
class Script:
    """A protocol's table as its source file has it; `source` names its packages and its file."""

    source: tuple[str, ...]
    rows: tuple[tuple[str, str, str], ...]

    @property
    def steps(self) -> list[tuple[str, str]]:
        """(from -> to, message) of every row."""
        return [(route, message) for route, message, _ in self.rows]


def scripts() -> list[Script]:
    """The tables in the docstrings of all protocols and backends. Their source is read, nothing is imported."""
    found: list[Script] = []
    for package in (protocols, smpc):
        for path in sorted(Path(str(package.__file__)).parent.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if _LEARNS in source:
                tables = [full_table(text) for text in _docstrings(source) if _has_table(text)]
                found += [Script((*path.parent.parts[-2:], path.stem), tuple(rows)) for rows in tables]
    return found


def _docstrings(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node, clean=False) or ""


def _has_table(docstring: str) -> bool:
    return any(line.strip().startswith("step ") and line.strip().endswith(_LEARNS) for line in docstring.splitlines())


def described(transcript: Transcript, known: Sequence[Script], protocol: str = "") -> list[list[Step]]:
    """The steps of the tables in `known` that the run followed: usually one table. Messages in none come last.

    A table is followed if all its messages were recorded. Of several, the one that says most of what is left, has the
    recorded order, and does not belong to another protocol than `protocol`.
    """
    recorded = transcript.steps()
    left = set(recorded)
    possible = [script for script in known if set(script.steps) <= left]

    def merit(script: Script) -> tuple[int, bool, int]:
        return len(left.intersection(script.steps)), script.steps == recorded, _belongs(script.source, protocol)

    chosen: list[Script] = []
    while best := max((script for script in possible if merit(script)[0]), key=merit, default=None):
        chosen.append(best)
        left -= set(best.steps)
    chosen.sort(key=lambda script: recorded.index(script.steps[0]))
    if left:
        chosen.append(Script((), tuple((*step, UNKNOWN) for step in dict.fromkeys(recorded) if step in left)))
    return [[_step(number, row, transcript.messages) for number, row in enumerate(s.rows, 1)] for s in chosen]


def _belongs(source: tuple[str, ...], protocol: str) -> int:
    if not protocol or protocol in source:
        return 2
    return 1 if PROTOCOLS.keys().isdisjoint(source) else 0


def _step(number: int, row: tuple[str, str, str], messages: Sequence[Message]) -> Step:
    route, message, learns = row
    found = [entry for entry in messages if (f"{entry.sender} -> {entry.receiver}", entry.message) == (route, message)]
    sender, _, receiver = route.partition(" -> ")
    return Step(number, sender, receiver, message, learns, len(found), tuple(dict.fromkeys(e.shape for e in found)))
