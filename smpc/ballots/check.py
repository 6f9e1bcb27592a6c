"""Whether secret-shared ballots are votes: every entry 0 or 1, and one vote for each sample.

Defects of a ballot v, all zero exactly for votes: v^2 - v of every entry, and (more than two classes) the sum over the
classes of every sample, minus 1. COMBINATIONS sums of the defects with coefficients uniform in Z_2^64 are opened. A
ballot with a defect passes one of them with probability 1/2 at most: the sum is uniform on the multiples of the largest
power of two that divides all defects, and there are at least two of these (exactly two when all defects are 0 or
2^63). The sums are independent, so it passes all of them with probability 2^-40 at most. Of votes the opened sums are
zero, whoever looks, and so they tell nothing; of a rejected ballot they are known.

The coefficients come from a coin that the compute parties toss after they have compared their sealed shares of these
ballots: a voter who knew them would choose defects that cancel. Compute parties are assumed to follow the protocol: one
that lies can have an honest ballot rejected, or a wrong one counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import Stream
from smpc.ballots.poll import Poll
from smpc.ring import Integers, inner
from smpc.session import Session
from smpc.values import Held, Shared

COMBINATIONS = 40
CHECK_VALUES = "check values"


def check(s: Session, ballots: Shared, poll: Poll, coin: Mapping[str, Held[bytes]]) -> Held[npt.NDArray[np.bool_]]:
    """Which of the `ballots`, shape (count, entries), are votes: held by the first party.

    Cost: 3 rounds; of each entry 8 bytes from the dealer and to every other party; 320 bytes a ballot to the first.
    """
    count, first = ballots.shape[0], s.cast.parties[0]
    shape = (count, COMBINATIONS)
    squares = s.linear(s.square(ballots), lambda x, seed: inner(x, of_squares(seed, poll)), shape, coin)
    entries = s.linear(ballots, lambda x, seed: inner(x, of_entries(seed, poll)), shape, coin)
    ones = s.share(s.at(first, of_ones, coin[first], poll, count), shape)
    opened = s.reveal(s.total([squares, entries, ones]), to=first, message=CHECK_VALUES, unprotected=True)
    return s.at(first, _all_zero, opened)


def of_squares(seed: bytes, poll: Poll) -> Integers:
    """The coefficients of the entries' defects v^2 - v, shape (COMBINATIONS, entries)."""
    return _coefficients(seed, poll)[:, : poll.entries]


def of_entries(seed: bytes, poll: Poll) -> Integers:
    """The coefficients of the entries themselves: that of the sample's sum minus that of v^2 - v."""
    return np.tile(_of_samples(seed, poll), poll.width) - of_squares(seed, poll)


def of_ones(seed: bytes, poll: Poll, count: int) -> Integers:
    """What the sums' defects subtract, for each of `count` ballots: shape (count, COMBINATIONS)."""
    return np.tile(-_of_samples(seed, poll).sum(axis=1), (count, 1))


def _of_samples(seed: bytes, poll: Poll) -> Integers:
    """The coefficients of the samples' sums; zeros where a ballot has one entry a sample."""
    if poll.width == 1:
        return np.zeros((COMBINATIONS, poll.samples), dtype=np.int64)
    return _coefficients(seed, poll)[:, poll.entries :]


def _coefficients(seed: bytes, poll: Poll) -> Integers:
    """Of the entries' defects, then of the samples'."""
    defects = poll.entries + (poll.samples if poll.width > 1 else 0)
    return Stream(seed).words(COMBINATIONS * defects).view(np.int64).reshape(COMBINATIONS, defects)


def _all_zero(opened: Integers) -> npt.NDArray[np.bool_]:
    return np.asarray(~opened.any(axis=1))
