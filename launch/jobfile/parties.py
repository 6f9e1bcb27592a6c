"""Parties that bring a table: [[party]] in a job file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from launch.jobfile.endpoints import ENDPOINT_KEYS, Endpoint, check_distinct, read_endpoint
from launch.jobfile.fields import MAX_NAME, Fields, JobError, is_number, is_plain, shown
from protocols.schema import Column
from smpc.errors import InputError

INTERCEPT = "intercept"  # in model.json
MAX_VALUES = 100  # of a category
_KEYS = ("name", "table", "id", "columns", "ledger", "data_set", *ENDPOINT_KEYS[1:])


@dataclass(frozen=True)
class PartySpec(Endpoint):
    """A party and its table: CSV or Parquet, with an id column and the job's columns.

    The label, if the party holds it, stands last in `columns`. `categories`: the public values of each column of text,
    which stands in `columns` as an indicator NAME=VALUE for each value but the first. `ledger`, if given, is where the
    party keeps count of what releases of `data_set` have cost.
    """

    table: Path
    id: str
    columns: tuple[Column, ...]
    ledger: Path | None
    data_set: str
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[str, ...]:
        """The table's columns that are read, id apart."""
        return tuple(dict.fromkeys(column.category or column.name for column in self.columns))


def read_parties(path: Path, top: Fields, *, categories: bool = False) -> tuple[PartySpec, ...]:
    """All [[party]] tables, in the file's order; at least two, no column name twice. `categories`: text is allowed."""
    items = top.get("party")
    if not isinstance(items, list) or len(items) < 2:
        raise JobError(
            f"{path}: needs at least two [[party]] tables, has {len(items) if isinstance(items, list) else 0}"
        )
    parties = tuple(_party(path, number, item, categories) for number, item in enumerate(items, 1))
    check_distinct(path, parties)
    names = [column.name for party in parties for column in party.columns]
    sources = [name for party in parties for name in party.sources]  # one table for predictions has them all
    repeated = next((name for given in (names, sources) for name in given if given.count(name) > 1), None)
    if repeated:
        raise JobError(f"{path}: the column {repeated!r} is given twice; model.json names columns, rename one")
    return parties


def read_label(top: Fields, parties: tuple[PartySpec, ...]) -> tuple[str, Column, tuple[PartySpec, ...]]:
    """[label]: who holds it, which column it is, and the parties with it last in its holder's columns."""
    label = top.inner("label", ("party", "column"))
    holder = label.text("party", among=[party.name for party in parties])
    columns = {column.name: column for party in parties if party.name == holder for column in party.columns}
    numbers = [name for name, column in columns.items() if not column.category]
    texts = [text for name, column in columns.items() if column.category for text in (column.category, name)]
    if label.get("column") in texts or not numbers:
        raise label.fail("column", "a column of numbers, and this is one of text; write no and yes as 0 and 1, say")
    target = columns.pop(label.text("column", among=numbers))
    last = (*columns.values(), target)
    return holder, target, tuple(replace(p, columns=last) if p.name == holder else p for p in parties)


def features_of(parties: tuple[PartySpec, ...], holder: str) -> dict[str, tuple[Column, ...]]:
    """Every party's columns without the label, which `holder` has last."""
    return {party.name: party.columns[:-1] if party.name == holder else party.columns for party in parties}


def _party(path: Path, number: int, item: Any, categories: bool) -> PartySpec:
    where = f"{path}: [[party]] {number}"
    fields = Fields(where, item, _KEYS)
    endpoint = read_endpoint(fields, path)
    table = fields.get("columns")
    columns = read_columns(f"{path}: columns of {endpoint.name}", table, categories=categories)
    identifier = fields.text("id", longest=MAX_NAME)
    if identifier in {column.category or column.name for column in columns}:
        raise JobError(
            f"{where}: id = {identifier!r} is one of the columns; ids are no feature, take it out of columns"
        )
    return PartySpec(
        **vars(endpoint),
        table=path.parent / fields.text("table"),
        id=identifier,
        columns=columns,
        ledger=path.parent / fields.text("ledger") if fields.has("ledger") else None,
        data_set=fields.text("data_set", endpoint.name, longest=MAX_NAME),
        categories={name: tuple(values) for name, values in table.items() if isinstance(values[0], str)},
    )


def read_columns(where: str, table: Any, *, categories: bool = False) -> tuple[Column, ...]:
    """The columns of a table NAME = [low, high], public bounds, or with `categories` also NAME = ["VALUE", "VALUE"]."""
    if not isinstance(table, Mapping) or not table:
        raise JobError(f"{where}: must be a table of NAME = [low, high], the public bounds; at least one")
    columns = []
    for name, bounds in table.items():
        if not is_plain(name, MAX_NAME):
            raise JobError(f"{where}: the name {shown(name)} must be 1 to {MAX_NAME} printable characters; rename it")
        if name == INTERCEPT:
            raise JobError(f"{where}: {name} is what models call their constant term; rename the column")
        if categories and isinstance(bounds, list) and bounds and isinstance(bounds[0], str):
            columns += _indicators(where, name, bounds)
            continue
        try:
            if not isinstance(bounds, list) or len(bounds) != 2 or not all(is_number(bound) for bound in bounds):
                raise ValueError
            columns.append(Column(name, float(bounds[0]), float(bounds[1])))
        except InputError as error:
            raise JobError(f"{where}: {error}") from None
        except (ValueError, OverflowError):
            texts = "; of a column of text, all values it can have, in quotes" if categories else ""
            raise JobError(
                f"{where}: {name} = {shown(bounds)} must be [low, high], two numbers: the public bounds of its values"
                f"{texts}"
            ) from None
    return tuple(columns)


def _indicators(where: str, name: str, values: list[Any]) -> list[Column]:
    """An indicator for each value but the first."""
    if any(isinstance(value, str) and value.rstrip("%").isdecimal() for value in values) and len(values) == 2:
        raise JobError(f"{where}: {name} = {shown(values)} must be [low, high], two numbers without quotes, or words")
    good = all(isinstance(value, str) and is_plain(value, MAX_NAME) and value == value.strip() for value in values)
    if not good or not 2 <= len(values) <= MAX_VALUES or len(set(values)) < len(values):
        raise JobError(
            f"{where}: {name} = {shown(values)} must be 2 to {MAX_VALUES} different values in quotes, all there are"
        )
    return [Column(f"{name}={value}", 0.0, 1.0, name) for value in values[1:]]


def column_facts(parties: tuple[PartySpec, ...]) -> dict[str, str]:
    """The parties' columns and bounds as public facts of a handshake."""
    facts = {}
    for party in parties:
        facts[f"number of columns of {party.name}"] = str(len(party.columns))
        for number, column in enumerate(party.columns, 1):
            category = f", a value of {column.category}" if column.category is not None else ""
            facts[f"column {number} of {party.name}"] = f"{column.name} in [{column.low!r}, {column.high!r}]{category}"
        for name, values in party.categories.items():
            facts[f"reference of {name}"] = values[0]
    return facts
