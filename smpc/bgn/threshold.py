"""Decryption by t of K parties that share one key pair (`threshold_keys`).

Before: every party has re-randomised the sums once, the noise contributors with their noise in it, one after the other;
so no coalition of fewer than t knows the exponents of (s, t, u, v). Then, at whoever combines (the server):

step  from -> to  message                          the receiver learns
1     i -> server v^(x_i), u^(x_i), with a proof   v^x and u^x of a fresh ciphertext: uniform
2     server -> i (v^x / t)                        as it does
3     i -> server (v^x / t)^(y_i), with a proof    g^(m + noise): the noisy integers

Any coalition of t parties opens everything, before noise too: the guarantee has to say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import GT, Elements, Encoded
from smpc.bgn.mcl import ORDER
from smpc.bgn.proofs import Context, Powers, prove, verify
from smpc.bgn.threshold_keys import GROUPS, KeyShare, ThresholdKeys
from smpc.errors import InputError, PeerError


@dataclass(frozen=True)
class Round:
    """One round of a decryption: 1 raises to x_i, 2 to y_i. The session and these public keys bind its proofs."""

    number: int
    bases: Elements
    keys: ThresholdKeys
    session: bytes

    def answer(self, share: KeyShare, party: str, random: RandomWords) -> tuple[Elements, Encoded]:
        """The bases to this party's share, and the proof. Cost: two powers in GT for each base."""
        exponent = share.exponents[self.number - 1]
        images = GT.power(self.bases, exponent)
        return images, prove(exponent, self._statement(share.index, images), self._context(party), random)

    def check(self, images: Elements, proof: Encoded, index: int, party: str) -> None:
        """Raises PeerError that names the party if its answer is not by its key share, or is to other bases."""
        if images.shape != self.bases.shape or not verify(proof, self._statement(index, images), self._context(party)):
            raise PeerError(
                f"{party}: its partial decryption is not by its key share; the party is faulty or cheats, or whoever "
                "sent it the sums, if they are not the same everywhere"
            )

    def _statement(self, index: int, images: Elements) -> list[Powers]:
        group = GROUPS[self.number - 1]
        key = self.keys.verification[self.number - 1][index - 1 : index]
        return [Powers(group, group.generator[None], key), Powers(GT, self.bases, images)]

    def _context(self, party: str) -> Context:
        return Context(self.session, party, f"decryption, round {self.number}")


def first_round(ciphertexts: Elements, keys: ThresholdKeys, session: bytes) -> Round:
    """Of ciphertexts (n, 4, words): v and u are raised."""
    return Round(1, np.concatenate([ciphertexts[:, 3], ciphertexts[:, 2]]), keys, session)


def second_round(
    ciphertexts: Elements, answers: Mapping[int, Elements], keys: ThresholdKeys, session: bytes
) -> tuple[Round, Elements]:
    """From t answers of round 1 by index: v^x / t is raised; u^x (n, words) is kept for `finish`."""
    v, u = np.split(combine(answers, keys.threshold), 2)
    return Round(2, GT.op(v, GT.inverse(ciphertexts[:, 1])), keys, session), u


def finish(ciphertexts: Elements, u: Elements, answers: Mapping[int, Elements], keys: ThresholdKeys) -> Elements:
    """g^m, (n, words), from t answers of round 2 by index."""
    return GT.op(GT.op(ciphertexts[:, 0], GT.inverse(u)), combine(answers, keys.threshold))


def combine(answers: Mapping[int, Elements], threshold: int) -> Elements:
    """Interpolation at 0 in the exponent: powers to the secret from powers to t of its shares."""
    if len(answers) != threshold:
        raise InputError(f"{len(answers)} partial decryptions: needs those of exactly {threshold} parties")
    parts = []
    for index, elements in answers.items():
        weight = 1
        for other in answers:
            if other != index:
                weight = weight * other * pow(other - index, -1, ORDER) % ORDER
        parts.append(GT.power(elements, weight))
    total = parts[0]
    for part in parts[1:]:
        total = GT.op(total, part)
    return total
