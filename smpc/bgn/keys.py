"""A party's own keys: x with X = x P in G1, y with Y = y Q in G2, each published with a proof of its knowledge.

The proof keeps a party from publishing a key made of another's (a rogue key, whose secret it does not know).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import Elements, Encoded, Group
from smpc.bgn.proofs import PROOF_BYTES, Context, Powers, prove, verify
from smpc.bgn.scalars import random_exponents
from smpc.errors import PeerError


@dataclass(frozen=True)
class SecretKey:
    """A secret exponent and its public point. Never sent, never shown."""

    group: Group
    public: Elements
    exponent: int = field(repr=False)

    @classmethod
    def make(cls, group: Group, random: RandomWords) -> SecretKey:
        """A fresh key of G1 or G2."""
        (exponent,) = random_exponents(random, 1)
        return cls(group, group.power(group.generator, exponent), exponent)

    def publish(self, session: bytes, party: str, random: RandomWords) -> Encoded:
        """The message to everybody: the point and the proof of its exponent. It reveals the public key only."""
        statement = [Powers(self.group, self.group.generator[None], self.public[None])]
        proof = prove(self.exponent, statement, _context(self.group, session, party), random)
        return np.concatenate([self.group.encode(self.public), proof])


def key_bytes(group: Group) -> int:
    """Length of a published key."""
    return group.size + PROOF_BYTES


def read_key(group: Group, message: Encoded, session: bytes, party: str) -> Elements:
    """The public key that `party` published. Raises PeerError that names the party: malformed, neutral, unproven."""
    what = f"{party}: its key of {group}"
    if message.dtype != np.uint8 or message.shape != (key_bytes(group),):
        raise PeerError(f"{what} is {message.dtype} {message.shape}, needs {key_bytes(group)} bytes")
    point = group.decode(message[: group.size], what=what)
    if group.equal(point, group.identity()):
        raise PeerError(f"{what} is the neutral element, which hides nothing; the party is faulty or cheats")
    statement = [Powers(group, group.generator[None], point[None])]
    if not verify(message[group.size :], statement, _context(group, session, party)):
        raise PeerError(f"{what} comes without proof of its secret (a rogue key); the party is faulty or cheats")
    return point


def _context(group: Group, session: bytes, party: str) -> Context:
    return Context(session, party, f"key of {group}")
