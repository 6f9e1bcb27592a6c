"""Exact products of integer columns mod 2^64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
_WIDE = 20  # from here on torch's blocked kernel is faster than one pass per pair of columns


def inner(x: Integers, y: Integers) -> Integers:
    """All inner products of columns mod 2^64: x of shape (a, n) and y of shape (b, n) give (a, b)."""
    if min(len(x), len(y)) < _WIDE:
        return np.asarray(np.einsum("an,bn->ab", x, y), dtype=np.int64)
    import torch  # only here: the dealer and the server of narrow tables start without it

    a, b = (torch.from_numpy(np.ascontiguousarray(columns)) for columns in (x, y))  # torch takes no negative strides
    return np.asarray((a @ b.t()).numpy(), dtype=np.int64)
