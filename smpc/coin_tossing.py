"""A common random seed that no K - 1 parties can foresee or choose: commit, compare, open (Blum 1983).

step  from -> to  message     the receiver learns
1     k -> l      commitment  nothing: perfectly hiding; and the key that k signs with
2     k -> l      echo        which commitments and keys k has seen, signed
3     k -> l      opening     k's value, and everybody's signature; the seed is the exclusive or of all values

Commitments (`smpc.commitments`) name session and party, hide perfectly and open in one way: before step 3 the other
parties' view does not depend on an honest party's value, and an opening is of no use to another. Keys are Ed25519, made
for one toss.

Whoever opens last knows the seed first and may stop when it dislikes it: one try in two favours a given bit. So who
does that, or lies, must not take part again (`CoinTossError.at_fault`), and nobody can make an honest party look like
that. D is the network's deadline; a message between honest parties takes less.

- The loss or silence of one party does not end the wait for another: each is judged by its own connection alone.
- Who has all echoes within 2 D of its own, opens and shows all signatures. Who then does not open to it within 3 D is
  at fault.
- Who has not, and is shown all signatures within 4 D of its echo, opens, too; whoever signed and kept its echo back
  from it is at fault, and the toss fails. Shown none, it stops: it has not opened, so nobody knows the seed.

Why no honest party is at fault: two of them start step 2 less than D apart, since each must have the other's commitment
and none waits longer than D for all. So their echoes are never late, and who opens is heard by all while they listen,
whatever others keep back; one that leaves after that stays connected for D. Why one who knows the seed and stops is:
then all honest parties have opened, and each of them either has all openings or one at fault. Who stops after that
leaves no trace here: it is named as in other losses.

Cost: 3 rounds; each party sends 65 + (65 K + 64) + (64 + 64 K) bytes to each other, and framing; 2 K multiplications on
the curve and some 2 K signatures to verify.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from mechanisms.randomness import RandomWords
from smpc.commitments import OPENING_BYTES, POINT_BYTES, SCALAR_BYTES, VALUE_BYTES, commit, digest, draw_blinding, opens
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import COMMITMENT, ECHO, OPENING

KEY_BYTES = 32
SIGNATURE_BYTES = 64
_STEPS = (COMMITMENT, ECHO, OPENING)
_DEADLINES = {COMMITMENT: 1, ECHO: 2, OPENING: 3}  # how many of them a step is waited for
_ANSWER_DEADLINES = 4


class CoinTossError(PeerError):
    """A failed toss. `at_fault`: whom this participant itself saw cheat or stop; nobody where it may be another."""

    def __init__(self, at_fault: Sequence[str], what: str) -> None:
        whom = " and ".join(at_fault) or "whoever it was"
        super().__init__(f"{what}: nothing is released; leave {whom} out of the next job, new tries bias the coin")
        self.at_fault = tuple(at_fault)


def message_sizes(parties: int) -> dict[str, int]:
    """Bytes of each step's message in a toss of so many parties."""
    seen = POINT_BYTES + KEY_BYTES
    signatures = SIGNATURE_BYTES * parties
    return {COMMITMENT: seen, ECHO: seen * parties + SIGNATURE_BYTES, OPENING: OPENING_BYTES + signatures}


def toss(network: Network, parties: Sequence[str], session: bytes, value: bytes, random: RandomWords) -> bytes:
    """This party's part; the common seed, 32 bytes. `value` is its own uniform one, `session` used for this toss only.

    Raises CoinTossError, and PeerError for a loss that says nothing of the seed. A loss that does not keep the seed
    back, the server's say, is left to the network's next operation.
    """
    return _Toss(network, parties, session).run(value, random)


