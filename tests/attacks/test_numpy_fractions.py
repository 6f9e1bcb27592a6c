"""Stock CrypTen drops the fractions of NumPy arrays without a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

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
    """In a stock party: an array shared by rank 0 and opened."""
    import crypten

    return InputView(values, crypten.cryptensor(values, src=0, device="cpu").get_plain_text().numpy())


def test_stock_crypten_loses_numpy_fractions(stock_pair: StockParties) -> None:
    _, view = stock_pair.run(put_in, values=VALUES)

    assert np.array_equal(attack(view), VALUES[:3])
    assert attack(InputView(VALUES, VALUES + 2.0**-17)).size == 0
