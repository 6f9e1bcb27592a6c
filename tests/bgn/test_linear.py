"""The variant without a pairing: the same integers; what k decrypts is fresh."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smpc.bgn import linear
from smpc.bgn.curve import G1, Elements
from smpc.bgn.linear import PlainProducts
from smpc.bgn.scheme import decrypt_level1
from smpc.ring import Integers
from tests.bgn.support import RANDOM, columns, exact, parties


def sums(first: Integers, second: Integers, *, block: int, threads: int | None = None) -> Elements:
    k, _ = parties()
    bound = int(np.abs(second).max())
    products = PlainProducts(len(first), len(second), bound, k.secret.public, RANDOM)
    for start in range(0, first.shape[1], block):
        rows = slice(start, start + block)
        products.add(k.encryptor.encrypt(first[:, rows], RANDOM), second[:, rows], threads)
    return products.result()


@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 40)),
    bounds=st.tuples(*(st.sampled_from([1, 63, 64, 2**12, 2**31 - 1]) for _ in range(2))),
    noise=st.integers(-(2**62), 2**62),
)
@settings(max_examples=15)
def test_sums_with_noise_are_exact(seed: int, shape: tuple[int, int, int], bounds: tuple[int, int], noise: int) -> None:
    k, _ = parties()
    a, b, n = shape
    first, second = columns(seed, a, n, bounds[0]), columns(seed + 1, b, n, bounds[1])
    wide = [int(x) for x in (first.astype(object) @ second.T.astype(object)).reshape(-1)]
    noises = [noise + i for i in range(a * b)]
    fresh = linear.add_noise(sums(first, second, block=17), k.secret.public, noises, RANDOM)
    expected = [m + x for m, x in zip(wide, noises, strict=True)]
    assert G1.equal(decrypt_level1(G1, fresh, k.secret.exponent), G1.power(G1.generator, expected))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_nothing(threads: int) -> None:
    k, _ = parties()
    first, second = columns(5, 2, 90, 9), columns(6, 3, 90, 9)
    opened = decrypt_level1(G1, sums(first, second, block=50, threads=threads), k.secret.exponent)
    assert G1.equal(opened, G1.power(G1.generator, exact(first, second)))


def test_columns_of_zeros_and_of_the_most_negative_digit() -> None:
    k, _ = parties()
    first, second = np.full((1, 5), -3), np.array([[0] * 5, [-64] * 5, [-(2**40)] * 5])
    opened = decrypt_level1(G1, sums(first, second, block=5), k.secret.exponent)
    assert G1.equal(opened, G1.power(G1.generator, exact(first, second)))


def test_k_recognises_its_own_randomness_unless_the_sum_is_made_fresh() -> None:
    """k knows the T of every row: a plain sum's T tests guesses of l's column."""
    k, _ = parties()
    column = np.eye(1, 6, 4, dtype=np.int64)
    uploaded = k.encryptor.encrypt(np.ones((1, 6), np.int64), RANDOM)
    unfresh = G1.sums(uploaded[0][:, column[0] == 1])[None]
    products = PlainProducts(1, 1, 1, k.secret.public, RANDOM)
    products.add(uploaded, column)
    fresh = linear.add_noise(products.result(), k.secret.public, [0], RANDOM)

    def guessed(ciphertexts: Elements) -> list[int]:
        return [row for row in range(6) if G1.equal(ciphertexts[0, 1], uploaded[0, 1, row])]

    assert guessed(unfresh) == [4]
    assert guessed(fresh) == []
    assert G1.equal(decrypt_level1(G1, fresh, k.secret.exponent), G1.generator[None])
