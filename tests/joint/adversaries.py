"""Words that an adversary fixes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FIXED = {"zeros": 0, "ones": 2**64 - 1, "a pattern": 0x0123456789ABCDEF}


class _Fixed:
    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        return np.full(count, self.word, dtype=np.uint64)


def fixed_words(name: str) -> _Fixed:
    return _Fixed(FIXED[name])
