"""How far released integers can move between neighbours, as exact integers from declared bounds.

L1 sensitivity (for Laplace noise) and squared L2 sensitivity (for Gaussian and gamma-norm noise). The data are clipped
and rounded to integers first, so that these integers bound what really happens; nothing is rounded afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms import validate
from mechanisms.enclosure import sqrt_above


@dataclass(frozen=True)
class Sensitivity:
    """The largest L1 norm and the largest squared L2 norm of the change, in units of the released integers."""

    l1: int
    l2_squared: int

    @property
    def l2(self) -> Fraction:
        """A rational upper bound of the L2 norm, exact when it is an integer."""
        return sqrt_above(self.l2_squared)

    def __add__(self, other: Sensitivity) -> Sensitivity:
        """A bound for two statistics released together."""
        return Sensitivity(self.l1 + other.l1, self.l2_squared + other.l2_squared)


def sums(bounds: Sequence[tuple[int, int]]) -> Sensitivity:
    """Sums of columns over records or parties, one of which is replaced; bounds = (low, high) of each column.

    Every column moves by at most high - low, and all of them can at once.
    """
    widths = []
    for low, high in bounds:
        if low > high:
            raise ValueError(f"bounds=({low}, {high}) are reversed: give (low, high)")
        widths.append(high - low)
    return Sensitivity(sum(widths), sum(width * width for width in widths))


def vote_counts(queries: int, classes: int) -> Sensitivity:
    """Counts per query and class of one-hot votes, one voter of which is replaced (paper 3).

    A changed vote moves two counts of its query by one. With two classes only the count of one class is released, the
    other follows from the public number of voters: one count moves.
    """
    validate.integer("queries", queries, low=1)
    moved = 1 if validate.integer("classes", classes, low=2) == 2 else 2
    return Sensitivity(moved * queries, moved * queries)


def signed_sums(rows: int, columns: int, bound: int) -> Sensitivity:
    """The integers B D of a random-mixing release, B in {-1, 1}^(rows x n) known to everybody (paper 2, section 4).

    D has integer entries |D| <= bound. Replacing a record changes each of the rows x columns sums by at most 2 bound,
    whatever B is, and by that much at once.
    """
    count = validate.integer("rows", rows, low=1) * validate.integer("columns", columns, low=1)
    step = 2 * validate.integer("bound", bound, low=1)
    return Sensitivity(count * step, count * step * step)
