"""Sums of one-hot votes as exact integers on secret shares.

A vote costs no message to share (its masks come from the parties' pair keys) and none to add: a count of V voters over
N samples and C classes takes 0 rounds and 0 bytes until it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from smpc.errors import InputError
from smpc.ring import Integers
from smpc.session import Held, Session, Shared


def count_votes(s: Session, votes: Mapping[str, Held[Integers]], *, samples: int, classes: int) -> Shared:
    """Shares of the number of votes for each class of each sample, shape (samples, classes).

    `votes[p]`, held by p, has that shape too: one row a sample, a single 1 among zeros.
    """
    shape = (samples, classes)
    return s.total([s.share(s.at(party, one_hot, vote, shape), shape) for party, vote in votes.items()])


def one_hot(vote: Integers, shape: tuple[int, int]) -> Integers:
    """`vote`, if each of its rows is a single 1 among zeros. Raises InputError otherwise."""
    array = np.asarray(vote)
    if array.shape != shape or array.dtype.kind not in "iub":
        raise InputError(f"votes are {array.dtype} {array.shape}: need integers of shape {shape}")
    wrong = ((array != 0) & (array != 1)).any(axis=1) | (array.sum(axis=1) != 1)
    if wrong.any():
        raise InputError(f"votes of sample {int(wrong.argmax())}: need a single 1 among zeros")
    return array.astype(np.int64)
