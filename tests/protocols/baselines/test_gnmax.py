"""GNMax and Confident-GNMax: sensitivities by brute force, costs, labels, limits."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.accounting import compose
from mechanisms.gaussian_privacy import GaussianLoss
from mechanisms.randomness import SecureRandom
from protocols.baselines.gnmax import UNANSWERED, confident_gnmax, gnmax
from smpc.errors import InputError

DELTA = Fraction(1, 10**6)
CLEAR = np.array([[900, 100, 400], [100, 900, 350], [0, 0, 250]])


def test_a_replaced_voter_moves_counts_by_root_two_a_sample_and_the_largest_by_one() -> None:
    squares, tops = [], []
    for others in product(range(3), repeat=2):
        rest = np.bincount(others, minlength=3)
        for a, b in product(range(3), repeat=2):
            first, second = rest + np.eye(3)[a], rest + np.eye(3)[b]
            squares.append(((first - second) ** 2).sum())
            tops.append(abs(first.max() - second.max()))
    assert max(squares) == 2 and max(tops) == 1


def test_clear_votes_are_answered_right_within_the_budget() -> None:
    found = gnmax(CLEAR[:, :2], epsilon=Fraction(1), delta=DELTA, random=SecureRandom())
    assert found.labels.tolist() == [0, 1]
    assert Fraction(99, 100) < found.spent.epsilon <= Fraction(1) + Fraction(1, 10**6) and found.spent.delta == DELTA


def test_unclear_votes_are_not_answered_and_answers_end() -> None:
    options = {"test": Fraction(400), "answer": Fraction(100), "delta": DELTA, "random": SecureRandom()}
    found = confident_gnmax(CLEAR, threshold=650, most=9, **options)  # type: ignore[arg-type]
    assert found.labels.tolist() == [0, 1, UNANSWERED]
    first = confident_gnmax(CLEAR, threshold=650, most=1, **options)  # type: ignore[arg-type]
    assert first.labels.tolist() == [0, UNANSWERED, UNANSWERED]
    expected = compose(
        [GaussianLoss(Fraction(3), Fraction(400), 3), GaussianLoss(Fraction(2), Fraction(100), 3)], DELTA
    )
    assert first.spent == expected and first.spent.epsilon < found.spent.epsilon


def test_noise_decides_a_tie() -> None:
    counts = np.full((2, 400), 5)
    labels = gnmax(counts, epsilon=Fraction(1), delta=DELTA, random=SecureRandom()).labels
    assert 0 < labels.sum() < 400


@pytest.mark.parametrize(
    "counts", [np.zeros((1, 3), dtype=int), np.zeros(3, dtype=int), np.ones((2, 3)), np.zeros((2, 0), dtype=int)]
)
def test_what_are_no_counts_is_refused(counts: np.ndarray) -> None:
    with pytest.raises(InputError, match="counts"):
        gnmax(counts, epsilon=Fraction(1), delta=DELTA, random=SecureRandom())
