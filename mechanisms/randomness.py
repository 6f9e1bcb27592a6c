"""Secure random words: AES-256 in counter mode, reseeded in every process.

NumPy's and torch's generators are predictable from their output (MT19937) or have 32 effective seed bits (torch's CPU
generator), so neither may touch a mask or a noise draw.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

KEY_BYTES = 32
_ZEROS = bytes(1 << 16)


class RandomWords(Protocol):
    """A source of uniform 64-bit words."""

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """`count` independent uniform words."""
        ...


class Stream:
    """The keystream of one 256-bit key: equal keys give equal words, in the order drawn."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"key has {len(key)} bytes, needs {KEY_BYTES}")
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        """The next `count` words of the stream, shape (count,)."""
        out = np.empty(count, dtype=np.uint64)
        buffer = out.data.cast("B")
        for start in range(0, len(buffer), len(_ZEROS)):
            part = buffer[start : start + len(_ZEROS)]
            self._encryptor.update_into(_ZEROS[: len(part)], part)
        return out


class SecureRandom:
    """Words that nobody can predict: keyed by the operating system, with a new key after every fork."""

    def __init__(self) -> None:
        self._process = -1
        self._stream: Stream

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        if self._process != os.getpid():  # a forked child would repeat its parent's words
            self._process = os.getpid()
            self._stream = Stream(os.urandom(KEY_BYTES))
        return self._stream.words(count)
