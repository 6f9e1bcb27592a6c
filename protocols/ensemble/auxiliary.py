"""The auxiliary samples: public rows in the unit ball, on the lattice on which they are really multiplied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from protocols.schema import Column, Floats
from smpc.errors import InputError
from smpc.ring import Integers

BITS = 20  # rounding moves a mean of rows by 2^-20 at most: far below the noise of any useful epsilon
_LONGEST = 1 + 2.0**-40  # float64 scaling to length 1 may err by less


def unit_rows(features: Floats) -> Floats:
    """Rows with an intercept inside the unit ball: (x, 1) / sqrt 2, x shortened to length 1 where it is longer.

    A public rule for one row at a time. `features` (n, d) gives (n, d + 1). Raises InputError if not finite.
    """
    _check(features)
    lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
    shortened = features / np.maximum(lengths, 1.0)[:, None]
    rows: Floats = np.hstack([shortened, np.ones((len(features), 1))]) / np.sqrt(2.0)
    return rows


def bounded_rows(features: Floats, columns: Sequence[Column]) -> Floats:
    """`unit_rows` of features (n, d) in their own units, each scaled to [0, 1] by its column's bounds first."""
    low, high = (np.array([getattr(column, end) for column in columns]) for end in ("low", "high"))
    return unit_rows((features - low) / (high - low))


@dataclass(frozen=True)
class Auxiliary:
    """N rows of integers, each row / 2^bits in the unit ball: shape (N, d)."""

    rows: Integers
    bits: int = BITS

    @classmethod
    def of(cls, x: Floats) -> Auxiliary:
        """Rows `x` (N, d), rounded towards zero, so that none gets longer. Raises InputError for what is unfit."""
        _check(x)
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
        longer = int(np.count_nonzero(lengths > _LONGEST))
        if longer:
            raise InputError(
                f"auxiliary samples: {longer} rows are longer than 1, the longest {lengths.max():.4g}; scale them by a "
                "public rule (`unit_rows`), never by the largest row"
            )
        return cls(np.trunc(x * float(1 << BITS)).astype(np.int64))

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def columns(self) -> int:
        return int(self.rows.shape[1])

    @cached_property
    def x(self) -> Floats:
        """The rows as numbers, exactly."""
        return np.ldexp(self.rows.astype(np.float64), -self.bits)


def _check(x: Floats) -> None:
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(f"auxiliary samples of shape {x.shape}: need (samples, columns), at least one of each")
    wrong = int(np.count_nonzero(~np.isfinite(x).all(axis=1)))
    if wrong:
        raise InputError(f"auxiliary samples: {wrong} rows have entries that are not finite; remove them")
