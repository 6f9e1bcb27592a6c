"""Encrypted arithmetic equals the integers, at both levels; what is refused; the independent implementation agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from smpc.bgn.curve import G1, G2, GT, Elements
from smpc.bgn.mcl import ORDER
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scalars import random_exponents, random_scalars
from smpc.bgn.scheme import PLAINTEXT_BITS, decrypt, decrypt_level1
from smpc.errors import InputError
from smpc.ring import Integers
from tests.bgn import reference
from tests.bgn.support import RANDOM, Words, columns, exact, is_power, parties, server_sums, target_key

LIMIT = 2**PLAINTEXT_BITS - 1
VALUES = st.sampled_from([0, 1, -1, 255, -256, LIMIT, -LIMIT]) | st.integers(-LIMIT, LIMIT)
TABLES = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        *(hnp.arrays(np.int64, st.tuples(st.integers(1, 2), st.just(n)), elements=VALUES) for _ in range(2))
    )
)


def opened(ciphertexts: Elements) -> Elements:
    k, l = parties()
    return decrypt(ciphertexts, k.secret.exponent, l.secret.exponent)


@given(tables=TABLES)
@settings(max_examples=15)
def test_blocks_equal_the_exact_integers(tables: tuple[Integers, Integers]) -> None:
    first, second = tables
    wide = [int(x) for x in (first.astype(object) @ second.T.astype(object)).reshape(-1)]
    assert is_power(opened(server_sums(first, second, block=3)), wide)


def test_a_long_column_in_uneven_row_blocks() -> None:
    first, second = columns(1, 1, 300, 1 << 10), columns(2, 2, 300, 1 << 10)
    sums = server_sums(first, second, block=130)
    assert is_power(opened(sums), exact(first, second))
    assert not is_power(opened(sums), [value + 1 for value in exact(first, second)])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_nothing(threads: int) -> None:
    k, l = parties()
    first, second = columns(3, 2, 150, 9), columns(4, 1, 150, 9)
    one, two = k.encryptor.encrypt(first, RANDOM, threads), l.encryptor.encrypt(second, RANDOM, threads)
    sums = InnerProducts(2, 1)
    sums.add(one, two, threads)
    assert is_power(opened(sums.result()), exact(first, second))


@pytest.mark.parametrize("side", [0, 1])
def test_level_one_adds_scales_and_rerandomises(side: int) -> None:
    party = parties()[side]
    group = (G1, G2)[side]
    values = np.array([[5, -7, LIMIT, -LIMIT, 0]])
    ciphertexts = party.encryptor.encrypt(values, RANDOM)
    fresh = party.encryptor.rerandomise(ciphertexts, RANDOM)
    seen = group.encode(ciphertexts)[0, 0], group.encode(fresh)[0, 0]
    assert not any(np.array_equal(a, b) for a, b in zip(*seen, strict=True))
    sums = group.op(group.power(ciphertexts, -3), fresh)
    expected = group.power(group.generator, [-2 * int(v) for v in values[0]])
    assert group.equal(decrypt_level1(group, sums, party.secret.exponent)[0], expected)


@given(values=st.lists(st.integers(-(2**70), 2**70), min_size=1, max_size=3))
@settings(max_examples=10)
def test_level_two_adds_and_scales_integers_of_any_size(values: list[int]) -> None:
    key = target_key()
    ciphertexts = key.encrypt(values, RANDOM)
    assert is_power(opened(ciphertexts), values)
    assert is_power(opened(key.add(GT.power(ciphertexts, -5), [1] * len(values), RANDOM)), [1 - 5 * v for v in values])


def test_rerandomisation_at_level_two_changes_every_exponent() -> None:
    key = target_key()
    before = key.encrypt([3], RANDOM)
    after = key.add(before, [0], RANDOM)
    assert not any(GT.equal(before[0, i], after[0, i]) for i in range(4))
    assert is_power(opened(after), [3])


def test_equal_values_have_unequal_ciphertexts() -> None:
    k, _ = parties()
    data = G1.encode(k.encryptor.encrypt(np.zeros((1, 50), np.int64), RANDOM)).reshape(100, -1)
    assert len({row.tobytes() for row in data}) == 100


@pytest.mark.parametrize(
    "values",
    [
        np.array([[LIMIT + 1]]),
        np.array([[-LIMIT - 1]]),
        np.array([[np.iinfo(np.int64).min]]),
        np.array([[1.0]]),
        np.array([[True]]),
        np.array([1]),
    ],
    ids=["above", "below", "lowest", "float", "bool", "one dimension"],
)
def test_plaintexts_out_of_range_are_refused(values: Any) -> None:
    with pytest.raises(InputError, match="plaintext"):
        parties()[0].encryptor.encrypt(values, RANDOM)


def test_no_rows_give_no_ciphertexts_and_sums_of_zero() -> None:
    k, l = parties()
    sums = InnerProducts(1, 1)
    sums.add(
        k.encryptor.encrypt(np.zeros((1, 0), np.int64), RANDOM), l.encryptor.encrypt(np.zeros((1, 0), np.int64), RANDOM)
    )
    assert is_power(opened(sums.result()), [0])


def test_scalars_at_and_above_the_order_are_drawn_again() -> None:
    source = Words([ORDER, 7, 2**255 - 1, ORDER - 1, ORDER + 1, 2**255 + 5])
    assert random_exponents(source, 3) == [7, ORDER - 1, 5]
    assert random_scalars(RANDOM, 0).shape == (0, 4)
    draws = random_scalars(RANDOM, 4000)
    assert len({row.tobytes() for row in draws}) == 4000
    tops = (draws[:, 3] >> np.uint64(56)).astype(int)
    assert tops.max() == 0x73 and abs(float(tops.mean()) - 57.2) < 4  # sd of the mean 0.53


def test_ours_decrypts_what_the_reference_encrypted_and_the_other_way_round() -> None:
    k, l = parties()
    x, y = k.secret.exponent, l.secret.exponent
    first, second = np.array([[3, -2]]), np.array([[4, 5]])
    r = [[11, 12], [13, 14]]
    own = (k.encryptor.encrypt(first, Words(r[0])), l.encryptor.encrypt(second, Words(r[1])))
    for group, codec, party, values, exponents, ciphertexts in (
        (G1, reference.IN_G1, k, first, r[0], own[0]),
        (G2, reference.IN_G2, l, second, r[1], own[1]),
    ):
        key = codec.decode(group.encode(party.secret.public).tobytes())
        theirs = [reference.encrypt(codec.generator, key, int(v), e) for v, e in zip(values[0], exponents, strict=True)]
        ours = group.encode(ciphertexts)[0]
        for row, pair in enumerate(theirs):
            assert [ours[part, row].tobytes() for part in (0, 1)] == [codec.encode(point) for point in pair]
    decoded = [
        [tuple(codec.decode(group.encode(c[0, part, row]).tobytes()) for part in (0, 1)) for row in range(2)]
        for group, codec, c in ((G1, reference.IN_G1, own[0]), (G2, reference.IN_G2, own[1]))
    ]
    theirs = reference.total([reference.product(a, b) for a, b in zip(*decoded, strict=True)])
    assert reference.decrypt(theirs, x, y, 5) == 2
    sums = InnerProducts(1, 1)
    sums.add(*own)
    assert is_power(opened(sums.result()), [2])
