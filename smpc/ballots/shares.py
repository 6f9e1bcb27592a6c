"""One voter's secret shares, compressed: a 32-byte seed for every compute party but the first.

A seed stands for the words of its AES-256-CTR keystream; the first party gets the votes minus all of these, mod 2^64.
Any K - 1 of the K contents are uniform whatever the votes are.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from mechanisms.randomness import KEY_BYTES, Stream
from smpc.ring import Integers

_WORD_BYTES = 8


def split(votes: Integers, parties: Sequence[str]) -> dict[str, bytes]:
    """The content for each of the `parties`; `votes` are int64 of any shape, flattened in C order."""
    seeds = {name: os.urandom(KEY_BYTES) for name in parties[1:]}
    rest = votes.reshape(-1).astype("<i8")
    for seed in seeds.values():
        rest = rest - expand(seed, rest.size, first=False)
    return {parties[0]: rest.tobytes(), **seeds}


def content_bytes(entries: int, *, first: bool) -> int:
    """How long a content must be."""
    return _WORD_BYTES * entries if first else KEY_BYTES


def expand(content: bytes, entries: int, *, first: bool) -> Integers:
    """A party's share, shape (entries,), from its content."""
    if len(content) != content_bytes(entries, first=first):
        raise ValueError(f"content of {len(content)} bytes: need {content_bytes(entries, first=first)}")
    if first:
        return np.frombuffer(content, dtype="<i8").astype(np.int64)
    return Stream(content).words(entries).view(np.int64)
