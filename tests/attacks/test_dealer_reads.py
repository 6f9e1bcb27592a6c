"""The first party of stock CrypTen deals the triples, so it reads the other's matrix off the opened difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.attacks.recording import Integers, recording
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

ROWS, WIDTH = 50, 3


@dataclass(frozen=True)
class PartyView:
    """One party in a product: every array it received, and every random array that it drew or expanded from a key."""

    received: list[Integers]
    known: list[Integers]


def attack(view: PartyView) -> list[Integers]:
    """All it can read: each received array as it is, and with each known one of its shape added or taken off."""
    candidates = []
    for array in view.received:
        candidates.append(array)
        for words in view.known:
            if words.shape == array.shape:
                candidates += [array + words, array - words]
    return candidates


def finds(candidates: list[Integers], secret: Integers) -> bool:
    return any(np.array_equal(candidate, secret) for candidate in candidates)


def product(rank: int, columns: Any) -> PartyView:
    """In a stock party: one matrix product X'Y, opened; `columns` are this party's, shape (ROWS, WIDTH)."""
    import crypten
    import torch

    x, y = (torch.from_numpy(columns) if source == rank else torch.zeros(ROWS, WIDTH) for source in (0, 1))
    with recording() as seen:
        (crypten.cryptensor(x.t(), src=0) @ crypten.cryptensor(y, src=1)).get_plain_text()
    return PartyView(seen.buffers, [words for stream in seen.drawn.values() for words in stream])


def test_first_party_of_stock_crypten_reads_the_others_matrix(stock_pair: StockParties) -> None:
    columns = np.random.default_rng().uniform(-9, 9, (2, ROWS, WIDTH))
    first, _ = stock_pair.run(product, [{"columns": own} for own in columns])
    secret = (columns[1] * 2**16).astype(np.int64)  # its encoding: 16 fraction bits, toward zero

    assert finds(attack(first), secret)
    assert not finds(attack(PartyView(first.received, [])), secret), "without its triples it must not"
