"""Opening of pairs' entries over the network: the messages of `decrypt`, for all pairs at once.

step  from -> to       message             the receiver learns
1     server -> P_l    encrypted sums      nothing: under P_k's key too
2     P_l -> P_k       noisy sums          nothing: under P_l's key too, made fresh, with P_l's noise
3     P_k -> P_l       partial decryption  the sums with both noises; it may subtract its own, not P_k's

Cost an entry: 7 KB in all; 7 powers in GT to make it fresh, twice; 4 to decrypt partly, 5 to finish; three checks of
received elements; one logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn import decrypt
from smpc.bgn.curve import G1, G2, GT, Elements, Group
from smpc.bgn.decrypt import COMPONENTS, Partial, partial_bytes, read_ciphertexts
from smpc.bgn.dlog import DiscreteLog
from smpc.bgn.entries import Entries, Indices, Pair
from smpc.bgn.keys import SecretKey
from smpc.bgn.scheme import TargetKey
from smpc.cost import frame_bytes
from smpc.engine.network import Network
from smpc.errors import SmpcError
from smpc.ring import Integers

SUMS, NOISY, PARTIAL = "encrypted sums", "noisy sums", "partial decryption"


class OutOfWindow(SmpcError):
    """A value with its noise left the declared window. It says not which: a fixed outcome, charged like any other."""

    def __init__(self) -> None:
        super().__init__(
            "a value left the window that its bounds and noise allow (probability below 2^-40): nothing is released, "
            "the budget stays charged; start a new release"
        )


@dataclass(frozen=True)
class Opener:
    """A party's part in openings: its secret keys, everybody's public ones, its randomness for encryption."""

    network: Network
    server: str
    secrets: Mapping[Group, SecretKey]
    public: Mapping[str, Mapping[Group, Elements]]
    random: RandomWords

    def open(self, entries: Entries, draws: Integers | None, session: bytes) -> Integers:
        """The values of the entries that this party is to tell, zeros elsewhere.

        `draws` is its own noise. `session` is used for this opening only. Raises OutOfWindow; PeerError that names who
        sent something malformed or a false partial decryption.
        """
        me, pairs = self.network.me, list(entries.pairs())
        values = np.zeros(entries.local.shape, np.int64)
        own = entries.output_by(me)
        own = own[entries.first[own] == entries.second[own]]
        noise = entries.draws_of(me, draws, own)
        values[own] = entries.local[own] * entries.times[own] + np.array(noise, dtype=np.int64)
        for k, l, places in pairs:
            if l == me:
                self._add_noise(self.server, k, SUMS, NOISY, (k, l), entries.draws_of(me, draws, places))
        for k, l, places in pairs:
            if k == me:
                fresh = self._noisy(l, NOISY, (k, l), entries.draws_of(me, draws, places))
                partial = decrypt.decrypt_partly(fresh, self.secrets[G1], session, me, self.random)
                self.network.send(l, PARTIAL, partial.encode())
        for k, l, places in pairs:
            if l == me:
                values[places] = self._finish(k, places, entries.reach, session)
        return values

    def _noisy(self, sender: str, label: str, pair: Pair, noise: list[int]) -> Elements:
        shape = (len(noise), COMPONENTS, GT.size)
        received = self.network.receive(sender, label, np.uint8, shape).view(np.uint8)
        key = TargetKey(self.public[pair[0]][G1], self.public[pair[1]][G2])
        return key.add(read_ciphertexts(received, len(noise), what=f"{sender}: {label}"), noise, self.random)

    def _add_noise(self, sender: str, to: str, label: str, next_label: str, pair: Pair, noise: list[int]) -> None:
        self.network.send(to, next_label, GT.encode(self._noisy(sender, label, pair, noise)))

    def _finish(self, k: str, places: Indices, reach: int, session: bytes) -> list[int]:
        count = len(places)
        message = self.network.receive(k, PARTIAL, np.uint8, (partial_bytes(count),)).view(np.uint8)
        partial = Partial.decode(message, count, what=f"{k}: {PARTIAL}")
        powers = decrypt.finish(partial, self.public[k][G1], self.secrets[G2], session, k)
        found = DiscreteLog(GT, reach)(powers)
        values = [value for value in found if value is not None]
        if len(values) < count:
            raise OutOfWindow
        return values


def serve(network: Network, entries: Entries) -> None:
    """The server's part: hand each pair its encrypted sums, times the public factors. It learns nothing."""
    for k, l, places in entries.pairs():
        sums = entries.ciphertexts((k, l), places)
        factors = [int(factor) for factor in entries.times[places]]
        scaled = np.stack([GT.power(sums[:, i], factors) for i in range(COMPONENTS)], axis=1)
        network.send(l, SUMS, GT.encode(scaled))


def opening_bytes(counts: Iterable[tuple[Pair, int]], party: str) -> int:
    """Bytes that `party` sends other parties to open so many entries of each pair, framing included."""
    total = 0
    for (k, l), count in counts:
        if party == l:
            total += frame_bytes(NOISY, 3, count * COMPONENTS * GT.size)
        if party == k:
            total += frame_bytes(PARTIAL, 1, partial_bytes(count))
    return total
