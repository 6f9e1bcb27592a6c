"""Split decryption of the server's sums as they come: v^x / t = g^(-sum a_i rho_i), a_i k's column, rho_i l's own
randomness. So l, who needs only the sum, tests guesses of the whole column. Ours makes the ciphertext fresh first.
"""

from __future__ import annotations

import numpy as np

from smpc.bgn.curve import GT, Elements
from smpc.bgn.decrypt import decrypt_partly
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scalars import random_exponents
from tests.bgn.support import RANDOM, SESSION, Words, parties, target_key

ROWS = 12
COLUMN = np.eye(1, ROWS, 7, dtype=np.int64)  # a rare condition: one person has it


def sums_with_known_randomness() -> tuple[Elements, list[int]]:
    k, l = parties()
    rho = random_exponents(RANDOM, ROWS)
    ones = np.ones((1, ROWS), dtype=np.int64)
    sums = InnerProducts(1, 1)
    sums.add(k.encryptor.encrypt(COLUMN, RANDOM), l.encryptor.encrypt(ones, Words(rho)))
    return sums.result(), rho


def guessed(ciphertexts: Elements, v: Elements, rho: list[int]) -> list[int]:
    """The rows of which l finds: if it is this one, then what I received is explained."""
    received = GT.op(v, GT.inverse(ciphertexts[:, 1]))
    return [row for row in range(ROWS) if GT.equal(received, GT.power(GT.generator, [-rho[row]]))]


def test_unrandomised_partial_decryption_tells_who_it_is() -> None:
    k, _ = parties()
    sums, rho = sums_with_known_randomness()
    partial = decrypt_partly(sums, k.secret, SESSION, "k", RANDOM)
    assert guessed(partial.ciphertexts, partial.v, rho) == [7]


def test_noise_alone_does_not_help() -> None:
    """A noisy sum with old exponents: the value is hidden, the column is not."""
    k, _ = parties()
    sums, rho = sums_with_known_randomness()
    sums[:, 0] = GT.op(sums[:, 0], GT.power(GT.generator, [123456]))
    partial = decrypt_partly(sums, k.secret, SESSION, "k", RANDOM)
    assert guessed(partial.ciphertexts, partial.v, rho) == [7]


def test_a_fresh_ciphertext_explains_nothing() -> None:
    k, _ = parties()
    sums, rho = sums_with_known_randomness()
    fresh = target_key().add(sums, [0], RANDOM)
    partial = decrypt_partly(fresh, k.secret, SESSION, "k", RANDOM)
    assert guessed(partial.ciphertexts, partial.v, rho) == []
    assert guessed(sums, partial.v, rho) == []
