"""Ballots become shares of vote counts, batch by batch while they come in; no batch is kept.

step  from -> to      message           the receiver learns
1     P_k -> all      next ballots      whose ballots the first party has: public
2     P_k -> P_l      ballot digests    digests of the sealed shares of all: no vote
3     P_k -> all      ballots held      which of them are here and the same: public
4     P_k -> P_l      commitment        nothing: perfectly hiding
5     P_k -> P_l      echo              the commitments of step 4
6     P_k -> P_l      opening           the coin, tossed after the ballots are fixed
7     dealer -> P_k   corrections       nothing: uniform
8     P_k -> P_l      masked entries    nothing: uniform without the dealer's seeds
9     P_l -> P_k      check values      zeros of a vote; 40 sums of the defects of a ballot that is none
10    P_k -> all      ballots accepted  whose ballots are votes: public

Steps 2 and 3 for each party but the first, in their order. So who is counted is public, and so is why others are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from smpc.ballots.box import DIGEST_WORDS, NOBODY, Box
from smpc.ballots.check import check
from smpc.ballots.envelope import Reason
from smpc.ballots.poll import Poll
from smpc.errors import InputError, PeerError
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, Shared

BATCH_ENTRIES = 1 << 19  # at once: 4 MB a share, and a few times that while they are squared
BATCH_SECONDS = 5.0  # how long the first party waits for a batch to fill
LONGEST_VOTE = 3000.0  # seconds; well within the time that participants wait for a peer that does nothing

FULL_VOTE = "all voters' ballots are in, and right, when counting starts"


@dataclass(frozen=True)
class Tally:
    """Shares of the counts, shape (width, samples), and what became of every registered voter."""

    counts: Shared
    counted: tuple[str, ...]
    rejected: Mapping[str, Reason]
    missing: tuple[str, ...]


def tally(s: Session, boxes: Mapping[str, Held[Box]], poll: Poll, *, checked: bool = True) -> Tally:
    """Count the ballots in the parties' boxes, until the first party's is closed and empty.

    Not `checked`: ballots are any integers, steps 4 to 10 are left out, and a voter can add what it likes. Raises
    InputError if none is counted, or where a party cannot keep ballots. Memory does not depend on the number of voters,
    but for their names.
    """
    names = tuple(poll.voters)
    total: Shared | None = None
    counted: list[str] = []
    rejected: dict[str, Reason] = {}
    for batch, alike in _batches(s, boxes, poll):
        rejected |= {names[number]: Reason.DIFFERENT for number in batch[~alike]}
        batch = batch[alike]
        if not batch.size:
            continue
        shape = (len(batch), poll.entries)
        coin = s.toss() if checked else {}
        ballots = s.adopt({party: s.at(party, Box.take, box, batch) for party, box in boxes.items()}, shape)
        accepted = np.ones(len(batch), dtype=np.bool_)
        if checked:
            valid = check(s, ballots, poll, coin)
            accepted = s.publish(s.at(valid.holder, _as_float, valid), shape=shape[:1], message="ballots accepted") != 0
        counted += [names[number] for number in batch[accepted]]
        rejected |= {names[number]: Reason.CHECK for number in batch[~accepted]}
        total = _add(s, total, ballots, accepted)
    if total is None or not counted:
        raise InputError(
            f"none of {len(names)} voters is counted, {len(rejected)} ballots were rejected: nothing is released; "
            "run the job again, with time for all to vote"
        )
    known = rejected.keys() | set(counted)
    missing = tuple(name for name in names if name not in known)
    counts = s.linear(total, lambda x: x.reshape(poll.width, poll.samples), (poll.width, poll.samples))
    return Tally(counts, tuple(sorted(counted, key=poll.numbers.__getitem__)), rejected, missing)


def _batches(
    s: Session, boxes: Mapping[str, Held[Box]], poll: Poll
) -> Iterator[tuple[Integers, npt.NDArray[np.bool_]]]:
    """Voters' numbers, and which of their ballots all parties have alike: the same for every participant.

    Raises PeerError where the first party names a ballot twice, or one of nobody, or waits longer than any vote lasts.
    """
    first, *others = s.cast.parties
    most = _batch_size(poll)
    more, left, waits = True, set(range(len(poll.voters))), int(LONGEST_VOTE / BATCH_SECONDS) + 1
    while more:
        told = s.at(first, Box.next_batch, boxes[first], most, BATCH_SECONDS)
        line = s.publish(told, shape=(1 + most,), message="next ballots")
        for party in others:
            s.at(party, Box.check_room, boxes[party])
        named = line[1:][line[1:] != NOBODY]
        if len(left.intersection(named.tolist())) < len(named):
            raise PeerError(f"{first} counts a ballot twice, or one of no voter")
        left.difference_update(named.tolist())
        more, batch = bool(line[0]), named.astype(np.int64)
        if not batch.size:
            waits -= more
            if not waits:
                raise PeerError(f"{first} waits for ballots after {LONGEST_VOTE:g} s, and no vote lasts as long")
            continue
        alike = np.ones(len(batch), dtype=np.bool_)
        digests = s.at(first, Box.digests, boxes[first], batch)
        for party in others:
            theirs = s.send(digests, to=party, shape=(len(batch), DIGEST_WORDS), message="ballot digests")
            has = s.at(party, Box.has, boxes[party], batch, theirs)
            alike &= s.publish(has, shape=(len(batch),), message="ballots held") != 0
        yield batch, alike


def full_vote(poll: Poll) -> Iterator[npt.NDArray[np.float64]]:
    """What `tally` publishes in the course FULL_VOTE: for a forecast."""
    most = _batch_size(poll)
    for start in range(0, len(poll.voters), most):
        batch = np.arange(start, min(start + most, len(poll.voters)))
        line = np.full(1 + most, NOBODY, dtype=np.float64)
        line[0] = start + most < len(poll.voters)
        line[1 : 1 + len(batch)] = batch
        yield line
        for _ in poll.parties:  # of all but the first: which they hold; of the first: which are accepted
            yield np.ones(len(batch))


def _batch_size(poll: Poll) -> int:
    return min(len(poll.voters), max(1, BATCH_ENTRIES // poll.entries))


def _add(s: Session, total: Shared | None, ballots: Shared, accepted: npt.NDArray[np.bool_]) -> Shared:
    votes = s.linear(ballots, lambda x: np.asarray(x[accepted].sum(axis=0)), ballots.shape[1:])
    return votes if total is None else s.total([total, votes])


def _as_float(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    return flags.astype(np.float64)
