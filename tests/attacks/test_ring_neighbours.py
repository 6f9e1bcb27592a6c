"""Stock CrypTen's zero-sharings use ring neighbours' keys only: the two neighbours of a party read its input to a sum.

They learn that party's share of the sum from what gloo's reduce leaves in their memory, and know all of its masks.
In ours every pair has a key, so all other parties and the receiver of the sum must collude: then the sum tells anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

from launch.pool import Pool
from mechanisms.randomness import RandomWords
from smpc import fixedpoint
from smpc.engine.session import CryptenSession
from smpc.values import Held, value_of
from tests.attacks.ours import Recorded, payloads
from tests.attacks.recording import Integers, Recording, recording
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

PARTIES = 5
LENGTH = 4 * PARTIES
LEFT, MIDDLE, RIGHT = 1, 2, 3  # the receiver of the sum, 0, does not collude


@dataclass(frozen=True)
class ColludersView:
    """What colluding parties know of one party in a sum of all parties' inputs, opened to one receiver.

    `share`: that party's share of the sum, as it left that party. `zeros`: every term of its zero-sharings (of all
    inputs, and of the opening) that a colluder's keys give, with the sign with which the party adds it.
    """

    share: Integers
    zeros: Sequence[Integers]


def attack(view: ColludersView) -> Integers:
    """The party's input, if the colluders know all of its masks."""
    return np.asarray(view.share - np.add.reduce(view.zeros))


def between(left: Recording, own_left: Integers, right: Recording, total: Integers) -> Integers:
    """The middle party's share, from the memory of its neighbours after gloo's reduce, and the published sum.

    Each of the vector's five chunks travels down the ranks while they add their shares; a rank's buffer keeps what it
    passed on. The chunk of the right neighbour's number starts at the middle party, that of its own number ends there.
    """
    before, after = right.buffers[-1].copy(), left.buffers[-1] - own_left
    before[_chunk(RIGHT)] = 0
    after[_chunk(MIDDLE)] = total[_chunk(MIDDLE)]
    return np.asarray(after - before)


def _chunk(rank: int) -> slice:
    return slice(rank * LENGTH // PARTIES, (rank + 1) * LENGTH // PARTIES)


def add_up(rank: int, own: Any) -> tuple[Recording, Integers]:
    """In a stock party: everybody shares a vector, the sum is opened to rank 0. Its recording, its share of the sum."""
    import crypten
    import torch

    with recording() as seen:
        total = sum(crypten.cryptensor(torch.from_numpy(own), src=source) for source in range(PARTIES))
        share = total.share.numpy().copy()
        total.get_plain_text(dst=0)
    return seen, share


class KeptStream:
    """A pair's stream of zero-sharing words that keeps what it gives, with the sign with which this party adds it."""

    def __init__(self, sign: int, stream: RandomWords) -> None:
        self.sign = sign
        self._stream = stream
        self.given: list[Integers] = []

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        words = self._stream.words(count)
        self.given.append(self.sign * words.view(np.int64))
        return words


def add_up_in_ours(s: CryptenSession, frames: Recorded, own: Integers | None, neighbours_only: bool) -> Any:
    """In a process of ours: everybody shares a vector, the sum is opened to the server.

    A party gives the terms of its zero-sharings by rank of the pair's other end; the server gives the middle party's
    message and the sum. `neighbours_only`: a wrong variant, with the pairs that stock CrypTen uses.
    """
    pairs: dict[int, KeptStream] = {}
    if s.is_party:
        me = s.cast.parties.index(s.me)
        others = [rank for rank in range(PARTIES) if rank != me]
        pairs = {rank: KeptStream(*signed) for rank, signed in zip(others, s._sharing._signed, strict=True)}
        if neighbours_only:
            pairs = {rank: pair for rank, pair in pairs.items() if abs(rank - me) in (1, PARTIES - 1)}
    held = [Held(party, own if party == s.me else None) for party in s.cast.parties]
    used = [(pair.sign, pair) for pair in pairs.values()]
    with patch.object(s._sharing, "_signed", used) if s.is_party else nullcontext():
        total = s.total([s.share(one, (LENGTH,)) for one in held])
        opened = s.reveal(total, to=s.cast.server, message="sum", unprotected=True)
    if s.is_party:
        return {rank: pair.given for rank, pair in pairs.items()}
    return payloads(frames, "received", s.cast.parties[MIDDLE], "reveal: sum")[-1], value_of(opened)


def entries_read_in_ours(pool: Pool, neighbours_only: bool) -> dict[tuple[int, ...], int]:
    """How much of the middle party's input each coalition of others reads, with the receiver of the sum."""
    inputs = fixedpoint.encode(np.random.default_rng().uniform(-9, 9, (PARTIES, LENGTH)), 16)
    held = {name: {"own": None} for name in pool.cast.everyone} | {
        f"p{k}": {"own": own} for k, own in enumerate(inputs)
    }
    runs = pool.run(add_up_in_ours, held, neighbours_only=neighbours_only)
    share, opened = runs[pool.cast.server]
    assert np.array_equal(opened, inputs.sum(axis=0))
    for party in pool.cast.parties:  # fresh for every input, and once more before the sum is opened
        assert {len(words) for words in runs[party].values()} == {PARTIES + 1}
    read = {}
    others = [rank for rank in range(PARTIES) if rank != MIDDLE]
    for size in range(1, PARTIES):
        for colluders in combinations(others, size):
            theirs = [words for rank in colluders for words in runs[f"p{rank}"].get(MIDDLE, [])]
            view = ColludersView(share, [np.zeros(LENGTH, np.int64), *(-words for words in theirs)])
            read[colluders] = int(np.sum(attack(view) == inputs[MIDDLE]))
    return read


def test_two_neighbours_read_an_input_to_a_sum_in_stock_crypten_and_not_in_ours(
    stock_five: StockParties, our_five: Pool
) -> None:
    inputs = np.random.default_rng().uniform(-9, 9, (PARTIES, LENGTH))
    runs = stock_five.run(add_up, [{"own": own} for own in inputs])
    (left, own_left), (_, true_share), (right, _) = runs[LEFT], runs[MIDDLE], runs[RIGHT]
    share = between(left, own_left, right, runs[0][0].buffers[-1])
    plus, minus = left.drawn["next"], [-words for words in right.drawn["prev"]]

    assert np.array_equal(share, true_share)
    secret = (inputs[MIDDLE] * 2**16).astype(np.int64)
    assert np.array_equal(attack(ColludersView(share, plus + minus)), secret)
    assert not np.any(attack(ColludersView(share, plus)) == secret), "one neighbour alone must not"

    everybody = tuple(rank for rank in range(PARTIES) if rank != MIDDLE)
    read = entries_read_in_ours(our_five, neighbours_only=False)
    assert read.pop(everybody) == LENGTH, "the view is incomplete: all others know the input from the sum"
    assert (LEFT, RIGHT) in read and (0, LEFT, RIGHT) in read
    assert set(read.values()) == {0}
    read = entries_read_in_ours(our_five, neighbours_only=True)
    assert all(count == (LENGTH if {LEFT, RIGHT} <= set(colluders) else 0) for colluders, count in read.items())
