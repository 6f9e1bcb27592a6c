"""What a voter sends to a compute party: its sealed share, and a signature over the sealed shares of all.

Sealed: HPKE in base mode (RFC 9180: X25519, HKDF-SHA256, AES-256-GCM) to the party's key in the poll, bound to the
poll, the voter and the receiver, so that nobody can hand in a copy of another's ballot. Signed: Ed25519 with the
voter's key in the poll, over poll, voter and the digests of all sealed shares; the parties compare these digests, so
that a voter cannot send different ballots to different parties. The poll's id is new in every run of a job: whoever
has a ballot of an earlier run can do nothing with it.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from smpc.errors import InputError

DIGEST_BYTES = 32
_SIGNATURE_BYTES = 64
_DOMAIN = b"sharewise ballot 1"
_HEAD = struct.Struct("<18s32sBB")  # domain, poll, bytes of the voter's name, number of parties
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


class Reason(Enum):
    """Why a ballot is not counted."""

    MALFORMED = "malformed or truncated"
    OTHER_POLL = "made for another job, or another run of this one"
    UNKNOWN = "no registered voter"
    SIGNATURE = "the signature is not the voter's"
    SEALED = "sealed to another party, poll or voter"
    LENGTH = "wrong length"
    DUPLICATE = "a second ballot; the first one counts"
    LATE = "after the close"
    ROOM = "this party has no room to keep it; vote again when the job is run again"
    DIFFERENT = "not received alike by all compute parties"
    CHECK = "not exactly one vote for every sample"


class BallotError(InputError):
    """A ballot is refused; `voter` is known once its signature has been checked."""

    def __init__(self, reason: Reason, voter: str | None = None) -> None:
        super().__init__(f"ballot of {voter or 'somebody'} refused: {reason.value}")
        self.reason = reason
        self.voter = voter


@dataclass(frozen=True)
class Envelope:
    """A ballot as one compute party gets it: `digests` of all parties' sealed shares, its own among them.

    `sealed` comes last and may be missing: all before it is the cover, which shows who signed.
    """

    poll: bytes
    voter: str
    digests: tuple[bytes, ...]
    signature: bytes
    sealed: bytes

    def to_bytes(self) -> bytes:
        return self.cover() + self.sealed

    def cover(self) -> bytes:
        name = self.voter.encode()
        head = _HEAD.pack(_DOMAIN, self.poll, len(name), len(self.digests))
        return b"".join([head, name, *self.digests, self.signature])

    @classmethod
    def read(cls, data: bytes) -> Envelope:
        """Raises BallotError for what is no envelope."""
        try:
            domain, poll, length, count = _HEAD.unpack_from(data)
            start = _HEAD.size + length
            voter = data[_HEAD.size : start].decode()
            ends = [start + DIGEST_BYTES * i for i in range(count + 1)]
            digests = tuple(data[a:b] for a, b in itertools.pairwise(ends))
            sealed_at = ends[-1] + _SIGNATURE_BYTES
        except (struct.error, UnicodeDecodeError):
            raise BallotError(Reason.MALFORMED) from None
        if domain != _DOMAIN or not voter or len(data) < sealed_at:
            raise BallotError(Reason.MALFORMED)
        return cls(poll, voter, digests, data[ends[-1] : sealed_at], data[sealed_at:])

    def check_signature(self, key: Ed25519PublicKey) -> None:
        """Whether the voter signed this cover."""
        try:
            key.verify(self.signature, _signed(self.poll, self.voter, self.digests))
        except InvalidSignature:
            raise BallotError(Reason.SIGNATURE) from None

    def check_place(self, place: int, parties: int) -> None:
        """Whether this is for `parties` parties and the sealed share is that at `place` among theirs."""
        own = digest(self.sealed)
        if len(self.digests) != parties or own not in self.digests:
            raise BallotError(Reason.MALFORMED, self.voter)
        if own != self.digests[place]:
            raise BallotError(Reason.SEALED, self.voter)

    def open(self, receiver: str, key: X25519PrivateKey) -> bytes:
        """The content, by the receiver's private key."""
        try:
            return _SUITE.decrypt(self.sealed, key, info=_info(self.poll, self.voter, receiver))
        except (InvalidTag, ValueError):
            raise BallotError(Reason.SEALED, self.voter) from None


def make(
    contents: Mapping[str, bytes],
    *,
    poll: bytes,
    voter: str,
    key: Ed25519PrivateKey,
    seals: Mapping[str, X25519PublicKey],
) -> dict[str, Envelope]:
    """The envelope for each party of `contents`, in the poll's order, sealed with its key in `seals`."""
    sealed = {
        party: _SUITE.encrypt(content, seals[party], info=_info(poll, voter, party))
        for party, content in contents.items()
    }
    digests = tuple(digest(ciphertext) for ciphertext in sealed.values())
    signature = key.sign(_signed(poll, voter, digests))
    return {party: Envelope(poll, voter, digests, signature, ciphertext) for party, ciphertext in sealed.items()}


def digest(sealed: bytes) -> bytes:
    """What the signature covers of a sealed share."""
    return hashlib.sha256(sealed).digest()


def _signed(poll: bytes, voter: str, digests: tuple[bytes, ...]) -> bytes:
    return b"".join([_DOMAIN, poll, len(voter.encode()).to_bytes(2, "big"), voter.encode(), *digests])


def _info(poll: bytes, voter: str, receiver: str) -> bytes:
    parts = (_DOMAIN, poll, voter.encode(), receiver.encode())
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)
