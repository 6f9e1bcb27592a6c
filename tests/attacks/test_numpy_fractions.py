"""Stock CrypTen drops the fractions of NumPy arrays without a word; ours rounds them to the nearest step."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from launch.pool import Pool
from smpc.engine.session import CryptenSession
from tests.attacks.ours import Recorded, stock_encoder
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

VALUES = np.array([0.5, 1.7, -2.25, 3.0])


@dataclass(frozen=True)
class InputView:
    """Reals that a party put in as a NumPy array, and what came out when they were opened."""

    values: npt.NDArray[np.float64]
    opened: npt.NDArray[np.floating[Any]]


def attack(view: InputView) -> npt.NDArray[np.float64]:
    """The values that lost their fraction."""
    lost = (np.trunc(view.values) == view.opened) & (view.values != view.opened)
    return np.asarray(view.values[lost])


def put_in(rank: int, values: Any) -> InputView:
    """In a party, stock or ours: an array shared by rank 0 and opened."""
    import crypten

    return InputView(values, crypten.cryptensor(values, src=0, device="cpu").get_plain_text().numpy())


def put_in_ours(s: CryptenSession, frames: Recorded, values: Any, stock: bool) -> InputView | None:
    """In a process of ours; `stock`: a wrong variant, with CrypTen's own encode."""
    if not s.is_party:
        return None
    with stock_encoder() if stock else nullcontext():
        return put_in(s.cast.parties.index(s.me), values)


def test_numpy_fractions_are_lost_in_stock_crypten_and_not_in_ours(stock_pair: StockParties, our_pair: Pool) -> None:
    _, view = stock_pair.run(put_in, values=VALUES)

    assert np.array_equal(attack(view), VALUES[:3])
    assert attack(InputView(VALUES, VALUES + 2.0**-17)).size == 0

    ours = our_pair.run(put_in_ours, values=VALUES, stock=False)
    variant = our_pair.run(put_in_ours, values=VALUES, stock=True)
    for party in our_pair.cast.parties:
        assert attack(ours[party]).size == 0
        assert np.array_equal(ours[party].opened, [0.5, 111411 / 2**16, -2.25, 3.0])  # 1.7 to the nearest 2^-16
        assert np.array_equal(attack(variant[party]), VALUES[:3])
