"""`pair`: every party under its own keys; only the two parties of a pair can open its sums, together.

With noise on shares, a run of `protocols.functional.protocol` sends

step  from -> to      message             the receiver learns
1     P_k -> P_l      keys                P_k's public keys, proven
2     P_k -> server   encrypted columns   nothing: encrypted under P_k's own keys
3     server -> P_l   encrypted sums      nothing: under P_k's key too
4     P_l -> P_k      noisy sums          nothing: under P_l's key too, made fresh, with P_l's noise
5     P_k -> P_l      partial decryption  the sums of their columns' products with both noises, epsilon-DP
6     P_k -> server   noisy coefficients  the same, and each party's own ones with its noise
7     server -> all   model               post-processing of step 6

So the server with any parties learns, of two others, what it is told in step 6; of a party and one of them, values
with the other's full draw. A value opened `unprotected` is seen by its pair's second party, too.

Cost an opened entry: 7 KB in all; 7 powers in GT to make it fresh, twice; 4 to decrypt partly, 5 to finish; three
checks of received elements; one logarithm.
"""

from __future__ import annotations

import numpy as np

from smpc.bgn.curve import G1, G2, GT, Elements, Group
from smpc.bgn.decrypt import COMPONENTS, Partial, decrypt_partly, finish, partial_bytes, read_ciphertexts
from smpc.bgn.dlog import DiscreteLog
from smpc.bgn.entries import Entries, Indices, Pair
from smpc.bgn.keys import SecretKey, key_bytes, read_key
from smpc.bgn.mode import Part, Traffic, one_message, to_each_other
from smpc.bgn.scheme import TargetKey
from smpc.bgn.server_products import ServerMode
from smpc.cast import Cast
from smpc.ring import Integers
from smpc.transcript import OTHER_PARTY, PARTY, SERVER

KEYS, SUMS, NOISY, PARTIAL = "keys", "encrypted sums", "noisy sums", "partial decryption"
_GROUPS = (G1, G2)


class PairMode(ServerMode):
    """See the module."""

    KEY_STEPS = ((PARTY, OTHER_PARTY, KEYS),)
    OPENING_STEPS = ((SERVER, OTHER_PARTY, SUMS), (OTHER_PARTY, PARTY, NOISY), (PARTY, OTHER_PARTY, PARTIAL))

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._secrets: dict[Group, SecretKey] = {}
        self._public: dict[str, dict[Group, Elements]] = {}

    def exchange_keys(self) -> None:
        if not self.part.is_party:
            return
        part = self.part
        self._secrets = {group: SecretKey.make(group, part.random) for group in _GROUPS}
        parts = [self._secrets[group].publish(part.nonce, part.me, part.random) for group in _GROUPS]
        message = np.concatenate(parts)
        for name in part.peers:
            part.network.send(name, KEYS, message)
        self._public[part.me] = {group: self._secrets[group].public for group in _GROUPS}
        for name in part.peers:
            received = np.split(part.receive(name, KEYS, message.shape), [key_bytes(G1)])
            self._public[name] = {
                group: read_key(group, key, part.nonce, name) for group, key in zip(_GROUPS, received, strict=True)
            }

    def public_key(self, group: Group) -> Elements:
        return self._secrets[group].public

    def open(self, entries: Entries, draws: Integers | None, to: str, session: bytes) -> Integers:
        me, pairs = self.part.me, list(entries.pairs())
        values = np.zeros(entries.local.shape, np.int64)
        for k, l, places in pairs:
            if self.part.is_server:
                self.part.network.send(l, SUMS, GT.encode(entries.ciphertexts((k, l), places, GT)))
        for k, l, places in pairs:
            if l == me:
                noisy = self._noisy(self.part.cast.server, SUMS, (k, l), entries.draws_of(me, draws, places))
                self.part.network.send(k, NOISY, GT.encode(noisy))
        for k, l, places in pairs:
            if k == me:
                fresh = self._noisy(l, NOISY, (k, l), entries.draws_of(me, draws, places))
                partial = decrypt_partly(fresh, self._secrets[G1], session, me, self.part.random)
                self.part.network.send(l, PARTIAL, partial.encode())
        for k, l, places in pairs:
            if l == me:
                values[places] = self._finish(k, places, entries, session)
        return values

    def _noisy(self, sender: str, label: str, pair: Pair, noise: list[int]) -> Elements:
        received = self.part.receive(sender, label, (len(noise), COMPONENTS, GT.size))
        key = TargetKey(self._public[pair[0]][G1], self._public[pair[1]][G2])
        return key.add(read_ciphertexts(received, len(noise), what=f"{sender}: {label}"), noise, self.part.random)

    def _finish(self, k: str, places: Indices, entries: Entries, session: bytes) -> Integers:
        message = self.part.receive(k, PARTIAL, (partial_bytes(len(places)),))
        partial = Partial.decode(message, len(places), what=f"{k}: {PARTIAL}")
        powers = finish(partial, self._public[k][G1], self._secrets[G2], session, k)
        return DiscreteLog(GT, entries.reach).all_of(powers, to_the_end=entries.noise is None)

    @staticmethod
    def teller(k: str, l: str, to: str) -> str:
        return l

    @staticmethod
    def key_traffic(cast: Cast) -> Traffic:
        return to_each_other(cast.parties, one_message(KEYS, 1, sum(key_bytes(group) for group in _GROUPS)))

    @staticmethod
    def opening_traffic(cast: Cast, entries: Entries, to: str) -> Traffic:
        return [
            message for k, l, places in entries.pairs() for message in opening_traffic(cast.server, k, l, len(places))
        ]


def opening_traffic(server: str, k: str, l: str, count: int) -> Traffic:
    """The messages that open so many sums of a pair."""
    ciphertexts = count * COMPONENTS * GT.size
    return [
        (server, l, one_message(SUMS, 3, ciphertexts)),
        (l, k, one_message(NOISY, 3, ciphertexts)),
        (k, l, one_message(PARTIAL, 1, partial_bytes(count))),
    ]
