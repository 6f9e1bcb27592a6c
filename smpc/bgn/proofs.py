"""Proofs that one secret stands behind several powers (Schnorr 1989; Chaum and Pedersen 1992), non-interactive.

For bases B_i in any of the groups and images B_i^x: R_i = B_i^w, c = H(context, all B_i, images, R_i), z = w + c x. The
proof is (c, z), 64 bytes; the verifier recomputes R_i = B_i^z / image_i^c (Fiat and Shamir 1986). One relation proves
knowledge of a key, several prove that a partial decryption used the published key. It reveals nothing on x. The hash
covers the session, the party and the purpose, so that a proof is of no use to anybody else or at another time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import Elements, Encoded, Group
from smpc.bgn.mcl import ORDER
from smpc.bgn.scalars import random_exponents

PROOF_BYTES = 64
_DOMAIN = b"sharewise BGN proof 1"


@dataclass(frozen=True)
class Powers:
    """images = bases to the secret power, both (n, words). Elements of the group: the caller has decoded them."""

    group: Group
    bases: Elements
    images: Elements


@dataclass(frozen=True)
class Context:
    """What a proof is bound to."""

    session: bytes
    party: str
    purpose: str

    def to_bytes(self) -> bytes:
        """An injective encoding."""
        parts = (_DOMAIN, self.session, self.party.encode(), self.purpose.encode())
        return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def prove(secret: int, statement: Sequence[Powers], context: Context, random: RandomWords) -> Encoded:
    """The proof that the same secret makes all images, as 64 bytes. Cost: one power for each base."""
    (nonce,) = random_exponents(random, 1)
    commitments = [part.group.power(part.bases, nonce) for part in statement]
    challenge = _challenge(statement, commitments, context)
    response = (nonce + challenge * secret) % ORDER
    return np.frombuffer(challenge.to_bytes(32, "big") + response.to_bytes(32, "big"), np.uint8)


def verify(proof: Encoded, statement: Sequence[Powers], context: Context) -> bool:
    """Whether `proof` holds for this statement in this context. Cost: two powers for each base."""
    data = proof.tobytes()
    if proof.dtype != np.uint8 or len(data) != PROOF_BYTES:
        return False
    challenge, response = int.from_bytes(data[:32], "big"), int.from_bytes(data[32:], "big")
    if challenge >= ORDER or response >= ORDER:
        return False
    commitments = [
        part.group.op(part.group.power(part.bases, response), part.group.power(part.images, ORDER - challenge))
        for part in statement
    ]
    return _challenge(statement, commitments, context) == challenge


def _challenge(statement: Sequence[Powers], commitments: Sequence[Elements], context: Context) -> int:
    digest = hashlib.sha512(context.to_bytes())
    for part, commitment in zip(statement, commitments, strict=True):
        digest.update(part.group.name.encode() + len(part.bases).to_bytes(8, "big"))
        for elements in (part.bases, part.images, commitment):
            digest.update(part.group.encode(elements).tobytes())
    return int.from_bytes(digest.digest(), "big") % ORDER
