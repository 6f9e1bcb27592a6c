"""Stock CrypTen decodes some negative ring integers one whole unit too low; ours decodes all exactly."""

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
from tests.attacks.recording import Integers
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

BITS = 16
RING = np.arange(-(2**18), 2**18, dtype=np.int64)
LARGE = np.array([2**52 + 1, -(2**52) - 1])  # beyond float32, through which stock CrypTen decodes


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
    """In a party, stock or ours: shared as they are by rank 0 and opened."""
    import torch
    from crypten.mpc.primitives import ArithmeticSharedTensor

    share = torch.from_numpy(ring if rank == 0 else np.zeros_like(ring))
    return DecodeView(ring, ArithmeticSharedTensor.from_shares(share).get_plain_text().numpy())


def decode_in_ours(s: CryptenSession, frames: Recorded, ring: Any, stock: bool) -> DecodeView | None:
    """In a process of ours; `stock`: a wrong variant, with CrypTen's own decode."""
    if not s.is_party:
        return None
    with stock_encoder() if stock else nullcontext():
        return decode(s.cast.parties.index(s.me), ring)


def test_negatives_are_decoded_one_too_low_in_stock_crypten_and_not_in_ours(
    stock_pair: StockParties, our_pair: Pool
) -> None:
    _, view = stock_pair.run(decode, ring=RING)
    wrong = attack(view)

    assert -131071 in wrong
    assert view.decoded[RING == -131071] == pytest.approx(-3.0, abs=1e-4)  # -131071 / 65536 is just above -2
    assert np.all(wrong < 0)
    assert np.array_equal(attack(DecodeView(RING, RING / 2**BITS)), [])

    ring = np.concatenate([RING, LARGE])
    ours = our_pair.run(decode_in_ours, ring=ring, stock=False)
    variant = our_pair.run(decode_in_ours, ring=RING, stock=True)
    for party in our_pair.cast.parties:
        assert attack(ours[party]).size == 0
        assert np.array_equal(ours[party].decoded, ring / 2**BITS)
        assert np.array_equal(attack(variant[party]), wrong)
