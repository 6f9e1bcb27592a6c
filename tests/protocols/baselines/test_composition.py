"""Accounting of the iterative baselines against other proofs and direct integration."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.accounting import PureLoss, compose
from mechanisms.gaussian_privacy import continuous_delta
from protocols.baselines import poisson_accounting, pure_composition

TINY = Fraction(1, 10**5)


def test_pure_composition_of_one_and_of_two_by_hand() -> None:
    e0, epsilon = 0.7, 0.5
    p = math.exp(e0) / (1 + math.exp(e0))
    assert pure_composition.delta(epsilon, e0, 1) == pytest.approx(p * (1 - math.exp(epsilon - e0)), rel=1e-7)
    assert pure_composition.delta(epsilon, e0, 2) == pytest.approx(p * p * (1 - math.exp(epsilon - 1.4)), rel=1e-7)
    assert pure_composition.delta(1.5, e0, 2) == 0


@pytest.mark.parametrize("count", [3, 100, 2000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_pure_composition_is_the_exact_curve(epsilon: Fraction, count: int) -> None:
    step = float(pure_composition.step_epsilon(epsilon, TINY, count))
    successes = np.arange(count + 1)
    law = stats.binom(count, 1 / (1 + math.exp(-step)))
    leak = law.pmf(successes) * np.maximum(-np.expm1(float(epsilon) - (2 * successes - count) * step), 0)
    assert leak.sum() <= TINY
    assert pure_composition.delta(float(epsilon), step, count) == pytest.approx(leak.sum(), rel=1e-7, abs=1e-15)
    assert pure_composition.delta(float(epsilon), step * 1.001, count) > TINY
    # every accountant's epsilon is an upper bound of this one
    assert compose([PureLoss(Fraction(step))] * count, TINY).epsilon >= epsilon * Fraction(999, 1000)


def test_pure_composition_beats_the_textbook_formula() -> None:
    textbook = 1 / math.sqrt(8 * 1000 * math.log(1 / TINY))
    assert pure_composition.step_epsilon(Fraction(1), TINY, 1000) > Fraction(textbook)


def test_everybody_sampled_is_one_gaussian() -> None:
    for steps, ratio, epsilon in ((1, 7.5, 1.0), (100, 75.0, 1.0), (100, 500.0, 0.1)):
        exact = float(continuous_delta(Fraction(epsilon), Fraction(4 * steps) / Fraction(ratio) ** 2))
        found = poisson_accounting.steps_delta(epsilon, 1.0, ratio, steps)
        assert exact <= found <= 1.01 * exact


def hockey_stick(order: float, q: float, ratio: float, u: np.ndarray, v: np.ndarray) -> float:
    """Integral of (P - order Q)_+ over a grid of the plane, P and Q as one step has them for records u and v."""
    grid = np.arange(-9, 9, 0.06) * ratio
    first, second = np.meshgrid(grid, grid, indexing="ij")

    def density(centre: np.ndarray) -> np.ndarray:
        squares = (first - centre[0]) ** 2 + (second - centre[1]) ** 2
        return np.exp(-squares / (2 * ratio**2)) / (2 * math.pi * ratio**2)

    both = (1 - q) * density(np.zeros(2))
    gap = both + q * density(u) - order * (both + q * density(v))
    return float(np.maximum(gap, 0).sum() * (0.06 * ratio) ** 2)


@pytest.mark.parametrize("q", [0.05, 0.5])
@pytest.mark.parametrize("epsilon", [-0.2, 0.0, 0.05, 0.3])
def test_opposite_records_are_the_worst(q: float, epsilon: float) -> None:
    order, rng = math.exp(epsilon), np.random.default_rng(1)
    worst = hockey_stick(order, q, 1.2, np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    for _ in range(25):
        angles, lengths = rng.uniform(0, 2 * math.pi, 2), rng.choice([0.0, 0.3, 1.0, 1.0], 2)
        u, v = (length * np.array([math.cos(a), math.sin(a)]) for a, length in zip(angles, lengths, strict=True))
        assert hockey_stick(order, q, 1.2, u, v) <= worst + 1e-6
    if epsilon > 0:
        assert poisson_accounting.steps_delta(epsilon, q, 1.2, 1) == pytest.approx(worst, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10)])
def test_variance_is_enough_and_not_much_more(epsilon: Fraction) -> None:
    bound, q, steps = 2**28, Fraction(1, 10), 200
    found = poisson_accounting.variance(epsilon, TINY, sampling=q, steps=steps, dimension=20, bound=bound)
    ratio = math.sqrt(found) / bound
    assert poisson_accounting.steps_delta(float(epsilon), float(q), ratio, steps) <= TINY
    assert poisson_accounting.steps_delta(float(epsilon), float(q), 0.99 * ratio, steps) > TINY


def test_coarse_lattices_need_more_noise() -> None:
    fine, coarse = (
        poisson_accounting.variance(Fraction(1), TINY, sampling=Fraction(1, 10), steps=50, dimension=5, bound=b) / b**2
        for b in (2**28, 8)
    )
    assert coarse > fine


def test_too_small_a_delta_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1e-10"):
        poisson_accounting.variance(
            Fraction(1), Fraction(1, 10**11), sampling=Fraction(1), steps=1, dimension=1, bound=2**20
        )
