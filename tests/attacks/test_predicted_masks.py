"""Stock CrypTen masks with MT19937: 624 known words give the generator's state, and with it all later masks.

Ours masks with AES-256 in counter mode, under a new key for every product.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

from launch.pool import Pool
from smpc import fixedpoint
from smpc.engine import crossproduct
from smpc.engine.session import CryptenSession
from smpc.products import MASKED
from smpc.values import Held
from tests.attacks.ours import Recorded, payloads
from tests.attacks.recording import Integers, recording
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

STATE_WORDS = 624
KNOWN = STATE_WORDS // 2  # each 64-bit mask is two outputs
SECRET = 20
BITS = 16
SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class KnownPlaintextView:
    """What a party saw of two products in a row: (plaintext it knows, the same masked), then another masked secret.

    `known` has at least 312 ring elements in the order they were masked; masked = plaintext - mask in both products.
    """

    known: Integers
    masked: Integers
    later: Integers


def untemper(outputs: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """The state words behind MT19937 outputs: its four tempering steps undone (Matsumoto and Nishimura 1998)."""
    y = outputs ^ (outputs >> np.uint32(18))
    y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
    x = y.copy()
    for _ in range(4):  # each pass makes seven more bits right
        x = y ^ ((x << np.uint32(7)) & np.uint32(0x9D2C5680))
    y = x.copy()
    for _ in range(2):  # eleven more bits a pass
        y = x ^ (y >> np.uint32(11))
    return np.asarray(y, dtype=np.uint32)


def predict(words: Integers, count: int) -> Integers:
    """The `count` ring elements that torch's CPU generator draws after `words`, its last 312 or more draws."""
    halves = words.view(np.uint64)[-KNOWN:] ^ SIGN  # randint adds its lower bound, -2^63
    outputs = np.stack([halves >> np.uint64(32), halves & np.uint64(0xFFFFFFFF)], axis=1).ravel().astype(np.uint32)
    generator = np.random.MT19937()
    generator.state = {"bit_generator": "MT19937", "state": {"key": untemper(outputs), "pos": STATE_WORDS}}
    high, low = generator.random_raw(2 * count).reshape(count, 2).T
    drawn = ((high << np.uint64(32)) | low) ^ SIGN
    return np.asarray(drawn.view(np.int64))


def attack(view: KnownPlaintextView) -> Integers:
    """The later secret, if the masks are one MT19937 stream."""
    masks = (view.known - view.masked).ravel()
    return view.later + predict(masks, view.later.size).reshape(view.later.shape)


def two_products(rank: int, first: Any, second: Any) -> KnownPlaintextView:
    """In a stock party: x1'y1, then x2'y2 of two parties' vectors; what it saw of rank 0's second one."""
    import crypten
    import torch

    with recording() as seen:
        for own in (first, second):
            row, column = (torch.from_numpy(own) if source == rank else torch.zeros(own.shape) for source in (0, 1))
            (crypten.cryptensor(row[None], src=0) @ crypten.cryptensor(column[:, None], src=1)).get_plain_text()
    _, masked, _, later, _, _ = (buffer.ravel() for buffer in seen.buffers)  # x - a, y - b, result, twice
    return KnownPlaintextView((first * 2**BITS).astype(np.int64), masked, later)


def two_products_of_ours(
    s: CryptenSession, frames: Recorded, first: Integers | None, second: Integers | None, weak: bool
) -> list[Integers]:
    """In a process of ours: two Gram matrices of one column a party; what arrived of p0's columns in them.

    `weak`: a wrong variant, p0's masks come from torch's generator, drawn as CrypTen draws them.
    """
    import torch

    generator = torch.Generator().manual_seed(secrets.randbits(63))

    def weak_mask(seed: bytes, number: int, rows: slice, width: int) -> Integers:
        size = (width, rows.stop - rows.start)
        return np.asarray(torch.randint(-(2**63), 2**63 - 1, size, generator=generator, dtype=torch.long).numpy())

    with patch.object(crossproduct, "mask", weak_mask if weak and s.me == "p0" else crossproduct.mask):
        for own, rows in ((first, KNOWN), (second, SECRET)):
            held = {party: Held(party, own if party == s.me else None) for party in s.cast.parties}
            s.gram(held, rows=rows, widths=dict.fromkeys(held, 1), bits=BITS)
    arrived: list[Any] = payloads(frames, "received", "p0", MASKED)
    return arrived[-2:]


def test_masks_are_predicted_and_the_next_input_read_in_stock_crypten_and_not_in_ours(
    stock_pair: StockParties, our_pair: Pool
) -> None:
    random = np.random.default_rng()
    vectors = [{"first": random.uniform(-9, 9, KNOWN), "second": random.uniform(-9, 9, SECRET)} for _ in range(2)]
    _, view = stock_pair.run(two_products, vectors)
    secret = (vectors[0]["second"] * 2**BITS).astype(np.int64)

    assert np.array_equal(attack(view), secret)
    assert not np.any(attack(KnownPlaintextView(view.known + 1, view.masked, view.later)) == secret)

    columns = {
        f"p{rank}": {name: fixedpoint.encode(vector[np.newaxis], BITS) for name, vector in own.items()}
        for rank, own in enumerate(vectors)
    }
    held = {name: columns.get(name, {"first": None, "second": None}) for name in our_pair.cast.everyone}
    for weak in (False, True):
        masked, later = our_pair.run(two_products_of_ours, held, weak=weak)["p1"]
        view = KnownPlaintextView(columns["p0"]["first"], masked, later)
        read = np.sum(attack(view) == columns["p0"]["second"])
        assert read == (SECRET if weak else 0)
