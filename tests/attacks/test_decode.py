"""Stock CrypTen decodes some negative ring integers one whole unit too low."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.attacks.recording import Integers
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

BITS = 16
RING = np.arange(-(2**18), 2**18, dtype=np.int64)


@dataclass(frozen=True)
class DecodeView:
    """Ring integers with BITS fraction bits and the reals that they were decoded to."""

    ring: Integers
    decoded: npt.NDArray[np.floating[Any]]


def attack(view: DecodeView) -> Integers:
    """The ring integers that were decoded wrong by more than one step."""
    wrong = np.abs(view.decoded - view.ring / 2**BITS) > 2.0**-BITS
    return np.asarray(view.ring[wrong])


def decode(rank: int, ring: Any) -> DecodeView:
    """In a stock party: shared as they are by rank 0 and opened."""
    import torch
    from crypten.mpc.primitives import ArithmeticSharedTensor

    share = torch.from_numpy(ring if rank == 0 else np.zeros_like(ring))
    return DecodeView(ring, ArithmeticSharedTensor.from_shares(share).get_plain_text().numpy())


def test_stock_crypten_decodes_negatives_one_too_low(stock_pair: StockParties) -> None:
    _, view = stock_pair.run(decode, ring=RING)
    wrong = attack(view)

    assert -131071 in wrong
    assert view.decoded[RING == -131071] == pytest.approx(-3.0, abs=1e-4)  # -131071 / 65536 is just above -2
    assert np.all(wrong < 0)
    assert np.array_equal(attack(DecodeView(RING, RING / 2**BITS)), [])
