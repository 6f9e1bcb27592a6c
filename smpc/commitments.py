"""Commitments to 32 bytes that name their session and their party: perfectly hiding, and nobody can open them twice.

Pedersen's (1991) on P-256: C = m G + r H, r uniform, nobody knows log_G H. So a commitment does not depend on the value
inside, and opens in one way unless discrete logarithms are found. m = SHA-512(session, party, value): an opening is of
no use to another party or in another session, nor is one that was made from another's commitment.
"""

from __future__ import annotations

import hashlib

from petlib.bn import Bn
from petlib.ec import EcGroup, EcPt

from mechanisms.randomness import RandomWords

VALUE_BYTES = SCALAR_BYTES = 32
POINT_BYTES = 33
OPENING_BYTES = VALUE_BYTES + SCALAR_BYTES
_P256 = 415  # OpenSSL's number of prime256v1
_DOMAIN = b"sharewise coin tossing 2"


def commit(value: bytes, blinding: int, *, session: bytes, party: str) -> bytes:
    """The commitment of `party` to `value` in `session`: a compressed point. `blinding` is uniform below the order."""
    group, second = _generators()
    message = _scalar(digest(b"commitment", session, party.encode(), value))
    point: bytes = (message * group.generator() + _scalar(blinding.to_bytes(SCALAR_BYTES, "big")) * second).export()
    return point


def opens(commitment: bytes, opening: bytes, *, session: bytes, party: str) -> bool:
    """Whether `opening`, value and blinding, is one of this commitment by `party` in `session`."""
    if len(opening) != OPENING_BYTES:
        return False
    value, blinding = opening[:VALUE_BYTES], int.from_bytes(opening[VALUE_BYTES:], "big")
    return commit(value, blinding, session=session, party=party) == commitment


def draw_blinding(random: RandomWords) -> int:
    """Uniform below the order of the group, by rejection: 2^-32 of the proposals fail."""
    order = int(str(EcGroup(_P256).order()))
    while True:
        proposal = int.from_bytes(random.words(4).tobytes(), "big")
        if proposal < order:
            return proposal


def digest(*parts: bytes) -> bytes:
    """SHA-512 of an injective encoding."""
    pieces = (len(part).to_bytes(8, "big") + part for part in (_DOMAIN, *parts))
    return hashlib.sha512(b"".join(pieces)).digest()


def _generators() -> tuple[EcGroup, EcPt]:
    group = EcGroup(_P256)
    return group, group.hash_to_point(hashlib.sha256(_DOMAIN + b" second generator").digest())


def _scalar(data: bytes) -> Bn:
    return Bn.from_binary(data).mod(EcGroup(_P256).order())
