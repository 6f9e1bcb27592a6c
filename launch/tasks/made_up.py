"""Parties and tables for profiles: a job's parties repeated in turn, with values that are uniform in their bounds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from launch.jobfile.parties import PartySpec
from launch.tasks.trial import party_names
from protocols.schema import Column, Floats
from smpc.values import Held


def repeated(
    parties: Sequence[PartySpec], holder: str, count: int
) -> tuple[tuple[PartySpec, ...], str, dict[str, str]]:
    """`count` parties p1, p2, .. with the columns of the job's parties in turn; who holds the label; whose they were.

    The label stands last in its holder's columns and is not repeated. A party that has nothing but the label is not
    repeated either.
    """
    labels = min([party.name for party in parties].index(holder), count - 1)
    made, origins = [], {}
    for number, name in enumerate(party_names(count)):
        spec, copy = parties[number % len(parties)], number // len(parties)
        features = spec.columns[:-1] if spec.name == holder else spec.columns
        columns = [_copied(column, copy) for column in features]
        if number == labels:
            columns += [party.columns[-1] for party in parties if party.name == holder]
        if columns:
            made.append(replace(spec, name=name, ledger=None, columns=tuple(columns)))
            origins[name] = spec.name
    return tuple(made), party_names(count)[labels], origins


def _copied(column: Column, copy: int) -> Column:
    if not copy:
        return column
    category = None if column.category is None else f"{column.category} {copy}"
    return replace(column, name=f"{column.name} {copy}", category=category)


def table(columns: Sequence[Column], rows: int, whole: Collection[str] = ()) -> Floats:
    """Shape (columns, rows). Categories are uniform over their values, columns named in `whole` over whole numbers."""
    rng = np.random.default_rng(rows)
    made = np.empty((len(columns), rows))
    for row, column in zip(made, columns, strict=True):
        if column.name in whole:
            row[:] = rng.integers(int(column.low), int(column.high) + 1, rows)
        else:
            row[:] = rng.uniform(column.low, column.high, rows)
    for category in {column.category for column in columns} - {None}:
        places = [i for i, column in enumerate(columns) if column.category == category]
        made[places] = np.arange(1, 1 + len(places))[:, None] == rng.integers(0, 1 + len(places), rows)
    return made


def tables(
    parties: Sequence[PartySpec], me: str | None, rows: int, whole: Collection[str] = ()
) -> Mapping[str, Held[Floats]]:
    """Every party's columns as `me` has them; None: as one process that is everybody."""
    return {
        party.name: Held(party.name, table(party.columns, rows, whole) if me in (None, party.name) else None)
        for party in parties
    }
