"""Draws of `JointLaplace` on shares: known to nobody, one draw in total, from everybody's coins.

Uniform words: each party draws its own, and these are its exclusive-or shares of their exclusive or U, which is uniform
and unknown to any coalition that lacks one party's words. No message.

U below c, for public c: per bit, equal = not (U xor c) and less = c and not equal are local. Two neighbouring parts
join to less = less_high xor (equal_high and less_low), equal = equal_high and equal_low: a tree of 6 rounds over the 64
bits. In the first one, less_low = c_low and not equal_low with c public, so that the one product equal_high and
equal_low gives both. In the others equal_high is a factor of both products and masked once. As every word holds one bit
of 64 numbers (`mechanisms.joint_laplace`), no bit sent is idle: 32 2 + (16 + 8 + 4 + 2 + 1) 3 = 157 bits a digit.

To arithmetic shares: the dealer has dealt shares of a bit r both ways; bit xor r is opened to the parties, and
bit = r or 1 - r accordingly. One round, one bit sent a digit, as the opened bits travel 64 in a word (CrypTen's own
conversion sends a word for each). The alternative is to mask whole numbers: a dealt one, its digits dealt too, is added
in binary and the sum opened. It saves the dealt ring element per digit, which is not sent between parties, and costs 6
rounds and hundreds of bits for each binary addition. Signs and powers of two are local.

The dealer knows its masks, never an opened value; the server sees nothing of this. So the draws are unknown to the
dealer with the server, and to the server with all parties but one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
import torch

from mechanisms.joint_laplace import WORD, JointLaplace, pack, unpack
from mechanisms.randomness import RandomWords
from smpc import openings
from smpc.engine.compat import load_crypten
from smpc.engine.provider import DealerProvider
from smpc.ring import Integers

load_crypten()
from crypten.mpc.primitives import BinarySharedTensor, beaver  # noqa: E402  the import needs the alias first


def joint_draws(law: JointLaplace, count: int, random: RandomWords, provider: DealerProvider, first: bool) -> Integers:
    """This party's additive share of `count` draws, shape (count,). `first`: it adds the public constants."""
    pieces = list(law.pieces(count))
    drawn = [np.empty(0, np.int64)]
    _ask(provider, law, pieces[:1])
    for size, following in zip_longest(pieces, pieces[1:]):
        _ask(provider, law, [following] if following else [])  # the dealer works while the parties do
        words = random.words(int(np.prod(law.shape(size)))).view(np.int64).reshape(law.shape(size))
        digits = _to_arithmetic(_below(_shared(words), torch.from_numpy(law.threshold_planes)), provider, first)
        drawn.append((law.weights @ digits)[:size])
    return np.concatenate(drawn)


def _ask(provider: DealerProvider, law: JointLaplace, pieces: Sequence[int]) -> None:
    for size in pieces:
        provider.ask_ahead(openings.joint_noise(law, size))


def _below(words: Any, thresholds: torch.Tensor) -> Any:
    """Binary shares of "number < threshold", 64 in a word: (64, digits, words) gives (digits, words)."""
    equal = ~(words ^ thresholds)
    high, low = equal[0::2], equal[1::2]
    equal = beaver.AND(high, low)
    less = (~high & thresholds[0::2]) ^ ((high ^ equal) & thresholds[1::2])
    while less.size(0) > 1:
        parts = BinarySharedTensor.stack([less[1::2], equal[1::2]])
        parts = beaver.AND(equal[0::2].unsqueeze(0), parts)
        less, equal = less[0::2] ^ parts[0], parts[1]
    return less[0]


def _to_arithmetic(bits: Any, provider: DealerProvider, first: bool) -> Integers:
    """Additive shares of packed bits, (digits, words) gives (digits, 64 words)."""
    ring, bit = provider.B2A_rng((bits.size(0), bits.size(1) * WORD))
    flipped = unpack((bits ^ _shared(pack(bit.share.numpy()))).reveal().numpy())
    dealt: Integers = ring.share.numpy()
    return np.where(flipped, first - dealt, dealt)


def _shared(words: Integers) -> Any:
    return BinarySharedTensor.from_shares(torch.from_numpy(words))
