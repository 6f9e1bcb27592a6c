"""Stock CrypTen's zero-sharings use ring neighbours' keys only: the two neighbours of a party read its input to a sum.

They learn that party's share of the sum from what gloo's reduce leaves in their memory, and know all of its masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

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


def test_two_neighbours_in_stock_crypten_read_an_input_to_a_sum(stock_five: StockParties) -> None:
    inputs = np.random.default_rng().uniform(-9, 9, (PARTIES, LENGTH))
    runs = stock_five.run(add_up, [{"own": own} for own in inputs])
    (left, own_left), (_, true_share), (right, _) = runs[LEFT], runs[MIDDLE], runs[RIGHT]
    share = between(left, own_left, right, runs[0][0].buffers[-1])
    plus, minus = left.drawn["next"], [-words for words in right.drawn["prev"]]

    assert np.array_equal(share, true_share)
    secret = (inputs[MIDDLE] * 2**16).astype(np.int64)
    assert np.array_equal(attack(ColludersView(share, plus + minus)), secret)
    assert not np.any(attack(ColludersView(share, plus)) == secret), "one neighbour alone must not"
