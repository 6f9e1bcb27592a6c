"""Uniform secret scalars modulo the group order r."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import RandomWords
from smpc.bgn.mcl import ORDER

Scalars = npt.NDArray[np.uint64]
_ORDER_WORDS = [(ORDER >> (64 * i)) & (2**64 - 1) for i in range(4)]
_TOP = np.uint64(2**63 - 1)  # r has 255 bits


def random_scalars(random: RandomWords, count: int) -> Scalars:
    """`count` independent uniform scalars as four little-endian words, shape (count, 4); 91 % of proposals pass."""
    kept: list[Scalars] = []
    missing = count
    while missing > 0:
        words = random.words(4 * (missing + 8)).reshape(-1, 4)
        words[:, 3] &= _TOP
        kept.append(words[_below_order(words)][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept) if kept else np.zeros((0, 4), np.uint64)


def _below_order(words: Scalars) -> npt.NDArray[np.bool_]:
    below = np.zeros(len(words), np.bool_)
    for i, limit in enumerate(_ORDER_WORDS):  # the highest word decides last
        below = (words[:, i] < np.uint64(limit)) | ((words[:, i] == np.uint64(limit)) & below)
    return below


def random_exponents(random: RandomWords, count: int) -> list[int]:
    """The same as Python integers."""
    return [int.from_bytes(row.tobytes(), "little") for row in random_scalars(random, count)]
