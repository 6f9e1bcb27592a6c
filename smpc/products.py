"""Products of vertically split columns as secret shares: one masked message per party (plan, shares, cost).

Each party k masks its columns once, E_k = X_k - A_k, and sends E_k to the parties it shares a block with. The dealer,
who knows the masks' seeds and sees no message, corrects: for a block (k, l), k before l, it sends A_k'A_l - s_kl to l.
Then k holds X_k'E_l + s_kl and l holds E_k'A_l + (A_k'A_l - s_kl); the sum is X_k'X_l. One matrix product a side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, combinations

import numpy as np

from smpc.errors import InputError
from smpc.ring import Integers, inner

MASKED = "masked columns"  # the one message of a product
BLOCK_BYTES = 1 << 19  # of the widest party's columns: a block stays in the cache, memory does not grow with the rows


@dataclass(frozen=True)
class ProductPlan:
    """The public shape of one joint product: rows, each party's number of columns, the blocks wanted."""

    rows: int
    widths: Mapping[str, int]
    blocks: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if self.rows < 1 or any(width < 1 for width in self.widths.values()):
            raise InputError(f"a product needs rows and columns: rows = {self.rows}, widths = {dict(self.widths)}")

    @classmethod
    def gram(cls, rows: int, widths: Mapping[str, int]) -> ProductPlan:
        """Every block between two parties."""
        return cls(rows, dict(widths), tuple(combinations(widths, 2)))

    def partners(self, party: str) -> tuple[str, ...]:
        """Who `party` shares a block with: the receivers of its masked columns."""
        return tuple(l if k == party else k for k, l in self.blocks if party in (k, l))

    @property
    def rows_per_message(self) -> int:
        return max(1, BLOCK_BYTES // (8 * max(self.widths.values())))

    def row_blocks(self) -> Iterator[slice]:
        """The rows of each message, in order."""
        for start in range(0, self.rows, self.rows_per_message):
            yield slice(start, min(self.rows, start + self.rows_per_message))


def places(widths: Mapping[str, int]) -> dict[str, slice]:
    """Where each party's columns stand in the Gram matrix, whose first column is the one of ones."""
    edges = list(accumulate(widths.values(), initial=1))
    return {party: slice(edges[i], edges[i + 1]) for i, party in enumerate(widths)}


def own_gram(widths: Mapping[str, int], party: str, columns: Integers | None, one: int) -> Integers:
    """The Gram matrix's entries that `party` knows alone: its columns' products, and their sums times `one`.

    `columns` has shape (width, rows), None for a party without any. Everything else is 0.
    """
    size = 1 + sum(widths.values())
    matrix = np.zeros((size, size), dtype=np.int64)
    if columns is not None:
        place = places(widths)[party]
        matrix[place, place] = inner(columns, columns)
        matrix[0, place] = matrix[place, 0] = columns.sum(axis=1) * one
    return matrix
