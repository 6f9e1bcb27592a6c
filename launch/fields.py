"""Reads typed values out of a parsed TOML table, with one-line errors that name file, key, value and remedy."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from smpc.errors import InputError


class JobError(InputError):
    """A job file that cannot be used."""


class Fields:
    """One table of a job file. `where` names it in errors; keys that nobody asked for are refused by `finish`."""

    def __init__(self, where: str, table: Any, known: Sequence[str]) -> None:
        if not isinstance(table, Mapping):
            raise JobError(f"{where} is {table!r}: must be a table of keys and values")
        self._where = where
        self._table = table
        for key in table:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
                raise JobError(f"{where}: unknown key {key!r}; {hint}")

    def fail(self, key: str, wanted: str) -> JobError:
        return JobError(f"{self._where}: {key} = {self._table.get(key)!r} must be {wanted}")

    def has(self, key: str) -> bool:
        return key in self._table

    def get(self, key: str) -> Any:
        """A value that must be there."""
        if key not in self._table:
            raise JobError(f"{self._where}: {key} is missing; add it")
        return self._table[key]

    def text(self, key: str, default: str | None = None, *, among: Sequence[str] = ()) -> str:
        value = self._table.get(key, default) if default is not None else self.get(key)
        if not isinstance(value, str) or not value or (among and value not in among):
            raise self.fail(key, f"one of {', '.join(among)}" if among else "text")
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
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not low <= value <= high:
            raise self.fail(key, f"a number from {low:g} to {high:g}")
        return float(value)
