"""One compute party's ballot box: what comes in is checked and kept sealed on disk until it is counted.

Policy: the first ballot of a voter that is well signed, sealed to this party and of the right length is kept, every
further one is refused as a second ballot, also when it is the same again. A refused ballot takes nobody's place. What
arrives after the close is late. A kept ballot is counted if all compute parties have the same one (compared by its
digests) before the first party counts it or within `grace` seconds after; one that is not is never counted.

Memory: per registered voter a few dozen bytes; ballots are on disk, one file each, and deleted when counted.
"""

from __future__ import annotations

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
from smpc.ring import Integers

NOBODY = -1
DIGEST_WORDS = DIGEST_BYTES // 8


class Box:
    """For one thread that counts and any number that put ballots in."""

    def __init__(self, poll: Poll, me: str, key: X25519PrivateKey, folder: Path, *, grace: float = 10.0) -> None:
        """`folder` is this box's own and empty."""
        self.poll = poll
        self.me = me
        self.refused: Counter[Reason] = Counter()
        self._key = key
        self._folder = folder
        self._grace = grace
        self._place = poll.parties.index(me)
        self._digests: dict[int, bytes] = {}  # of every ballot ever kept, all parties' sealed shares in one
        self._waiting: deque[int] = deque()
        self._closed = False
        self._change = threading.Condition()

    def put(self, data: bytes) -> str:
        """Keep one ballot; the voter's name. Raises BallotError, with the reason, which is counted in `refused`."""
        try:
            envelope = Envelope.read(data)
            number = self._checked(envelope)
            with self._change:
                if self._closed:
                    raise BallotError(Reason.LATE, envelope.voter)
                if number in self._digests:
                    raise BallotError(Reason.DUPLICATE, envelope.voter)
                self._path(number).write_bytes(data)
                self._digests[number] = _joint(envelope)
                self._waiting.append(number)
                self._change.notify_all()
        except BallotError as error:
            with self._change:
                self.refused[error.reason] += 1
            raise
        return envelope.voter

    def _checked(self, envelope: Envelope) -> int:
        """The voter's number. Everything that needs no secret comes first."""
        number = self.poll.numbers.get(envelope.voter)
        if envelope.job != self.poll.job:
            raise BallotError(Reason.OTHER_JOB)
        if number is None:
            raise BallotError(Reason.UNKNOWN)
        envelope.check(self.poll.voters[envelope.voter], self._place, len(self.poll.parties))
        content = envelope.open(self.me, self._key)
        if len(content) != shares.content_bytes(self.poll.entries, first=self._place == 0):
            raise BallotError(Reason.LENGTH, envelope.voter)
        return number

    def close(self) -> None:
        """From now on ballots are late."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def next_batch(self, most: int, seconds: float) -> npt.NDArray[np.float64]:
        """The numbers of up to `most` voters whose ballots came in, in that order, then NOBODY: shape (1 + most,).

        Entry 0 is 1 while more may come. Waits up to `seconds` for `most` ballots, or for the close.
        """
        end = time.monotonic() + seconds
        with self._change:
            everybody = len(self.poll.voters)
            self._change.wait_for(
                lambda: self._closed or len(self._waiting) >= most or len(self._digests) == everybody,
                timeout=max(0.0, end - time.monotonic()),
            )
            taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
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
        """Which of the voters' ballots are here and the same, 1 or 0 each; waits for those that are not yet here."""
        wanted = [int(number) for number in numbers]
        with self._change:
            self._change.wait_for(lambda: all(number in self._digests for number in wanted), timeout=self._grace)
            return np.array(
                [
                    self._digests.get(number) == row.astype("<i8").tobytes()
                    for number, row in zip(wanted, digests, strict=True)
                ],
                dtype=np.float64,
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
