"""The variant without a pairing: party l multiplies its plaintext column into k's encrypted one.

step  from -> to  message                        the receiver learns
1     k -> l      k's columns under k's G1 key   nothing
2     l -> k      sum_i y_i C_i + Enc(eta_l)     m + eta_l; the fresh encryption hides which y_i made it, since k
                                                 knows its own randomness
3     k -> server m + eta_l + eta_k              the noisy integer

In 3, k adds its noise before it decrypts: the time of a logarithm depends on the value, and l waits for it.

One party's key suffices, but the work on k's ciphertexts lies with l, not with the server. Sums of small multiples go
by buckets (Pippenger): rows with the same digit are added first. Cost a value: one addition for each digit, in both
components, and 2^(digit bits) additions a column pair and row block.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import G1, Elements
from smpc.bgn.scalars import random_exponents
from smpc.bgn.threads import on_all_cores
from smpc.ring import Integers

_DIGIT_BITS = 6


class PlainProducts:
    """Sums over rows of ciphertexts times plaintexts: `add` row blocks, then `result`."""

    def __init__(self, first: int, second: int) -> None:
        self._sums = G1.identity(first, second, 2)

    def add(self, ciphertexts: Elements, values: Integers, threads: int | None = None) -> None:
        """Take in rows: ciphertexts (d_k, 2, n, words) of G1 and plaintexts (d_l, n), 2^62 in size at most."""

        def multiply(column: int) -> Elements:
            return np.stack([_multiple(component, values[column]) for component in components])

        columns, _, rows, words = ciphertexts.shape
        components = ciphertexts.reshape(2 * columns, rows, words)
        parts = [part.reshape(columns, 2, words) for part in on_all_cores(multiply, range(len(values)), threads)]
        self._sums = G1.op(self._sums, np.stack(parts, axis=1))

    def result(self) -> Elements:
        """Level-1 ciphertexts, shape (d_k d_l, 2, words), the plaintext's column fastest."""
        return self._sums.reshape(-1, 2, G1.words)


def _multiple(points: Elements, factors: Integers) -> Elements:
    """sum factors_i points_i."""
    total = G1.identity()
    magnitudes, signs = np.abs(factors), np.sign(factors)
    digits = -(-int(magnitudes.max(initial=0)).bit_length() // _DIGIT_BITS)
    for place in reversed(range(digits)):
        digit = signs * (magnitudes >> (_DIGIT_BITS * place) & ((1 << _DIGIT_BITS) - 1))
        total = G1.op(G1.power(total, 1 << _DIGIT_BITS), _small_multiple(points, digit))
    return total


def _small_multiple(points: Elements, digits: Integers) -> Elements:
    """The same for |digits| < 2^6: running sums of the buckets, largest digit first."""
    running, total = G1.identity(), G1.identity()
    for digit in range((1 << _DIGIT_BITS) - 1, 0, -1):
        plus, minus = G1.sums(points[digits == digit]), G1.sums(points[digits == -digit])
        running = G1.op(running, G1.op(plus, G1.inverse(minus)))
        total = G1.op(total, running)
    return total


def add_noise(ciphertexts: Elements, key: Elements, noise: Sequence[int], random: RandomWords) -> Elements:
    """Ciphertexts (n, 2, words) under `key` of the sums with `noise`, fresh. Cost: 3 powers a value."""
    exponents = random_exponents(random, len(noise))
    shared = G1.power(G1.generator, exponents)
    # a power's time tells the exponent's size: the noise is raised together with one of full size, taken off again
    raised = G1.power(G1.generator, [int(value) + exponent for value, exponent in zip(noise, exponents, strict=True)])
    masks = G1.op(G1.op(raised, G1.inverse(shared)), G1.power(key, exponents))
    return G1.op(ciphertexts, np.stack([masks, shared], axis=1))


def decrypt(ciphertexts: Elements, secret: int) -> Elements:
    """m P, (n, words): k's part. Cost: 1 power a value."""
    return G1.op(ciphertexts[:, 0], G1.inverse(G1.power(ciphertexts[:, 1], secret)))
