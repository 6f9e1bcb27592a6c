"""Errors, splits and intervals that comparisons are made of."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.randomness import RandomWords
from protocols.evaluation import mean_squared_error, misclassification, repeat, split, summarise, words_of
from smpc.errors import InputError


def test_errors_by_hand() -> None:
    y = np.array([0.0, 1.0, 1.0])
    assert mean_squared_error(y, np.array([0.0, 0.0, 3.0])) == pytest.approx(5 / 3)
    assert misclassification(y, np.array([-0.1, 0.0, -2.0])) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("y", "scores", "message"),
    [
        ([0.0, 1.0], [0.0], "shape"),
        ([[0.0]], [[0.0]], "shape"),
        ([], [], "shape"),
        ([0.0], [math.nan], "NaN"),
        ([math.nan], [0.0], "NaN"),
    ],
)
def test_errors_refuse_what_they_cannot_compare(y: list[float], scores: list[float], message: str) -> None:
    for measure in (mean_squared_error, misclassification):
        with pytest.raises(InputError, match=message):
            measure(np.array(y), np.array(scores))
    with pytest.raises(InputError, match="0 and 1"):
        misclassification(np.array([-1.0, 1.0]), np.zeros(2))


@given(st.integers(2, 300), st.integers(0, 5), st.fractions(Fraction(1, 5), Fraction(4, 5)))
def test_split_is_a_partition_and_repeats(rows: int, seed: int, test: Fraction) -> None:
    if not 0 < round(rows * test) < rows:
        return
    train, held_out = split(rows, seed, test)
    assert sorted([*train, *held_out]) == list(range(rows))
    assert len(held_out) == round(rows * test)
    assert all(np.array_equal(a, b) for a, b in zip((train, held_out), split(rows, seed, test), strict=True))


def test_splits_differ_by_seed_and_look_uniform() -> None:
    counts = np.zeros(100)
    for seed in range(500):
        counts[split(100, seed)[1]] += 1
    assert np.sum((counts - 100) ** 2 / 80) < 220  # chi-square of 99 degrees beyond 220: below 1e-9


@pytest.mark.parametrize("test", [0, 1, -1, Fraction(1, 100), 2])
def test_split_leaves_no_part_empty(test: Fraction) -> None:
    with pytest.raises(InputError, match="part empty"):
        split(10, 0, test)


def test_split_refuses_bad_numbers() -> None:
    for rows, seed in ((1, 0), (10, -1), (True, 0)):
        with pytest.raises((ValueError, TypeError)):
            split(rows, seed)


def test_interval_of_fifty_by_the_binomial_table() -> None:
    found = summarise(range(1, 51))
    # P(B <= 17) = 0.0164, P(B <= 18) = 0.0325 for B ~ Bin(50, 1/2)
    assert (found.median, found.low, found.high) == (25.5, 18, 33)
    assert found.coverage == pytest.approx(1 - 2 * 0.0164196, abs=1e-6)


def test_interval_of_few_results_is_their_range_with_its_coverage() -> None:
    three = summarise([3.0, 1.0, 2.0])
    assert (three.median, three.low, three.high, three.coverage) == (2, 1, 3, 0.75)
    assert summarise([5.0]).coverage == 0
    assert summarise(range(6)).coverage == pytest.approx(1 - 2 / 64)


def test_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(3000):
        found = summarise(rng.exponential(size=20), 0.9)
        hits += found.low <= math.log(2) <= found.high
    assert hits / 3000 == pytest.approx(found.coverage, abs=0.03)
    assert found.coverage >= 0.9


def test_infinite_results_count_as_large() -> None:
    found = summarise([1.0, 2.0, math.inf, math.inf, math.inf])
    assert found.median == found.high == math.inf and found.low == 1


@pytest.mark.parametrize("results", [[], [math.nan], [1.0, math.nan]])
def test_nothing_to_summarise(results: list[float]) -> None:
    with pytest.raises(InputError, match="at least one"):
        summarise(results)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, math.nan])
def test_confidence_out_of_range(confidence: float) -> None:
    with pytest.raises(InputError, match="confidence"):
        summarise([1.0], confidence)


def test_repeat_gives_each_seed_words_of_its_own() -> None:
    seen: list[int] = []

    def measure(words: RandomWords) -> float:
        seen.append(int(words.words(1)[0]))
        return float(seen[-1] % 97)

    first = repeat(measure, range(8))
    assert len(set(seen)) == 8
    assert repeat(measure, range(8)) == first
    assert not np.array_equal(words_of("a", 1).words(2), words_of("a", 2).words(2))
    assert not np.array_equal(words_of("a", "b").words(2), words_of("ab").words(2))
