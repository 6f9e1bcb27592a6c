"""One compute party's ballot box: what comes in is checked and kept sealed on disk until it is counted.

Policy: the first ballot of a voter that is well signed, sealed to this party and of the right length is kept. The same
ballot gets its receipt again whenever it comes, so that a voter whose connection was lost can send it once more;
another one is refused as a second ballot. A refused ballot takes nobody's place. What arrives after the close is late.
A kept ballot is counted if all compute parties have the same one (compared by its digests) when the first party counts
it: so voters hand it to the first party last.

Memory: per registered voter a few dozen bytes; ballots are on disk, one file each, and deleted when counted.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
from pathlib import Path

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from smpc.ballots import shares
from smpc.ballots.envelope import DIGEST_BYTES, BallotError, Envelope, Reason, digest
from smpc.ballots.poll import Poll
from smpc.errors import InputError
from smpc.ring import Integers

NOBODY = -1
DIGEST_WORDS = DIGEST_BYTES // 8


class Box:
    """For one thread that counts and any number that put ballots in."""

    def __init__(self, poll: Poll, me: str, key: X25519PrivateKey, folder: Path) -> None:
        """`folder` is this box's own and empty."""
        self.poll = poll
        self.me = me
        self.refused: Counter[Reason] = Counter()
        self._key = key
        self._folder = folder
        self._place = poll.parties.index(me)
        self._digests: dict[int, bytes] = {}  # of every ballot ever kept, all parties' sealed shares in one
        self._waiting: deque[int] = deque()
        self._closed = False
        self._fault: OSError | None = None
        self._change = threading.Condition()

    @property
    def closed(self) -> bool:
        return self._closed

    def holds(self, voter: str) -> bool:
        """Whether a ballot of this registered voter has been kept."""
        return self.poll.numbers[voter] in self._digests

    def signer(self, cover: bytes) -> str | None:
        """The registered voter whose valid signature for this poll the cover of a ballot shows."""
        try:
            envelope = Envelope.read(cover)
            self._number(envelope)
        except BallotError:
            return None
        return envelope.voter

    def put(self, data: bytes) -> str:
        """Keep one ballot; the voter's name. Raises BallotError, with the reason, which is counted in `refused`."""
        try:
            envelope = Envelope.read(data)
            number = self._number(envelope)
            self._check_content(envelope)
            ballot = _joint(envelope)
            with self._change:
                if number in self._digests:
                    if self._digests[number] != ballot:
                        raise BallotError(Reason.DUPLICATE, envelope.voter)
                    return envelope.voter
                if self._closed:
                    raise BallotError(Reason.LATE, envelope.voter)
                self._keep(number, envelope.voter, data)
                self._digests[number] = ballot
                self._waiting.append(number)
                self._change.notify_all()
        except BallotError as error:
            with self._change:
                self.refused[error.reason] += 1
            raise
        return envelope.voter

    def _keep(self, number: int, voter: str, data: bytes) -> None:
        """Without room the voter hears so now, and whoever counts soon: a box that loses ballots is no box."""
        path = self._path(number)
        try:
            path.write_bytes(data)
        except OSError as error:
            self._fault = error
            self._change.notify_all()
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            raise BallotError(Reason.ROOM, voter) from None

    def _number(self, envelope: Envelope) -> int:
        """The voter's, if it is registered and signed this."""
        number = self.poll.numbers.get(envelope.voter)
        if envelope.poll != self.poll.id:
            raise BallotError(Reason.OTHER_POLL)
        if number is None:
            raise BallotError(Reason.UNKNOWN)
        envelope.check_signature(self.poll.voters[envelope.voter])
        return number

    def _check_content(self, envelope: Envelope) -> None:
        envelope.check_place(self._place, len(self.poll.parties))
        content = envelope.open(self.me, self._key)
        if len(content) != shares.content_bytes(self.poll.entries, first=self._place == 0):
            raise BallotError(Reason.LENGTH, envelope.voter)

    def close(self) -> None:
        """From now on ballots are late."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def next_batch(self, most: int, seconds: float) -> npt.NDArray[np.float64]:
        """The numbers of up to `most` voters whose ballots came in, ascending, then NOBODY: shape (1 + most,).

        Entry 0 is 1 while more may come. Waits up to `seconds` for `most` ballots, or for the close. Raises InputError
        where ballots cannot be kept.
        """
        end = time.monotonic() + seconds
        with self._change:
            everybody = len(self.poll.voters)
            self._change.wait_for(
                lambda: self._fault or self._closed or len(self._waiting) >= most or len(self._digests) == everybody,
                timeout=max(0.0, end - time.monotonic()),
            )
            self.check_room()
            taken = sorted(self._waiting.popleft() for _ in range(min(most, len(self._waiting))))
            done = not self._waiting and (self._closed or len(self._digests) == everybody)
        result = np.full(1 + most, NOBODY, dtype=np.float64)
        result[0] = not done
        result[1 : 1 + len(taken)] = taken
        return result

    def digests(self, numbers: Integers) -> Integers:
        """Of the voters' ballots, shape (len(numbers), 4)."""
        joined = b"".join(self._digests[int(number)] for number in numbers)
        return np.frombuffer(joined, dtype="<i8").astype(np.int64).reshape(len(numbers), DIGEST_WORDS)

    def has(self, numbers: Integers, digests: Integers) -> npt.NDArray[np.float64]:
        """Which of the voters' ballots are here and the same, 1 or 0 each."""
        with self._change:
            same = [
                self._digests.get(int(number)) == row.astype("<i8").tobytes()
                for number, row in zip(numbers, digests, strict=True)
            ]
        return np.array(same, dtype=np.float64)

    def check_room(self) -> None:
        """Raises InputError once a ballot could not be kept."""
        if self._fault is not None:
            raise InputError(
                f"ballots cannot be kept in {self._folder} ({self._fault.strerror}): make room, or set TMPDIR to where "
                "there is, and run the job again"
            )

    def take(self, numbers: Integers) -> Integers:
        """This party's shares of the voters' ballots, shape (len(numbers), entries); their files are deleted."""
        result = np.empty((len(numbers), self.poll.entries), dtype=np.int64)
        for row, number in zip(result, numbers, strict=True):
            path = self._path(int(number))
            content = Envelope.read(path.read_bytes()).open(self.me, self._key)
            row[:] = shares.expand(content, self.poll.entries, first=self._place == 0)
            path.unlink()
        return result

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.ballot"


def _joint(envelope: Envelope) -> bytes:
    """One digest for the sealed shares of all parties."""
    return digest(b"".join(envelope.digests))
