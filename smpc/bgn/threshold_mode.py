"""`threshold`: one key pair shared among all K parties; t of them decrypt (the first t; t = K is the default).

With noise on shares, a run of `protocols.functional.protocol` sends

step  from -> to      message             the receiver learns
1     P_k -> all      key material        P_k's part of the public keys, proven
2     P_k -> P_l      key share           a share of the secret keys: less than t of them tell nothing
3     P_k -> all      joint keys          that everybody received the same key material
4     P_k -> server   encrypted columns   nothing: encrypted under the joint keys
5     server -> P_k   encrypted sums      nothing: it lacks t - 1 shares
6     P_k -> P_l      noisy sums          the same: from one party to the next, each adds its noise and makes them fresh
7     P_k -> all      final sums          the same: from the last party to those who decrypt and whom they open for
8     P_k -> server   partial decryption  of fresh sums: uniform
9     server -> P_k   combined decryption uniform, too
10    P_k -> server   last decryption     with 9, the sums with all noises, epsilon-DP
11    P_k -> server   noisy coefficients  each party's own ones with its noise
12    server -> all   model               post-processing of steps 10 and 11

Any t parties open everything that any of them sees, before noise too: the server's ciphertexts, and with the first
party the sums of step 5. Less than t, with the server, learn what the server does. A lost participant ends the job
whatever t is: t < K makes openings cheaper, not more robust. Cost an opened entry: 2.3 KB and 7 powers in GT from each
party to the next; 6 powers, proofs included, and 1.7 KB from each of t; 9 t powers at whoever they open for.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from smpc.bgn import threshold
from smpc.bgn.curve import GT, Elements, Encoded, Group
from smpc.bgn.decrypt import COMPONENTS, read_ciphertexts
from smpc.bgn.dlog import DiscreteLog
from smpc.bgn.entries import Entries
from smpc.bgn.mode import RECEIVER, Part, Traffic, one_message, to_each_other
from smpc.bgn.proofs import PROOF_BYTES
from smpc.bgn.scheme import TargetKey
from smpc.bgn.server_products import ServerMode
from smpc.bgn.threshold import Round
from smpc.bgn.threshold_keys import (
    GROUPS,
    SHARE_BYTES,
    Dealing,
    KeyShare,
    ThresholdKeys,
    commitment_bytes,
    read_commitments,
)
from smpc.cast import Cast
from smpc.errors import PeerError
from smpc.ring import Integers
from smpc.transcript import ALL, OTHER_PARTY, PARTY, SERVER

MATERIAL, SHARE, JOINT = "key material", "key share", "joint keys"
SUMS, NOISY, FINAL = "encrypted sums", "noisy sums", "final sums"
_DIGEST_BYTES = 32
PARTIAL, COMBINED, LAST = "partial decryption", "combined decryption", "last decryption"


class ThresholdMode(ServerMode):
    """See the module."""

    KEY_STEPS = ((PARTY, ALL, MATERIAL), (PARTY, OTHER_PARTY, SHARE), (PARTY, ALL, JOINT))
    OPENING_STEPS = (
        (SERVER, PARTY, SUMS),
        (PARTY, OTHER_PARTY, NOISY),
        (PARTY, ALL, FINAL),
        (PARTY, RECEIVER, PARTIAL),
        (RECEIVER, PARTY, COMBINED),
        (PARTY, RECEIVER, LAST),
    )

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._keys: ThresholdKeys
        self._share: KeyShare

    # keys

    def exchange_keys(self) -> None:
        part, names, needed = self.part, self.part.cast.parties, _needed(self.part.cast)
        everybody = [name for name in (*names, part.cast.server) if name != part.me]
        messages, shares = {}, {}
        if part.is_party:
            dealing = Dealing.make(needed, len(names), part.random)
            messages[part.me] = dealing.publish(part.nonce, part.me, part.random)
            for name in everybody:
                part.network.send(name, MATERIAL, messages[part.me])
            for name in part.peers:
                part.network.send(name, SHARE, dealing.share(names.index(name) + 1))
            shares[part.me] = dealing.share(names.index(part.me) + 1)
        for name in part.peers:
            messages[name] = part.receive(name, MATERIAL, (commitment_bytes(needed),))
            if part.is_party:
                shares[name] = part.receive(name, SHARE, (SHARE_BYTES,))
        commitments = {name: read_commitments(messages[name], needed, part.nonce, name) for name in names}
        self._keys = ThresholdKeys.of(list(commitments.values()))
        if part.is_party:
            self._share = KeyShare.collect(names.index(part.me) + 1, shares, commitments)
        self._compare(everybody)

    def _compare(self, everybody: list[str]) -> None:
        """What somebody published in two versions would open to nobody, or to somebody else."""
        digest = np.frombuffer(bytes.fromhex(self._keys.agreement()), np.uint8)
        if self.part.is_party:
            for name in everybody:
                self.part.network.send(name, JOINT, digest)
        for name in self.part.peers:
            if not np.array_equal(self.part.receive(name, JOINT, digest.shape), digest):
                raise PeerError(
                    f"{name} and {self.part.me} received other key material: somebody is faulty or cheats; start anew"
                )

    def public_key(self, group: Group) -> Elements:
        return self._keys.joint[GROUPS.index(group)]

    # openings

    def open(self, entries: Entries, draws: Integers | None, to: str, session: bytes) -> Integers:
        values, pairs = np.zeros(entries.local.shape, np.int64), list(entries.pairs())
        if not pairs:
            return values
        places = np.concatenate([positions for _, _, positions in pairs])
        if self.part.is_server:
            sums = [entries.ciphertexts((k, l), positions, GT) for k, l, positions in pairs]
            self.part.network.send(self.part.cast.parties[0], SUMS, GT.encode(np.concatenate(sums)))
        final = self._final_sums(entries.draws_of(self.part.me, draws, places), to)
        if self.part.me == to:
            powers = self._collect(final, session)
            values[places] = DiscreteLog(GT, entries.reach).all_of(powers, to_the_end=entries.noise is None)
        elif self.part.me in _quorum(self.part.cast):
            first = threshold.first_round(final, self._keys, session)
            self.part.network.send(to, PARTIAL, self._answer(first))
            bases = GT.decode(self.part.receive(to, COMBINED, (len(final), GT.size)), what=f"{to}: {COMBINED}")
            self.part.network.send(to, LAST, self._answer(Round(2, bases, self._keys, session)))
        return values

    def _final_sums(self, noise: list[int], to: str) -> Elements:
        """The sums with everybody's noise, made fresh by every party in turn; none at whoever needs none."""
        part, order, shape = self.part, self.part.cast.parties, (len(noise), COMPONENTS, GT.size)
        final = GT.identity(0, COMPONENTS)
        if part.is_party:
            place = order.index(part.me)
            sender, label = (order[place - 1], NOISY) if place else (part.cast.server, SUMS)
            received = read_ciphertexts(part.receive(sender, label, shape), len(noise), what=f"{sender}: {label}")
            final = TargetKey(*self._keys.joint).add(received, noise, part.random)
            message, last = GT.encode(final), part.me == order[-1]
            for name in _watchers(part.cast, to) if last else [order[place + 1]]:
                part.network.send(name, FINAL if last else NOISY, message)
        if part.me in _watchers(part.cast, to):
            message = part.receive(order[-1], FINAL, shape)
            final = read_ciphertexts(message, len(noise), what=f"{order[-1]}: {FINAL}")
        return final

    def _answer(self, round_: Round) -> Encoded:
        """This party's part of a round, with its proof."""
        images, proof = round_.answer(self._share, self.part.me, self.part.random)
        return np.concatenate([GT.encode(images).reshape(-1), proof])

    def _collect(self, final: Elements, session: bytes) -> Elements:
        """Both rounds at whoever it opens to: g^m of the final sums."""
        first = threshold.first_round(final, self._keys, session)
        second, u = threshold.second_round(final, self._answers(first, PARTIAL), self._keys, session)
        message = GT.encode(second.bases)
        for name in _quorum(self.part.cast):
            if name != self.part.me:
                self.part.network.send(name, COMBINED, message)
        return threshold.finish(final, u, self._answers(second, LAST), self._keys)

    def _answers(self, round_: Round, label: str) -> dict[int, Elements]:
        answers = {}
        for index, name in enumerate(_quorum(self.part.cast), 1):
            if name == self.part.me:
                message = self._answer(round_)
            else:
                message = self.part.receive(name, label, (answer_bytes(len(round_.bases)),))
            images = GT.decode(message[:-PROOF_BYTES].reshape(-1, GT.size), what=f"{name}: {label}")
            round_.check(images, message[-PROOF_BYTES:], index, name)
            answers[index] = images
        return answers

    @staticmethod
    def teller(k: str, l: str, to: str) -> str:
        return to

    @staticmethod
    def key_traffic(cast: Cast) -> Traffic:
        material = one_message(MATERIAL, 1, commitment_bytes(_needed(cast))) + one_message(JOINT, 1, _DIGEST_BYTES)
        share = one_message(SHARE, 1, SHARE_BYTES)
        told = [(party, cast.server, material) for party in cast.parties]
        return to_each_other(cast.parties, material + share) + told

    @staticmethod
    def opening_traffic(cast: Cast, entries: Entries, to: str) -> Traffic:
        count = sum(len(places) for _, _, places in entries.pairs())
        if not count:
            return []
        ciphertexts, order, quorum = count * COMPONENTS * GT.size, cast.parties, _quorum(cast)
        answers = one_message(PARTIAL, 1, answer_bytes(2 * count)) + one_message(LAST, 1, answer_bytes(count))
        others = [name for name in quorum if name != to]
        return [
            (cast.server, order[0], one_message(SUMS, 3, ciphertexts)),
            *((one, following, one_message(NOISY, 3, ciphertexts)) for one, following in pairwise(order)),
            *((order[-1], name, one_message(FINAL, 3, ciphertexts)) for name in _watchers(cast, to)),
            *((name, to, answers) for name in others),
            *((to, name, one_message(COMBINED, 2, count * GT.size)) for name in others),
        ]


def _needed(cast: Cast) -> int:
    return cast.tolerated + 1


def _quorum(cast: Cast) -> tuple[str, ...]:
    return cast.parties[: _needed(cast)]


def _watchers(cast: Cast, to: str) -> list[str]:
    """Who has to have the final sums, beside the last party."""
    return [name for name in dict.fromkeys((*_quorum(cast), to)) if name != cast.parties[-1]]


def answer_bytes(count: int) -> int:
    """Length of a message with so many powers and their proof."""
    return count * GT.size + PROOF_BYTES
