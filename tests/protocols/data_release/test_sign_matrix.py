"""The streamed sign matrix: what its entries are, exact products, bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.randomness import Stream
from protocols.data_release.sign_matrix import signed_sums
from smpc import InputError

SEED = bytes(range(32))


def matrix(seed: bytes, rows: int, records: int) -> np.ndarray:
    """B by its definition: byte g k + r of the keystream, bit j, is the sign of record 8 g + j in row r."""
    groups = -(-records // 8)
    stream = Stream(seed).words(-(-groups * rows // 8)).tobytes()
    return np.array(
        [[1 - 2 * (stream[i // 8 * rows + r] >> i % 8 & 1) for i in range(records)] for r in range(rows)], dtype=object
    )


@given(
    rows=st.integers(1, 40),
    records=st.integers(1, 1300),
    width=st.integers(1, 3),
    size=st.sampled_from([1, 2**20, 2**50]),
)
@settings(max_examples=25)
def test_products_are_those_of_the_defined_matrix_exactly(rows: int, records: int, width: int, size: int) -> None:
    columns = np.random.default_rng([rows, records]).integers(-size, size, (width, records), endpoint=True)
    columns[0, 0] = size
    columns[-1, -1] = -size
    expected = matrix(SEED, rows, records) @ columns.astype(object).T
    assert np.array_equal(signed_sums(SEED, rows, columns).astype(object), expected.T)


def test_signs_are_fair_and_independent() -> None:
    """Every entry by products with single records; sums and pairwise products within 6 deviations of 0."""
    signs = signed_sums(SEED, 200, np.eye(64, dtype=np.int64))
    assert set(np.unique(signs)) == {-1, 1}
    assert abs(signs.sum()) < 6 * np.sqrt(signs.size)
    for gram, size in ((signs @ signs.T, 200), (signs.T @ signs, 64)):
        off = gram - np.diag(np.diag(gram))
        assert np.abs(off).max() < 6 * np.sqrt(size)


def test_another_seed_is_another_matrix() -> None:
    one = np.eye(64, dtype=np.int64)
    other = signed_sums(bytes(32), 200, one)
    assert abs((signed_sums(SEED, 200, one) * other).sum()) < 6 * np.sqrt(other.size)


def test_memory_does_not_grow_with_the_records() -> None:
    def peak(records: int) -> int:
        columns = np.ones((1, records), dtype=np.int64)
        tracemalloc.start()
        signed_sums(SEED, 100, columns)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(400_000) < peak(20_000) * 1.1 < 4e6  # B would have 4e7 entries


@pytest.mark.parametrize(
    "columns",
    [np.zeros((0, 5), np.int64), np.zeros((2, 0), np.int64), np.zeros(5, np.int64), np.full((1, 3), 2**50 + 1)],
)
def test_unusable_columns_are_refused(columns: np.ndarray) -> None:
    with pytest.raises(InputError, match="columns of shape"):
        signed_sums(SEED, 3, columns)


@pytest.mark.parametrize("rows", [0, -1, True, 1.5])
def test_unusable_row_counts_are_refused(rows: object) -> None:
    with pytest.raises((ValueError, TypeError), match="count"):
        signed_sums(SEED, rows, np.ones((1, 3), np.int64))  # type: ignore[arg-type]
