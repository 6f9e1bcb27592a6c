"""One key pair (x, y) shared among K parties: any t of them can act for it, t - 1 learn nothing about it.

Key generation (Pedersen 1991, with Feldman's checks and a proof of each constant term, as in FROST): party i deals
random polynomials f_i, h_i of degree t - 1, publishes f_ij P and h_ij Q, and sends f_i(j), h_i(j) to party j alone.
x = sum f_i(0), y = sum h_i(0); party j's shares are x_j = sum f_i(j), y_j = sum h_i(j). t = K is "K of K". Everybody
must have received the same commitments: compare `agreement` before the keys are used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import G1, G2, Elements, Encoded, Group
from smpc.bgn.mcl import ORDER
from smpc.bgn.proofs import PROOF_BYTES, Context, Powers, prove, verify
from smpc.bgn.scalars import random_exponents
from smpc.errors import InputError, PeerError

GROUPS = (G1, G2)  # x lives in the first, y in the second
SHARE_BYTES = 32 * len(GROUPS)


@dataclass(frozen=True)
class Dealing:
    """One party's part of key generation: secret polynomials, lowest coefficient first."""

    polynomials: tuple[tuple[int, ...], ...] = field(repr=False)
    commitments: tuple[Elements, ...]  # (t, words) of G1 and of G2

    @classmethod
    def make(cls, threshold: int, parties: int, random: RandomWords) -> Dealing:
        """Raises InputError unless 2 <= threshold <= parties."""
        if not 2 <= threshold <= parties:
            raise InputError(f"threshold = {threshold}: must be from 2 to the number of parties, {parties}")
        polynomials = tuple(tuple(random_exponents(random, threshold)) for _ in GROUPS)
        commitments = tuple(g.power(g.generator, list(f)) for g, f in zip(GROUPS, polynomials, strict=True))
        return cls(polynomials, commitments)

    def publish(self, session: bytes, party: str, random: RandomWords) -> Encoded:
        """The message to everybody: commitments, with proofs of the constant terms. It reveals public keys only."""
        parts: list[Encoded] = []
        for group, polynomial, points in zip(GROUPS, self.polynomials, self.commitments, strict=True):
            statement = [Powers(group, group.generator[None], points[:1])]
            proof = prove(polynomial[0], statement, _key_context(group, session, party), random)
            parts += [group.encode(points).reshape(-1), proof]
        return np.concatenate(parts)

    def share(self, receiver: int) -> Encoded:
        """The private message to the party with this index (from 1): f(index), h(index), 64 bytes."""
        values = (_evaluate(polynomial, receiver) for polynomial in self.polynomials)
        return np.frombuffer(b"".join(value.to_bytes(32, "big") for value in values), np.uint8)


def commitment_bytes(threshold: int) -> int:
    """Length of what a party publishes."""
    return sum(threshold * group.size + PROOF_BYTES for group in GROUPS)


def read_commitments(message: Encoded, threshold: int, session: bytes, party: str) -> tuple[Elements, ...]:
    """What `party` published; PeerError that names it for malformed points and constant terms without proof."""
    sizes = [part for group in GROUPS for part in (threshold * group.size, PROOF_BYTES)]
    if message.dtype != np.uint8 or message.shape != (commitment_bytes(threshold),):
        raise PeerError(
            f"{party}: its key material is {message.dtype} {message.shape}, needs {commitment_bytes(threshold)} bytes"
        )
    parts = np.split(message, np.cumsum(sizes)[:-1])
    commitments = []
    for group, points, proof in zip(GROUPS, parts[::2], parts[1::2], strict=True):
        decoded = group.decode(points.reshape(threshold, group.size), what=f"{party}: its key material")
        statement = [Powers(group, group.generator[None], decoded[:1])]
        if not verify(proof, statement, _key_context(group, session, party)):
            raise PeerError(f"{party}: its key of {group} comes without proof of its secret; it is faulty or cheats")
        commitments.append(decoded)
    return tuple(commitments)


@dataclass(frozen=True)
class ThresholdKeys:
    """The joint public keys X, Y and every party's verification keys X_i, Y_i, (K, words); all public."""

    threshold: int
    joint: tuple[Elements, ...]
    verification: tuple[Elements, ...]

    @classmethod
    def of(cls, commitments: Sequence[tuple[Elements, ...]]) -> ThresholdKeys:
        """From all parties' commitments, in the parties' order. Raises PeerError if a joint key is neutral."""
        joint, verification = [], []
        for place, group in enumerate(GROUPS):
            total = group.sums(np.stack([points[place] for points in commitments], axis=1))
            if group.equal(total[0], group.identity()):
                raise PeerError(f"the joint key of {group} is the neutral element: a party cheats; start anew")
            joint.append(total[0])
            verification.append(np.stack([_evaluate_points(group, total, i + 1) for i in range(len(commitments))]))
        return cls(len(commitments[0][0]), tuple(joint), tuple(verification))

    def agreement(self) -> str:
        """A digest of these public keys: equal at two parties that received the same commitments from everybody."""
        parts = [
            group.encode(np.concatenate([joint[None], own])).tobytes()
            for group, joint, own in zip(GROUPS, self.joint, self.verification, strict=True)
        ]
        return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclass(frozen=True)
class KeyShare:
    """One party's shares x_i and y_i of the joint secret keys."""

    index: int
    exponents: tuple[int, ...] = field(repr=False)

    @classmethod
    def collect(
        cls, index: int, shares: Mapping[str, Encoded], commitments: Mapping[str, tuple[Elements, ...]]
    ) -> KeyShare:
        """The sum of what all parties (this one too) sent to `index`. PeerError names a dealer of wrong shares."""
        totals = [0 for _ in GROUPS]
        for party, message in shares.items():
            if message.dtype != np.uint8 or message.shape != (SHARE_BYTES,):
                raise PeerError(f"{party}: its key share is {message.dtype} {message.shape}, needs {SHARE_BYTES} bytes")
            for place, group in enumerate(GROUPS):
                value = int.from_bytes(message[32 * place : 32 * place + 32].tobytes(), "big")
                expected = _evaluate_points(group, commitments[party][place], index)
                if value >= ORDER or not group.equal(group.power(group.generator, value), expected):
                    raise PeerError(f"{party}: its key share does not fit its commitments; it is faulty or cheats")
                totals[place] += value
        return cls(index, tuple(total % ORDER for total in totals))


def _key_context(group: Group, session: bytes, party: str) -> Context:
    return Context(session, party, f"threshold key of {group}")


def _evaluate(polynomial: Sequence[int], at: int) -> int:
    value = 0
    for coefficient in reversed(polynomial):
        value = (value * at + coefficient) % ORDER
    return value


def _evaluate_points(group: Group, points: Elements, at: int) -> Elements:
    value = group.identity()
    for point in points[::-1]:
        value = group.op(group.power(value, at), point)
    return value
