"""Reads typed values out of a parsed TOML table, with one-line errors that name file, key, value and remedy."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

from smpc.errors import InputError

MAX_PATH = 1000
MAX_NAME = 64  # of a column or a job: public facts must fit into a handshake
_SHOWN = 60


class JobError(InputError):
    """A job file that cannot be used."""


class Fields:
    """One table of a job file. `where` names it in errors; keys that are not `known`, if given, are refused."""

    def __init__(self, where: str, table: Any, known: Sequence[str] | None = None) -> None:
        if not isinstance(table, Mapping):
            raise JobError(f"{where} is {shown(table)}: must be a table of keys and values")
        self._where = where
        self._table = table
        for key in table:
            if known is not None and key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
                raise JobError(f"{where}: unknown key {shown(key)}; {hint}")

    def inner(self, key: str, known: Sequence[str] | None = None, *, optional: bool = False) -> Fields:
        """The table under `key`; an `optional` one may be absent and is empty then."""
        if key not in self._table and not optional:
            raise JobError(f"{self._where}: the table [{key}] is missing; add it")
        return Fields(f"{self._where}: [{key}]", self._table.get(key, {}), known)

    def fail(self, key: str, wanted: str) -> JobError:
        return JobError(f"{self._where}: {key} = {shown(self._table.get(key))} must be {wanted}")

    @property
    def where(self) -> str:
        return self._where

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that are there."""
        return tuple(self._table)

    def has(self, key: str) -> bool:
        return key in self._table

    def get(self, key: str) -> Any:
        """A value that must be there."""
        if key not in self._table:
            raise JobError(f"{self._where}: {key} is missing; add it")
        return self._table[key]

    def text(self, key: str, default: str | None = None, *, among: Sequence[str] = (), longest: int = MAX_PATH) -> str:
        value = self._table.get(key, default) if default is not None else self.get(key)
        if among and value not in among:
            raise self.fail(key, f"one of {', '.join(among)}")
        if not isinstance(value, str) or not is_plain(value, longest):
            raise self.fail(key, f"text in quotes, 1 to {longest} printable characters")
        return value

    def switch(self, key: str) -> bool:
        value = self._table.get(key, False)
        if not isinstance(value, bool):
            raise self.fail(key, "true or false")
        return value

    def whole(self, key: str, low: int, high: int) -> int | None:
        """A whole number in [low, high], None where the key is absent."""
        if key not in self._table:
            return None
        value = self._table[key]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.fail(key, f"a whole number from {low} to {high}")
        return value

    def number(self, key: str, default: float, low: float, high: float) -> float:
        value = self._table.get(key, default)
        if not is_number(value) or not low <= value <= high:
            raise self.fail(key, f"a number from {low:g} to {high:g}")
        return float(value)


def is_number(value: Any) -> bool:
    """Whether a value of a job file is a number that can be compared: no bool, no NaN."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and value == value


def is_plain(text: str, longest: int) -> bool:
    """Whether `text` can stand in a line for people: not empty, not too long, nothing that moves a cursor."""
    return 0 < len(text) <= longest and text.isprintable()


def shown(value: Any) -> str:
    """A value as the job file spells it, shortened."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, Decimal):
        text = str(value).replace("Infinity", "inf").replace("NaN", "nan")
    elif isinstance(value, list):
        text = f"[{', '.join(shown(item) for item in value[:5])}{', ...' if len(value) > 5 else ''}]"
    elif isinstance(value, Mapping):
        text = "a table"
    elif isinstance(value, date | time):
        text = str(value)
    else:
        text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
