"""One party's secrets with the others: zero-sharings between all pairs, masks, and its own randomness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.randomness import SecureRandom, Stream
from smpc.engine.handshake import Agreement, derive
from smpc.ring import Integers


class Sharing:
    """Fresh random shares of zero for one party, each mask known to exactly two parties.

    Between all pairs, not ring neighbours: whichever K - 1 parties collude, what the last one sends stays uniform.
    The pair keys come from the two parties alone.
    """

    def __init__(self, me: str, parties: Sequence[str], agreement: Agreement) -> None:
        self.me = me
        self.parties = tuple(parties)
        self.rank = self.parties.index(me)
        self.random = SecureRandom()
        self._signed = [
            (1 if self.rank < rank else -1, Stream(agreement.key(name, "zero")))
            for rank, name in enumerate(self.parties)
            if name != me
        ]

    def zero(self, shape: Sequence[int]) -> Integers:
        """This party's share of a fresh additive sharing of zero; every party must draw it at the same step."""
        total = np.zeros(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64)
        for sign, stream in self._signed:
            words = stream.words(total.size)
            total = total + words if sign > 0 else total - words
        return total.view(np.int64).reshape(tuple(shape))

    def zero_xor(self, shape: Sequence[int]) -> Integers:
        """The same for exclusive-or sharings."""
        total = np.zeros(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64)
        for _, stream in self._signed:
            total ^= stream.words(total.size)
        return total.view(np.int64).reshape(tuple(shape))

    def uniform(self, shape: Sequence[int]) -> Integers:
        """Ring elements that only this process knows."""
        return self.random.words(int(np.prod(shape, dtype=np.int64))).view(np.int64).reshape(tuple(shape))


def keyed(seed: bytes, *purpose: object) -> Stream:
    """The stream that a party and the dealer both derive from their common key."""
    return Stream(derive(seed, *purpose))


def ring_elements(stream: Stream, shape: Sequence[int]) -> Integers:
    """The next ring elements of a stream."""
    return stream.words(int(np.prod(shape, dtype=np.int64))).view(np.int64).reshape(tuple(shape))
