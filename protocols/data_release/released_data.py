"""A released data set: noisy numbers, and everything public that is needed to learn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mechanisms.guarantee import Guarantee
from protocols.schema import Column, Floats
from smpc.errors import InputError

ONES = "(ones)"  # the column of ones, mixed like the others and exact: it depends on nobody's data


@dataclass(frozen=True)
class ReleasedColumn:
    """A column as it was released: its declared bounds, the range they were mapped to, its noise's variance."""

    column: Column
    low: float
    high: float
    noise_variance: float

    @property
    def slope(self) -> float:
        """A released number is slope x value + offset, and noise."""
        return (self.high - self.low) / (self.column.high - self.column.low)

    @property
    def offset(self) -> float:
        return self.low - self.slope * self.column.low


@dataclass(frozen=True)
class ReleasedData:
    """`values`, shape (rows, 1 + columns): the column of ones, then `columns` in order, in their ranges.

    method `rmgm`: a row mixes all `records`; `dgm`: a row is a record; `gram`: row a, column b is the noisy sum of
    products of columns a and b, the label's square left out, noise_variance that of a column's sums with the features.
    release: the same for all parts of one release. `label` names the column to be predicted. model: coefficients by
    name, if the server solved it already.
    """

    release: str
    method: str
    records: int
    label: str
    columns: tuple[ReleasedColumn, ...]
    values: Floats
    guarantee: Guarantee
    model: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != 1 + len(self.columns):
            raise InputError(
                f"values of shape {self.values.shape} for {len(self.columns)} columns: need one more of ones"
            )
        if not np.isfinite(self.values).all():
            raise InputError("released values are not finite: the file is damaged")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.column.name for item in self.columns)

    @property
    def features(self) -> tuple[ReleasedColumn, ...]:
        return tuple(item for item in self.columns if item.column.name != self.label)


def join(parts: Sequence[ReleasedData]) -> ReleasedData:
    """The parties' parts of one release side by side. Raises InputError for parts of two releases and for repeats."""
    first = parts[0]
    for part in parts[1:]:
        if (part.release, part.method, part.records, part.label) != (
            first.release,
            first.method,
            first.records,
            first.label,
        ):
            raise InputError(f"parts of two releases, {first.release} and {part.release}: give parts of one")
        if not np.array_equal(part.values[:, 0], first.values[:, 0]):
            raise InputError("the parts' columns of ones differ: one of the files is damaged")
    if len(parts) > 1 and first.method == "gram":
        raise InputError("a noisy Gram matrix is whole: give one file")
    names = [name for part in parts for name in part.names]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(f"column {twice} is given twice: name each part once")
    if first.label not in names:
        raise InputError(f"no part has the label {first.label}: add the file of its party")
    values = np.column_stack([first.values[:, :1], *(part.values[:, 1:] for part in parts)])
    return replace(first, columns=tuple(item for part in parts for item in part.columns), values=values)
