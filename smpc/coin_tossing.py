"""A common random seed that no K - 1 parties can foresee or choose: commit, compare, open (Blum 1983).

step  from -> to  message     the receiver learns
1     k -> l      commitment  nothing: perfectly hiding
2     k -> l      echo        which commitments k has seen: all must have seen the same
3     k -> l      opening     k's value; the seed is the exclusive or of all values

Commitments are Pedersen's (1991) on P-256: C = m G + r H, r uniform, nobody knows log_G H. So before step 3 the other
parties' view does not depend on an honest party's value, and a commitment opens in one way unless discrete logarithms
are found. m = SHA-512(session, party, value): an opening is of no use to another party or in another session, nor is
one that was made from another's commitment.

Whoever opens last knows the seed first and may fall silent when it dislikes it: one try in two favours a given bit. So
who does not open, or lies, is named, nothing is released, and it must not take part again (`CoinTossError.party`). A
loss before step 3 says nothing of the seed and is an ordinary one.

Cost: 3 rounds; each party sends 33 + 33 K + 64 bytes to each other, and framing; 2 K multiplications on the curve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from petlib.bn import Bn
from petlib.ec import EcGroup, EcPt

from mechanisms.randomness import RandomWords
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import COMMITMENT, ECHO, OPENING

VALUE_BYTES = SCALAR_BYTES = 32
POINT_BYTES = 33
OPENING_BYTES = VALUE_BYTES + SCALAR_BYTES
_P256 = 415  # OpenSSL's number of prime256v1
_DOMAIN = b"sharewise coin tossing 1"

Octets = npt.NDArray[np.uint8]


class CoinTossError(PeerError):
    """A failed toss. `party` is whom this participant itself saw at fault, None where it may be another."""

    def __init__(self, party: str | None, what: str) -> None:
        whom = party or "whoever it was"
        super().__init__(f"{what}: nothing is released; leave {whom} out of the next job, new tries bias the coin")
        self.party = party


def commit(value: bytes, blinding: int, *, session: bytes, party: str) -> bytes:
    """The commitment of `party` to `value` in `session`: a compressed point. `blinding` is uniform below the order."""
    group, second = _generators()
    message = _scalar(_digest(session, party, value))
    point: bytes = (message * group.generator() + _scalar(blinding.to_bytes(SCALAR_BYTES, "big")) * second).export()
    return point


def opens(commitment: bytes, opening: bytes, *, session: bytes, party: str) -> bool:
    """Whether `opening`, value and blinding, is one of this commitment by `party` in `session`."""
    if len(opening) != OPENING_BYTES:
        return False
    value, blinding = opening[:VALUE_BYTES], int.from_bytes(opening[VALUE_BYTES:], "big")
    return commit(value, blinding, session=session, party=party) == commitment


def toss(network: Network, parties: Sequence[str], session: bytes, value: bytes, random: RandomWords) -> bytes:
    """This party's part; the common seed, 32 bytes. `value` is its own uniform one, `session` used for this toss only.

    Raises CoinTossError. A party has the network's deadline for each step, however alive it is.
    """
    others = [name for name in parties if name != network.me]
    blinding = _uniform_scalar(random)
    own = commit(value, blinding, session=session, party=network.me)
    with _short_patience(network):
        received = _exchange(network, others, COMMITMENT, own, POINT_BYTES)
        seen = {name: own if name == network.me else received[name] for name in parties}
        _refuse_copies(network.me, seen)
        echoes = _exchange(network, others, ECHO, b"".join(seen.values()), POINT_BYTES * len(parties))
        _compare(network.me, parties, seen, echoes)
        opening = value + blinding.to_bytes(SCALAR_BYTES, "big")
        openings = _exchange(network, others, OPENING, opening, len(opening))
    seed = int.from_bytes(value, "big")
    for name in others:
        if not opens(seen[name], openings[name], session=session, party=name):
            raise CoinTossError(name, f"{name} opened another value than it had committed to")
        seed ^= int.from_bytes(openings[name][:VALUE_BYTES], "big")
    return seed.to_bytes(VALUE_BYTES, "big")


def _exchange(network: Network, others: Sequence[str], label: str, message: bytes, size: int) -> dict[str, bytes]:
    """Send `message` to the others and receive theirs."""
    network.step = f"coin toss: {label}"
    try:
        for name in others:
            network.send(name, label, np.frombuffer(message, dtype=np.uint8))
        return {name: network.receive(name, label, np.uint8, (size,)).tobytes() for name in others}
    except PeerError as error:
        if label != OPENING:
            raise
        raise CoinTossError(_seen_at_fault(error, others), str(error)) from None


def _refuse_copies(me: str, seen: Mapping[str, bytes]) -> None:
    owners: dict[bytes, str] = {}
    for name, commitment in seen.items():
        first = owners.setdefault(commitment, name)
        if first != name:
            copier, original = (first, name) if name == me else (name, first)
            certain = original == me  # else it may be the other way round
            raise CoinTossError(copier if certain else None, f"{copier} repeats the commitment of {original}")


def _compare(me: str, parties: Sequence[str], seen: Mapping[str, bytes], echoes: Mapping[str, bytes]) -> None:
    """Refuse that a party told two others different commitments. Which of two lies is beyond what a third can see."""
    for teller, echo in echoes.items():
        for number, name in enumerate(parties):
            if echo[POINT_BYTES * number : POINT_BYTES * (number + 1)] == seen[name]:
                continue
            if name in (me, teller):  # it distorts mine, or did not echo what it had told me
                raise CoinTossError(teller, f"{teller} alters the commitment of {name}")
            raise CoinTossError(None, f"{name} or {teller} alters a commitment: {me} and {teller} have two of {name}")


def _seen_at_fault(error: PeerError, others: Sequence[str]) -> str | None:
    """Whom an error of our own connections is about; what somebody else reports is hearsay."""
    first = str(error).split(maxsplit=1)[0].rstrip(":")
    return first if first in others and " reports" not in str(error) else None


@contextmanager
def _short_patience(network: Network) -> Iterator[None]:
    """Inside, a peer that is alive and does not send what is due is given up after the deadline."""
    patience, network.patience = network.patience, network.deadline
    try:
        yield
    finally:
        network.patience = patience


def _generators() -> tuple[EcGroup, EcPt]:
    group = EcGroup(_P256)
    return group, group.hash_to_point(hashlib.sha256(_DOMAIN + b" second generator").digest())


def _digest(session: bytes, party: str, value: bytes) -> bytes:
    """Of an injective encoding."""
    parts = (_DOMAIN, session, party.encode(), value)
    return hashlib.sha512(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()


def _scalar(data: bytes) -> Bn:
    return Bn.from_binary(data).mod(EcGroup(_P256).order())


def _uniform_scalar(random: RandomWords) -> int:
    """Uniform below the order of the group, by rejection: 2^-32 of the proposals fail."""
    order = int(str(EcGroup(_P256).order()))
    while True:
        proposal = int.from_bytes(random.words(4).tobytes(), "big")
        if proposal < order:
            return proposal
