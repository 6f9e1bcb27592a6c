"""The joint products that ours and stock CrypTen are timed on, with the same inputs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProductTask:
    """Party k holds a table of `rows` x `widths[k]` reals in (-1, 1); wanted are the cross products of all pairs."""

    name: str
    rows: int
    widths: tuple[int, ...]

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        return tuple(combinations(range(len(self.widths)), 2))

    def columns(self, party: int) -> Floats:
        """That party's table, the same in every run."""
        return np.random.default_rng([self.rows, party]).uniform(-1, 1, (self.rows, self.widths[party]))

    def exact(self) -> list[Floats]:
        """The blocks' cross products in float64, in the order of `blocks`."""
        tables = [self.columns(party) for party in range(len(self.widths))]
        return [tables[k].T @ tables[l] for k, l in self.blocks]


TASKS = (
    *(ProductTask(f"T1 inner product, n = {rows:,}", rows, (1, 1)) for rows in (100, 10_000, 100_000, 1_000_000)),
    ProductTask("T2 X'Y, n = 100,000, 10 x 10", 100_000, (10, 10)),
    ProductTask("T3 Gram, n = 100,000, 3 x 5", 100_000, (5, 5, 5)),
)
