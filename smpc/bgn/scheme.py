"""Two-level homomorphic encryption (Attrapadung et al. 2018): sums at both levels, one product in between.

With keys X = x P in G1 and Y = y Q in G2, g = e(P, Q), and fresh r, a, b, c:

    level 1, G1:  (S, T)       = (m P + r X, r P)              level 1, G2:  (m Q + r Y, r Q)
    level 2, GT:  (s, t, u, v) = (g^(m + x a + y b - x y c), g^b, g^a, g^c)

Level-1 ciphertexts of m and m' multiply to (e(S, S'), e(S, T'), e(T, S'), e(T, T')), of m m' at level 2; there
s v^(x y) / (t^y u^x) = g^m. Plaintexts are signed. Semantic security: SXDH and DDH in GT. Who holds x and y decides
who decrypts: `decrypt` has two parties with one of them each, `threshold` shares both among all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import G1, G2, GT, Elements, Encoded, Group, pairing
from smpc.bgn.scalars import random_exponents, random_scalars
from smpc.bgn.threads import on_all_cores, row_blocks
from smpc.errors import InputError
from smpc.ring import Integers

PLAINTEXT_BITS = 31  # of a level-1 plaintext's magnitude
_ROWS = 64  # at once: their table entries stay in the cache


class FixedBase:
    """Multiples of one point by byte-sized digits, less `offset` times the point.

    Entry (w, d) is (d + 1) 256^w times the point; those with w = 0 make up for the offset and for what is too much in
    all others. So no entry is neutral, as zero digits' would be: adding a neutral point is quick, its time tells.
    """

    def __init__(self, group: Group, point: Elements, windows: int, offset: int = 0) -> None:
        table = np.empty((windows, 256, group.words), np.uint64)
        for w in range(windows):
            step = group.power(point, 256**w)
            table[w, 0] = step if w else group.power(point, -offset - sum(256**i for i in range(1, windows)))
            for d in range(1, 256):
                table[w, d] = group.op(table[w, d - 1], step)
        self.table = group.affine(table)
        self._windows = np.arange(windows)

    def terms(self, digits: Encoded) -> Elements:
        """The points whose sum is the multiple: digits (n, windows) give (n, windows, words)."""
        return np.asarray(self.table[self._windows, digits])


class Encryptor:
    """Encryption under one public key of G1 or G2. Tables of 2.5 MB (5 MB in G2) make a value cost 68 additions."""

    def __init__(self, group: Group, key: Elements) -> None:
        self.group = group
        self._generator = FixedBase(group, group.generator, 32)
        self._key = FixedBase(group, key, 32)
        self._plain = FixedBase(group, group.generator, 4, offset=1 << PLAINTEXT_BITS)

    def encrypt(self, values: Integers, random: RandomWords, threads: int | None = None) -> Elements:
        """Ciphertexts of columns: int64 (columns, n) gives (columns, 2, n, words), S then T.

        Raises InputError for a value of 2^31 or more in size. Cost: 68 point additions a value.
        """
        limit = 1 << PLAINTEXT_BITS
        if values.dtype != np.int64 or values.ndim != 2:
            raise InputError(f"plaintext: {values.dtype} {values.shape}, needs int64 (columns, rows)")
        if values.size and (int(values.max()) >= limit or int(values.min()) <= -limit):
            raise InputError(f"plaintext: a value outside +-2^{PLAINTEXT_BITS}; use fewer fraction bits")
        columns, rows = values.shape
        out = np.empty((columns, 2, rows, self.group.words), np.uint64)
        secrets = random_scalars(random, columns * rows).astype("<u8").view(np.uint8).reshape(columns, rows, 32)
        plain = (values + limit).astype("<u4").view(np.uint8).reshape(columns, rows, 4)

        def encrypt_block(place: tuple[int, slice]) -> None:
            # added from the last to the first: the sum is random before the plaintext, which can be 0, joins it
            terms = [self._plain.terms(plain[place]), self._key.terms(secrets[place])]
            out[place[0], 0, place[1]] = self.group.sums(np.concatenate(terms, axis=1))
            out[place[0], 1, place[1]] = self.group.sums(self._generator.terms(secrets[place]))

        on_all_cores(encrypt_block, product(range(columns), row_blocks(rows, _ROWS)), threads)
        return out

    def rerandomise(self, ciphertexts: Elements, random: RandomWords) -> Elements:
        """Unlinkable ciphertexts (columns, 2, n, words) of the same values: a fresh encryption of zero is added."""
        columns, _, rows, _ = ciphertexts.shape
        return self.group.op(ciphertexts, self.encrypt(np.zeros((columns, rows), np.int64), random))


class TargetKey:
    """The two public keys together: encryption at level 2."""

    def __init__(self, x_key: Elements, y_key: Elements) -> None:
        self.x_key, self.y_key = x_key, y_key
        self._bases = (pairing(x_key, G2.generator), pairing(G1.generator, y_key), pairing(x_key, y_key))

    def encrypt(self, values: Sequence[int], random: RandomWords) -> Elements:
        """Ciphertexts of integers of any size, shape (n, 4, words), each with three fresh exponents.

        Cost: 7 powers in GT a value.
        """
        a, b, c = (random_exponents(random, len(values)) for _ in range(3))
        t, u, v = (GT.power(GT.generator, exponents) for exponents in (b, a, c))
        # a power's time tells its exponent's size: g^(m + x a) is g^(m - a b) (g^x t)^a, as t = g^b
        masked = [int(value) - i * j for value, i, j in zip(values, a, b, strict=True)]
        x_base, y_base, xy_base = self._bases
        s = GT.op(GT.power(GT.generator, masked), GT.power(GT.op(x_base, t), a))
        s = GT.op(s, GT.op(GT.power(y_base, b), GT.inverse(GT.power(xy_base, c))))
        return np.stack([s, t, u, v], axis=1)

    def add(self, ciphertexts: Elements, values: Sequence[int], random: RandomWords) -> Elements:
        """Ciphertexts (n, 4, words) of the sums; fresh in all three exponents, hence unlinkable. Zeros re-randomise."""
        return GT.op(ciphertexts, self.encrypt(values, random))


def decrypt(ciphertexts: Elements, x: int, y: int) -> Elements:
    """g^m of level-2 ciphertexts (n, 4, words), with both secret keys. Cost: 3 powers a value."""
    s, t, u, v = (ciphertexts[:, i] for i in range(4))
    masks = GT.op(GT.power(GT.op(GT.power(v, x), GT.inverse(t)), y), GT.inverse(GT.power(u, x)))
    return GT.op(s, masks)


def decrypt_level1(group: Group, ciphertexts: Elements, secret: int) -> Elements:
    """m P of level-1 ciphertexts: columns (c, 2, n, words) give (c, n, words), sums (n, 2, words) give (n, words)."""
    return group.op(ciphertexts[:, 0], group.inverse(group.power(ciphertexts[:, 1], secret)))
