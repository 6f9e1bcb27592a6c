"""What the untrusted server does: inner products of encrypted columns, accumulated over row blocks.

It sees ciphertexts under the two parties' keys and no secret. Cost of a block of n rows and d_k x d_l columns:
4 n d_k d_l Miller loops, their squarings shared inside a call; at the end 4 d_k d_l final exponentiations. Memory:
4 d_k d_l elements of GT and the block, whatever the number of rows.
"""

from __future__ import annotations

from itertools import product

from smpc.bgn.curve import GT, Elements, final_exponentiation, miller_product
from smpc.bgn.threads import on_all_cores, row_blocks

_ROWS = 128  # a call's length: longer ones are no faster a pair
_COMPONENTS = ((0, 0), (0, 1), (1, 0), (1, 1))  # of (S, T) and (S', T'): s, t, u, v


class InnerProducts:
    """Sums over rows of the products of two parties' columns: `add` row blocks, then `result`."""

    def __init__(self, first: int, second: int) -> None:
        self._shape = (first, second)
        self._values = GT.identity(first * second, 4)

    def add(self, first: Elements, second: Elements, threads: int | None = None) -> None:
        """Take in rows: level-1 ciphertexts (d_k, 2, n, words) of G1 and (d_l, 2, n, words) of G2."""
        pairs = list(product(range(self._shape[0]), range(self._shape[1]), _COMPONENTS))
        tasks = list(product(range(len(pairs)), row_blocks(first.shape[2], _ROWS)))

        def multiply(task: tuple[int, slice]) -> Elements:
            a, b, (i, j) = pairs[task[0]]
            return miller_product(first[a, i, task[1]], second[b, j, task[1]])

        values = self._values.reshape(-1, GT.words)
        for (place, _), value in zip(tasks, on_all_cores(multiply, tasks, threads), strict=True):
            values[place] = GT.op(values[place], value)

    def result(self) -> Elements:
        """Level-2 ciphertexts, shape (d_k d_l, 4, words), the second column's index fastest."""
        return final_exponentiation(self._values)