class _Toss:
    """One party's view: what each other one has sent, in the order in which it must, or what it did instead."""

    def __init__(self, network: Network, parties: Sequence[str], session: bytes) -> None:
        self._network = network
        self._parties = tuple(parties)
        self._others = [name for name in parties if name != network.me]
        self._session = session
        self._sizes = message_sizes(len(parties))
        self._heard: dict[str, dict[str, bytes]] = {step: {} for step in _STEPS}
        self._lost: dict[str, str] = {}
        self._seen = b""  # all parties' commitments and keys
        self._signatures = b""  # theirs under it
        self._asked = 0.0

    def run(self, value: bytes, random: RandomWords) -> bytes:
        blinding = draw_blinding(random)
        key = Ed25519PrivateKey.from_private_bytes(random.words(4).tobytes())
        commitment = commit(value, blinding, session=self._session, party=self._network.me)
        self._commit(commitment + key.public_key().public_bytes_raw())
        opening = value + blinding.to_bytes(SCALAR_BYTES, "big")
        wanting = self._compare(key)
        if wanting:
            self._answer(opening, wanting)
        seed = int.from_bytes(value, "big")
        for theirs in self._open(opening).values():
            seed ^= int.from_bytes(theirs[:VALUE_BYTES], "big")
        return seed.to_bytes(VALUE_BYTES, "big")

    def _commit(self, own: bytes) -> None:
        start = self._send(COMMITMENT, own)
        self._listen(COMMITMENT, start, _DEADLINES[COMMITMENT], lambda: bool(self._lost))
        self._refuse_missing(COMMITMENT)
        seen = {**self._heard[COMMITMENT], self._network.me: own}
        _refuse_copies(self._network.me, {name: seen[name][:POINT_BYTES] for name in self._parties})
        self._seen = b"".join(seen[name] for name in self._parties)

    def _compare(self, key: Ed25519PrivateKey) -> list[str]:
        """Who did not send its signature under what this party has seen."""
        own = key.sign(self._signed())
        self._asked = self._send(ECHO, self._seen + own)
        self._listen(ECHO, self._asked, _DEADLINES[ECHO])
        echoes = {**self._heard[ECHO], self._network.me: own}
        signatures = {name: echoes.get(name, b"")[-SIGNATURE_BYTES:] for name in self._parties}
        self._signatures = b"".join(signatures.values())
        return [name for name, signature in signatures.items() if not self._signed_as(name, signature)]

    def _answer(self, own: bytes, wanting: Sequence[str]) -> NoReturn:
        """Open to whoever shows all signatures, for it may be honest; the toss has failed in any case."""
        self._listen(OPENING, self._asked, _ANSWER_DEADLINES, lambda: self._shown() is not None)
        shown = self._shown()
        if shown is None:
            self._refuse_differences()
            self._refuse_missing(ECHO)
        else:
            self._send(OPENING, own + shown)
        raise CoinTossError(wanting, f"{' and '.join(wanting)} kept the echo that others have from {self._network.me}")

    def _shown(self) -> bytes | None:
        """All parties' signatures, in their order, from somebody who opens."""
        shown = (opening[OPENING_BYTES:] for opening in self._heard[OPENING].values())
        return next((signatures for signatures in shown if self._signed_by_all(signatures)), None)

    def _open(self, own: bytes) -> Mapping[str, bytes]:
        """Every other party's opening. Raises CoinTossError: all have signed, and are shown that they have."""
        start = self._send(OPENING, own + self._signatures)
        self._listen(OPENING, start, _DEADLINES[OPENING])
        wrong = {name: why for name in self._others if (why := self._fault(name)) is not None}
        if wrong:
            raise CoinTossError([*wrong], "; ".join(wrong.values()))
        return self._heard[OPENING]

    def _fault(self, name: str) -> str | None:
        """What keeps an opening of `name` from counting."""
        opening = self._heard[OPENING].get(name)
        if opening is None:
            return f"{name} did not open its commitment ({self._reason(name, OPENING)})"
        committed = self._heard[COMMITMENT][name][:POINT_BYTES]
        if not opens(committed, opening[:OPENING_BYTES], session=self._session, party=name):
            return f"{name} opened another value than it had committed to"
        return None

    def _send(self, step: str, message: bytes) -> float:
        """Send this party's message of a step to all others, lost ones too; the time."""
        self._network.step = f"coin toss: {step}"
        self._network.tell(self._others, step, np.frombuffer(message, dtype=np.uint8))
        return time.monotonic()

    def _listen(self, last: str, start: float, deadlines: int, enough: Callable[[], bool] = lambda: False) -> None:
        """Take what the others send, up to the step `last`, until all have sent that or are lost, or time is up."""
        end = start + deadlines * self._network.deadline
        while not enough():
            due = {name: step for name in self._others if (step := self._due(name, last)) is not None}
            if not due:
                return
            heard = self._network.hear({name: (step, self._sizes[step]) for name, step in due.items()}, end)
            if heard is None:
                return
            name, message = heard
            if isinstance(message, PeerError):
                self._lost[name] = str(message)
            else:
                self._heard[due[name]][name] = message

    def _due(self, name: str, last: str) -> str | None:
        if name in self._lost:
            return None
        steps = _STEPS[: _STEPS.index(last) + 1]
        return next((step for step in steps if name not in self._heard[step]), None)

    def _reason(self, name: str, step: str) -> str:
        seconds = _DEADLINES[step] * self._network.deadline
        late = f"{name} did not send '{step}' within {seconds:g} s at 'coin toss: {step}'"
        return self._lost.get(name, late)

    def _refuse_missing(self, step: str) -> None:
        for name in (*self._lost, *self._others):
            if name not in self._heard[step]:
                raise PeerError(self._reason(name, step))

    def _refuse_differences(self) -> None:
        """Refuse that a party told two others different things. Which of two lies is beyond what a third can see."""
        me, size = self._network.me, POINT_BYTES + KEY_BYTES
        for teller, echo in self._heard[ECHO].items():
            for number, name in enumerate(self._parties):
                place = slice(size * number, size * (number + 1))
                if echo[place] == self._seen[place]:
                    continue
                if name in (me, teller):  # it distorts mine, or did not echo what it had told me
                    raise CoinTossError([teller], f"{teller} alters the commitment of {name}")
                what = f"{name} or {teller} alters a commitment: {me} and {teller} have two of {name}"
                raise CoinTossError([], what)
            if not self._signed_as(teller, echo[-SIGNATURE_BYTES:]):
                raise CoinTossError([teller], f"{teller} does not sign its echo")

    def _signed(self) -> bytes:
        return digest(b"echo", self._session, self._seen)

    def _signed_as(self, name: str, signature: bytes) -> bool:
        end = (POINT_BYTES + KEY_BYTES) * (1 + self._parties.index(name))
        try:
            Ed25519PublicKey.from_public_bytes(self._seen[end - KEY_BYTES : end]).verify(signature, self._signed())
        except (InvalidSignature, ValueError):  # ValueError: no key
            return False
        return True

    def _signed_by_all(self, signatures: bytes) -> bool:
        pieces = [signatures[i : i + SIGNATURE_BYTES] for i in range(0, len(signatures), SIGNATURE_BYTES)]
        return len(pieces) == len(self._parties) and all(map(self._signed_as, self._parties, pieces))


def _refuse_copies(me: str, seen: Mapping[str, bytes]) -> None:
    owners: dict[bytes, str] = {}
    for name, commitment in seen.items():
        first = owners.setdefault(commitment, name)
        if first != name:
            copier, original = (first, name) if name == me else (name, first)
            certain = original == me  # else it may be the other way round
            raise CoinTossError([copier] if certain else [], f"{copier} repeats the commitment of {original}")
