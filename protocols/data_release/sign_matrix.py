"""Products with a random sign matrix that is never stored: B in {-1, 1}^(k x n), streamed from a seed (paper 2).

The seed keys AES-CTR. Records are taken in groups of eight: byte g k + r of the keystream holds the signs of records
8 g .. 8 g + 7 in row r of B, bit j for record 8 g + j, 1 for -1. So the matrix is a function of (seed, k) alone, and
whoever has the seed streams the same one, however large his blocks are.

With eight records a column has 2^8 signed sums, looked up by the byte: an eighth of the additions, and no entry of B is
ever converted to a number (Arlazarov, Dinic, Kronrod and Faradzhev 1970).
"""

from __future__ import annotations

import numpy as np

from mechanisms import validate
from mechanisms.randomness import Stream
from smpc.errors import InputError
from smpc.ring import Integers

_GROUP = 8
_BLOCK = 512  # records at once: 64 groups, so that bytes come in whole words; tables and bytes stay in the cache
_LARGEST = 2**50  # tables are made in float64, where sums of eight smaller integers are exact
_PATTERNS = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")


def signed_sums(seed: bytes, count: int, columns: Integers) -> Integers:
    """The exact integers B x of every column x: (width, records) gives (width, count).

    `columns` hold integers within +-2^50. Cost: count x records / 8 keystream bytes and as many additions a column;
    memory beside the result: some megabytes, for any number of records.
    """
    rows = validate.integer("count", count, low=1)
    if columns.ndim != 2 or columns.size == 0 or max(int(columns.max()), -int(columns.min())) > _LARGEST:
        raise InputError(f"columns of shape {columns.shape}: need (width, records) with integers within +-2^50")
    width, records = columns.shape
    stream = Stream(seed)
    sums = np.zeros((width, rows), dtype=np.int64)
    for start in range(0, records, _BLOCK):
        signs = stream.words(_BLOCK // _GROUP * rows // 8).view(np.uint8).reshape(-1, rows).astype(np.intp)
        block = np.zeros((width, _BLOCK))
        block[:, : records - start] = columns[:, start : start + _BLOCK]
        for total, values in zip(sums, block.reshape(width, -1, _GROUP), strict=True):
            tables = (values @ _PATTERNS.T).astype(np.int64)
            for table, patterns in zip(tables, signs, strict=True):
                total += table.take(patterns)
    return sums
