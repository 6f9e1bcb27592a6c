"""The first party of stock CrypTen deals the triples, so it reads the other's matrix off the opened difference.

In ours the dealer takes no part: a party lacks the others' masks, the dealer lacks what they mask.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from launch.pool import Pool
from mechanisms.randomness import Stream
from smpc import fixedpoint
from smpc.engine import crossproduct
from smpc.engine.session import CryptenSession
from smpc.engine.sharing import ring_elements
from smpc.values import Held
from tests.attacks.ours import Recorded, payloads
from tests.attacks.recording import Integers, recording
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

ROWS, WIDTH = 50, 3
BITS = 16


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


def entries_read(candidates: list[Integers], secret: Integers) -> int:
    """How many entries of the secret the best candidate has right."""
    return max((int(np.sum(c == secret)) for c in candidates if c.shape == secret.shape), default=0)


def product(rank: int, columns: Any) -> PartyView:
    """In a stock party: one matrix product X'Y, opened; `columns` are this party's, shape (ROWS, WIDTH)."""
    import crypten
    import torch

    x, y = (torch.from_numpy(columns) if source == rank else torch.zeros(ROWS, WIDTH) for source in (0, 1))
    with recording() as seen:
        (crypten.cryptensor(x.t(), src=0) @ crypten.cryptensor(y, src=1)).get_plain_text()
    return PartyView(seen.buffers, [words for stream in seen.drawn.values() for words in stream])


@dataclass(frozen=True)
class OurProduct:
    """A participant's view, and what it sent to the dealer."""

    view: PartyView
    to_dealer: list[tuple[str, bytes]]


def product_of_ours(s: CryptenSession, frames: Recorded, columns: Integers | None) -> OurProduct:
    """In a process of ours: shares of the Gram matrix of both parties' columns, each of shape (WIDTH, ROWS)."""
    known: list[Integers] = []

    def drawing(stream: Stream, shape: tuple[int, ...]) -> Integers:
        words = ring_elements(stream, shape)
        known.append(words.copy())
        return words

    held = {party: Held(party, columns if party == s.me else None) for party in s.cast.parties}
    with patch.object(crossproduct, ring_elements.__name__, drawing):
        s.gram(held, rows=ROWS, widths=dict.fromkeys(held, WIDTH), bits=BITS)
    received: list[Any] = payloads(frames, "received")
    to_dealer = [(f.label, f.payload.tobytes()) for way, peer, f in frames if (way, peer) == ("sent", s.cast.dealer)]
    return OurProduct(PartyView(received, known), to_dealer)


def our_products(pool: Pool, columns: Any) -> tuple[dict[str, Integers], dict[str, OurProduct]]:
    """The integers that each party holds, and what each participant saw."""
    secrets = {f"p{rank}": fixedpoint.encode(own.T, BITS) for rank, own in enumerate(columns)}
    return secrets, pool.run(product_of_ours, {name: {"columns": secrets.get(name)} for name in pool.cast.everyone})


def test_a_party_reads_the_others_matrix_in_stock_crypten_and_not_in_ours(
    stock_pair: StockParties, our_pair: Pool
) -> None:
    columns = np.random.default_rng().uniform(-9, 9, (2, ROWS, WIDTH))
    first, _ = stock_pair.run(product, [{"columns": own} for own in columns])
    secret = (columns[1] * 2**BITS).astype(np.int64)  # its encoding: 16 fraction bits, toward zero

    assert entries_read(attack(first), secret) == secret.size
    assert entries_read(attack(PartyView(first.received, [])), secret) == 0, "without its triples it must not"

    secrets, ours = our_products(our_pair, columns)
    for me, other in (("p0", "p1"), ("p1", "p0")):
        view = ours[me].view
        assert entries_read(attack(view), secrets[other]) == 0
        with_dealer = PartyView(view.received, view.known + ours[other].view.known)
        assert entries_read(attack(with_dealer), secrets[other]) == secrets[other].size, "the view is incomplete"


def test_the_dealer_of_ours_receives_requests_only(our_pair: Pool) -> None:
    _, ours = our_products(our_pair, np.zeros((2, ROWS, WIDTH)))
    messages = [message for participant in ours.values() for message in participant.to_dealer]
    labels = [label for label, _ in messages]
    requests = [json.loads(data) for label, data in messages if label == "request"]

    assert labels.count("hello") == len(ours)
    assert len(requests) == len(labels) - len(ours)
    assert requests[-1] == {
        "kind": "product",
        "number": len(requests) - 1,
        "rows": ROWS,
        "widths": {"p0": WIDTH, "p1": WIDTH},
        "blocks": [["p0", "p1"]],
    }
    assert all(request.keys() == requests[-1].keys() for request in requests)
