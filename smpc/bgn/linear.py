"""The variant without a pairing: party l multiplies its plaintext column into k's encrypted one.

step  from -> to  message                        the receiver learns
1     k -> l      k's columns under k's G1 key   nothing
2     l -> k      sum_i y_i C_i + Enc(eta_l)     m + eta_l; the fresh encryption hides which y_i made it, since k
                                                 knows its own randomness
3     k -> server m + eta_l + eta_k              the noisy integer

In 3, k adds its noise before it decrypts: the time of a logarithm depends on the value, and l waits for it.

One party's key suffices, but the work on k's ciphertexts lies with l, not with the server. Sums of small multiples go
by buckets (Pippenger): rows with the same digit are added first. k waits for l and sees the time: every digit of every
row goes into a bucket, as many digits as the public bound has, and a filler keeps each bucket from being empty. Cost a
value: one addition for each digit, in both components, and 30 additions a digit, column pair and row block.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import G1, Elements
from smpc.bgn.scalars import random_exponents
from smpc.bgn.threads import on_all_cores
from smpc.ring import Integers

_BASE = 15  # of digits from -7 to 7: a larger one has more buckets than 256 rows a block pay for
_HALF = _BASE // 2
_FILLERS = [5 ** (digit + 1) for digit in range(_BASE)]  # times the generator: two equal points are never added


class PlainProducts:
    """Sums over rows of ciphertexts times plaintexts: `add` row blocks, then `result`."""

    def __init__(self, first: int, second: int, bound: int, key: Elements, random: RandomWords) -> None:
        """`first` columns of ciphertexts under `key`, `second` of plaintexts within +-bound, which is at most 2^61."""
        zeros = add_noise(G1.identity(first * second, 2), key, [0] * (first * second), random)
        self._sums = zeros.reshape(first, second, 2, G1.words)  # random from the start: no sum is ever neutral
        self._fillers = G1.power(G1.generator, _FILLERS)
        self._places = next(places for places in count(1) if _BASE**places // 2 >= bound)
        self._blocks = 0

    def add(self, ciphertexts: Elements, values: Integers, threads: int | None = None) -> None:
        """Take in rows: ciphertexts (d_k, 2, n, words) of G1 and plaintexts (d_l, n)."""
        columns, _, rows, words = ciphertexts.shape
        fillers = np.broadcast_to(self._fillers, (2 * columns, _BASE, words))
        points = np.concatenate([ciphertexts.reshape(2 * columns, rows, words), fillers], axis=1)

        def multiply(factors: Integers) -> Elements:
            return _multiples(points, factors, self._places).reshape(columns, 2, words)

        self._sums = G1.op(self._sums, np.stack(on_all_cores(multiply, values, threads), axis=1))
        self._blocks += 1

    def result(self) -> Elements:
        """Level-1 ciphertexts, shape (d_k d_l, 2, words), the plaintext's column fastest."""
        block = sum((digit - _HALF) * filler for digit, filler in enumerate(_FILLERS))
        filled = self._blocks * block * sum(_BASE**place for place in range(self._places))
        return G1.op(self._sums, G1.power(G1.generator, -filled)).reshape(-1, 2, G1.words)


def _multiples(points: Elements, factors: Integers, places: int) -> Elements:
    """sum_i factors_i points_i and every filler times its digit at each place: (c, n + 15, words) give (c, words)."""
    total = G1.identity(len(points))
    for place in reversed(range(places)):
        digits = (factors + _BASE**places // 2) // _BASE**place % _BASE
        total = G1.op(G1.power(total, _BASE), _small_multiples(points, np.append(digits, np.arange(_BASE))))
    return total


def _small_multiples(points: Elements, digits: Integers) -> Elements:
    """sum_i (digits_i - 7) points_i: running sums of the buckets, largest digit first."""
    running = total = G1.identity(len(points))
    for digit in reversed(range(_BASE)):
        running = G1.op(running, G1.sums(points[:, digits == digit]))
        total = G1.op(total, running)
    return G1.op(total, G1.inverse(G1.power(running, _HALF + 1)))


def add_noise(ciphertexts: Elements, key: Elements, noise: Sequence[int], random: RandomWords) -> Elements:
    """Ciphertexts (n, 2, words) under `key` of the sums with `noise`, fresh. Cost: 3 powers a value."""
    exponents = random_exponents(random, len(noise))
    shared = G1.power(G1.generator, exponents)
    # a power's time tells its exponent's size: m P + r X is (m - r^2) P + r (X + T), as T = r P
    masked = [int(value) - exponent**2 for value, exponent in zip(noise, exponents, strict=True)]
    masks = G1.op(G1.power(G1.generator, masked), G1.power(G1.op(key, shared), exponents))
    return G1.op(ciphertexts, np.stack([masks, shared], axis=1))
