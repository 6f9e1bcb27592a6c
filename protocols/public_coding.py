"""From a raw table to numbers, by public rules only: bounds and categories are declared, never read off the data.

Values beyond their bounds are clipped. A category becomes indicators, the first value listed being the reference
without a column. A label in [low, high] is for the linear loss, one of two classes for the logistic loss. There is no
column of ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols.schema import Column, Floats
from smpc.errors import InputError

Table = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Numeric:
    """A number with public bounds in its unit, after `read` (a public function of the raw value)."""

    name: str
    low: float
    high: float
    read: Callable[[Floats], Floats] = np.asarray


@dataclass(frozen=True)
class Category:
    """Text with its public values; as a label, (class 0, class 1)."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Dataset:
    """x (n, d) and y (n,) in their units, clipped to the bounds of `columns` and `label`."""

    x: Floats
    y: Floats
    columns: tuple[Column, ...]
    label: Column
    loss: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def indicators(self) -> npt.NDArray[np.bool_]:
        """Which columns are 0 or 1 for a value of a category; shape (d,)."""
        return np.array([column.category is not None for column in self.columns])

    def scaled(self, *, signed: bool = True) -> tuple[Floats, Floats]:
        """x, and y of a linear loss, with their bounds mapped to [-1, 1]; classes stay 0 and 1.

        Unless `signed`, indicators stay 0 and 1 as well: shorter rows, for methods that bound the L2 norm of a row.
        """
        middle = np.array([column.middle for column in self.columns])
        half = np.array([column.half for column in self.columns])
        keep = self.indicators & (not signed)
        x = np.clip((self.x - np.where(keep, 0.0, middle)) / np.where(keep, 1.0, half), -1, 1)
        y = self.y if self.loss == "logistic" else np.clip((self.y - self.label.middle) / self.label.half, -1, 1)
        return x, y


def encode(table: Table, features: Sequence[Numeric | Category], label: Numeric | Category) -> Dataset:
    """Raises InputError for missing columns, numbers that are not finite and values that are no public category."""
    parts, columns = [], []
    for feature in features:
        if isinstance(feature, Numeric):
            parts.append(_number(table, feature))
            columns.append(Column(feature.name, feature.low, feature.high))
        else:
            codes = _code(table, feature)
            for code, value in enumerate(feature.values[1:], start=1):
                parts.append((codes == code).astype(np.float64))
                columns.append(Column(f"{feature.name}={value}", 0.0, 1.0, feature.name))
    if isinstance(label, Numeric):
        y, bounds, loss = _number(table, label), Column(label.name, label.low, label.high), "linear"
    else:
        y, bounds, loss = _code(table, label).astype(np.float64), Column(label.name, 0.0, 1.0), "logistic"
    return Dataset(np.column_stack(parts), y, tuple(columns), bounds, loss)


def _column(table: Table, name: str) -> npt.NDArray[Any]:
    if name not in table:
        raise InputError(f"column {name} is missing; the table has {', '.join(list(table)[:20])}")
    return table[name]


def _number(table: Table, feature: Numeric) -> Floats:
    values = feature.read(np.asarray(_column(table, feature.name), dtype=np.float64))
    if not np.isfinite(values).all():
        raise InputError(f"column {feature.name}: {int((~np.isfinite(values)).sum())} entries are not finite")
    clipped: Floats = np.clip(values, feature.low, feature.high)
    return clipped


def _code(table: Table, feature: Category) -> npt.NDArray[np.int64]:
    values = np.char.strip(np.asarray(_column(table, feature.name), dtype=np.str_))
    codes = np.full(len(values), -1, dtype=np.int64)
    for code, value in enumerate(feature.values):
        codes[values == value] = code
    if (codes < 0).any():
        first = str(values[codes < 0][0])
        raise InputError(f"column {feature.name}: {first!r} is none of its categories {', '.join(feature.values)}")
    return codes
