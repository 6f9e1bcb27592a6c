"""The public facts of vertically split columns: rows, names, bounds, who holds what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from smpc.errors import InputError

Floats = npt.NDArray[np.float64]
MAX_BOUND = 1e100
MIN_WIDTH = 1e-9


@dataclass(frozen=True)
class Column:
    """A numeric column and its public bounds, low <= value <= high.

    `category`: the column is the indicator, 0 or 1, of one value of that category; a row has at most one of them.
    """

    name: str
    low: float
    high: float
    category: str | None = None

    def __post_init__(self) -> None:
        size = max(abs(self.low), abs(self.high))
        # float64 must be able to scale the interval to [-1, 1]; written so that NaN fails
        if not (size <= MAX_BOUND and self.half > max(size * MIN_WIDTH, 1 / MAX_BOUND)):
            raise InputError(
                f"bounds of {self.name} are [{self.low}, {self.high}]: need low < high, both within +-{MAX_BOUND:g}, "
                f"further apart than {MIN_WIDTH:g} of their size"
            )
        if self.category is not None and (self.low, self.high) != (0, 1):
            raise InputError(f"bounds of {self.name} are [{self.low}, {self.high}]: an indicator has [0, 1]")

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2

    @property
    def origin(self) -> float:
        """What is 0 in fixed point: the middle; of an indicator, 0."""
        return self.middle if self.category is None else 0.0

    @property
    def unit(self) -> float:
        """What is 1 in fixed point, counted from the origin."""
        return self.half if self.category is None else 1.0


@dataclass(frozen=True)
class Schema:
    """Feature columns of each party, in the parties' order, and the label, which stands after its holder's features."""

    rows: int
    features: Mapping[str, tuple[Column, ...]]
    label_holder: str
    label: Column

    def __post_init__(self) -> None:
        if self.rows < 2:
            raise InputError(f"rows = {self.rows}: need at least 2")
        if self.label_holder not in self.features:
            raise InputError(f"label holder {self.label_holder!r} is none of the parties {', '.join(self.features)}")
        empty = [party for party, width in self.widths.items() if not width]
        if empty or not self.all_features:
            who = empty[0] if empty else "everybody but the label"
            raise InputError(f"{who} has no feature column; give it one or leave it out of the job")
        if self.label.category is not None:
            raise InputError(f"the label {self.label.name} has the category {self.label.category}: leave it out")
        for category in self.categories:
            holders = [p for p, columns in self.features.items() if any(c.category == category for c in columns)]
            if len(holders) > 1:
                raise InputError(f"category {category} is split between {' and '.join(holders)}: one party holds it")

    def columns(self, party: str) -> tuple[Column, ...]:
        """The columns that `party` brings, in the order of its table: features, then the label if it holds it."""
        return (*self.features[party], *([self.label] if party == self.label_holder else []))

    @property
    def widths(self) -> dict[str, int]:
        return {party: len(self.columns(party)) for party in self.features}

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of indicator columns, in order."""
        return tuple(dict.fromkeys(c.category for c in self.all_features if c.category is not None))

    @property
    def all_features(self) -> tuple[Column, ...]:
        """Every feature column, parties in order."""
        return tuple(column for columns in self.features.values() for column in columns)


def scaled(columns: tuple[Column, ...], table: Floats) -> Floats:
    """`table` of shape (width, rows) with every column mapped from its public bounds to [-1, 1], indicators to 0 and 1.

    Raises InputError for another shape, or for values outside the bounds: clip or reject before.
    """
    if table.ndim != 2 or table.shape[0] != len(columns):
        raise InputError(f"table of shape {table.shape}: need ({len(columns)}, rows), one row per column")
    origin = np.array([[column.origin] for column in columns])
    unit = np.array([[column.unit] for column in columns])
    for column, values in zip(columns, table, strict=True):
        outside = int(np.count_nonzero(~((values >= column.low) & (values <= column.high))))
        if outside:
            raise InputError(f"column {column.name}: {outside} values outside its bounds")
    result: Floats = table - origin
    result /= unit
    return np.clip(result, -1, 1, out=result)  # a value on its bound may round to just above 1


def check_categories(columns: tuple[Column, ...], table: Floats) -> None:
    """Raises InputError unless indicators are 0 or 1 and no row has two of one category; shape (width, rows)."""
    for category in dict.fromkeys(c.category for c in columns if c.category is not None):
        indicators = table[[i for i, column in enumerate(columns) if column.category == category]]
        other = int(np.count_nonzero((indicators != 0) & (indicators != 1)))
        double = int(np.count_nonzero(indicators.sum(axis=0) > 1))
        if other or double:
            raise InputError(
                f"category {category}: {other} entries are neither 0 nor 1, {double} rows have two values; "
                "code each row as one value, or leave the category out of the job"
            )
