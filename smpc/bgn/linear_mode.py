"""`linear`: no pairing; the second party of a pair multiplies its plain columns into the first one's encrypted ones.

With noise on shares, a run of `protocols.functional.protocol` sends

step  from -> to      message             the receiver learns
1     P_k -> P_l      keys                P_k's public key, proven
2     P_k -> P_l      encrypted columns   nothing: encrypted under P_k's own key
3     P_l -> P_k      noisy sums          the sums of their columns' products with P_l's noise, epsilon-DP; made fresh
4     P_k -> server   noisy coefficients  the same with P_k's noise, too; each party's own ones with its noise
5     server -> all   model               post-processing of step 4

P_k alone holds the key of what it sent, so P_l's proof is the sum itself: one that returns something else than the sum,
or a multiple of it, is outside the model. A value opened `unprotected` is seen by its pair's first party, too. The
server takes no part in products, and a party uploads to every later one: bytes grow with their number. Cost an opened
entry: 96 bytes, 3 powers in G1 at P_l, 4 and a logarithm in G1 at P_k.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from smpc.bgn import linear
from smpc.bgn.curve import G1, Elements
from smpc.bgn.dlog import DiscreteLog
from smpc.bgn.entries import Entries, Pair
from smpc.bgn.keys import SecretKey, key_bytes, read_key
from smpc.bgn.linear import PlainProducts
from smpc.bgn.mode import Mode, Part, Traffic, one_message, to_each_other
from smpc.bgn.scheme import Encryptor, decrypt_level1
from smpc.bgn.upload import ENCRYPTED, Upload, ask_on, message_rows, receive, upload_traffic
from smpc.cast import Cast
from smpc.products import ProductPlan
from smpc.ring import Integers
from smpc.transcript import OTHER_PARTY, PARTY

KEYS, NOISY = "keys", "noisy sums"
_COMPONENTS = 2  # S, T


class LinearMode(Mode):
    """See the module."""

    KEY_STEPS = ((PARTY, OTHER_PARTY, KEYS),)
    PRODUCT_STEPS = ((PARTY, OTHER_PARTY, ENCRYPTED),)
    OPENING_STEPS = ((OTHER_PARTY, PARTY, NOISY),)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._secret: SecretKey
        self._public: dict[str, Elements] = {}
        self._encryptor: Encryptor | None = None

    def exchange_keys(self) -> None:
        part = self.part
        if not part.is_party:
            return
        self._secret = SecretKey.make(G1, part.random)
        for name in part.peers:
            part.network.send(name, KEYS, self._secret.publish(part.nonce, part.me, part.random))
        for name in part.peers:
            self._public[name] = read_key(G1, part.receive(name, KEYS, (key_bytes(G1),)), part.nonce, name)

    def multiply(self, plan: ProductPlan, columns: Integers | None, bound: int) -> Mapping[Pair, Elements]:
        if columns is None:
            return {}
        part, receivers = self.part, _receivers(plan, self.part.me)
        senders = [k for k, l in plan.blocks if l == part.me]
        if receivers and self._encryptor is None:
            self._encryptor = Encryptor(G1, self._secret.public)
        stream = Upload(part, receivers, {G1: self._encryptor} if receivers and self._encryptor else {})
        sums = {k: PlainProducts(plan.widths[k], len(columns), bound, self._public[k], part.random) for k in senders}
        for rows in message_rows(plan):
            stream.send(columns[:, rows])
            for k, total in sums.items():
                total.add(receive(part, plan, k, G1, rows), columns[:, rows])
            ask_on(part, plan, senders, rows)
        return {(k, part.me): total.result() for k, total in sums.items()}

    def open(self, entries: Entries, draws: Integers | None, to: str, session: bytes) -> Integers:
        part, pairs = self.part, list(entries.pairs())
        values = np.zeros(entries.local.shape, np.int64)
        for k, l, places in pairs:
            if l == part.me:
                sums = entries.ciphertexts((k, l), places, G1)
                noise = entries.draws_of(l, draws, places)
                noisy = linear.add_noise(sums, self._public[k], noise, part.random)
                part.network.send(k, NOISY, G1.encode(noisy))
        for k, l, places in pairs:
            if k == part.me:
                message = part.receive(l, NOISY, (len(places), _COMPONENTS, G1.size))
                sums = G1.decode(message, what=f"{l}: {NOISY}")
                # before the logarithm, whose time P_l sees: P_l knows the noise that is in `sums` so far
                noise = entries.draws_of(k, draws, places)
                noisy = linear.add_noise(sums, self._secret.public, noise, part.random)
                powers = decrypt_level1(G1, noisy, self._secret.exponent)
                values[places] = DiscreteLog(G1, entries.reach).all_of(powers, to_the_end=entries.noise is None)
        return values

    @staticmethod
    def teller(k: str, l: str, to: str) -> str:
        return k

    @staticmethod
    def key_traffic(cast: Cast) -> Traffic:
        return to_each_other(cast.parties, one_message(KEYS, 1, key_bytes(G1)))

    @staticmethod
    def product_traffic(cast: Cast, plan: ProductPlan) -> Traffic:
        return [
            message for party in plan.widths for message in upload_traffic(plan, party, _receivers(plan, party), [G1])
        ]

    @staticmethod
    def opening_traffic(cast: Cast, entries: Entries, to: str) -> Traffic:
        return [(l, k, one_message(NOISY, 3, len(places) * _COMPONENTS * G1.size)) for k, l, places in entries.pairs()]


def _receivers(plan: ProductPlan, party: str) -> list[str]:
    """Who multiplies a party's columns."""
    return [l for k, l in plan.blocks if k == party]
