"""The sensitivity of vote statistics: every pair of voters on tiny domains, attained cases, limits."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mechanisms.vote_statistic import by_lengths, by_operator_norm, vote_statistic


def brute_force(rows: np.ndarray, classes: int) -> float:
    """The largest L2 change of S over all pairs of a voter's possible votes."""
    width = 1 if classes == 2 else classes
    codes = np.array([[0], [1]]) if classes == 2 else np.eye(classes, dtype=int)
    statistics = [
        (codes[list(votes)].T @ rows).reshape(width * rows.shape[1])
        for votes in product(range(classes), repeat=len(rows))
    ]
    return max(float(np.linalg.norm(a - b)) for a in statistics for b in statistics)


@given(
    arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(1, 3)), elements=st.integers(-3, 3)),
    st.integers(2, 3),
)
@settings(max_examples=150)
def test_no_pair_of_voters_is_further_apart(rows: np.ndarray, classes: int) -> None:
    worst = brute_force(rows, classes)
    for bound in (by_lengths(rows, classes), by_operator_norm(rows, classes), vote_statistic(rows, classes)):
        assert float(bound) >= worst * (1 - 1e-12)
    # the exact L2 norm: squares of integers, so that the comparison needs no float
    assert vote_statistic(rows, classes) ** 2 >= round(worst * worst)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_rows_of_one_direction_attain_the_sum_of_lengths(classes: int) -> None:
    rows = np.array([[3, 4], [6, 8], [3, 4]])
    expected = 20 * (1 if classes == 2 else math.sqrt(2))
    assert float(by_lengths(rows, classes)) == pytest.approx(expected, rel=1e-14)
    assert vote_statistic(rows, classes) == by_lengths(rows, classes)
    if classes < 7:
        assert brute_force(rows, classes) == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_orthogonal_rows_attain_the_operator_norm(classes: int) -> None:
    rows = 5 * np.eye(3, dtype=np.int64)
    worst = brute_force(rows, classes)
    found = float(by_operator_norm(rows, classes))
    assert worst <= found <= worst * 3 ** (1 / 128) * (1 + 1e-12)
    assert found < float(by_lengths(rows, classes)) / 1.6


def test_operator_norm_is_within_its_stated_factor() -> None:
    rows = np.random.default_rng(1).integers(-1000, 1000, (300, 20))
    exact = math.sqrt(300) * float(np.linalg.norm(rows, 2))
    assert exact <= float(by_operator_norm(rows, 2)) <= exact * 20 ** (1 / 128) * (1 + 1e-9)


def test_rows_of_zeros_need_no_noise_and_large_tables_are_exact() -> None:
    assert vote_statistic(np.zeros((4, 2), dtype=np.int64), 5) == 0
    rows = np.full((43_000, 2), 1 << 20, dtype=np.int64)
    assert float(by_lengths(rows, 2)) == pytest.approx(43_000 * math.sqrt(2) * 2**20, rel=1e-14)


@pytest.mark.parametrize(
    ("rows", "classes"),
    [
        (np.zeros((0, 2), dtype=np.int64), 2),
        (np.zeros(3, dtype=np.int64), 2),
        (np.ones((2, 2)), 2),
        (np.full((2, 2), 1 << 31, dtype=np.int64), 2),
        (np.ones((2, 2), dtype=np.int64), 1),
    ],
)
def test_what_cannot_be_bounded_exactly_is_refused(rows: np.ndarray, classes: int) -> None:
    with pytest.raises(ValueError):
        vote_statistic(rows, classes)
