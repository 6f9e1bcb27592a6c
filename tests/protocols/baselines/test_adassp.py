"""AdaSSP: replace-one sensitivities against brute force, the noise together, the ridge, the limit."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gaussian_privacy import GaussianLoss, analytic_delta
from mechanisms.randomness import SecureRandom
from protocols.baselines import adassp, ols
from protocols.baselines.inputs import UNIT, shortened
from tests.protocols.baselines import tables

ONE, TINY = Fraction(1), Fraction(1, 10**5)


def test_sensitivities_cover_every_pair_of_records() -> None:
    grid = np.linspace(-1, 1, 9)
    rows = [np.array(row) for row in product(grid, repeat=2) if math.hypot(*row) <= 1]
    others = np.random.default_rng(0).uniform(-0.7, 0.7, (3, 2))
    records = []
    for row in rows:
        gram = np.outer(row, row)
        smallest = np.linalg.eigvalsh(gram + others.T @ others)[0]
        alone = np.linalg.eigvalsh(gram)[0]
        records.append((smallest, alone, gram[np.triu_indices(2)], row))
    eigenvalue, triangle, target = (math.sqrt(s) / UNIT**2 for s in adassp.sensitivities(4, 2, ONE))
    worst = max(float(np.linalg.norm(a[2] - b[2])) for a in records for b in records)
    assert worst == pytest.approx(triangle) == pytest.approx(math.sqrt(2))
    assert max(abs(a[0] - b[0]) for a in records for b in records) <= eigenvalue
    assert max(float(np.linalg.norm(a[3] + b[3])) for a in records for b in records) == pytest.approx(target)
    # one column: the eigenvalue is the sum of squares, and moves by all of R^2
    assert 1 < eigenvalue < 1 + 1e-6


def test_norm_scales_the_sensitivities() -> None:
    small, large = adassp.sensitivities(10, 3, ONE), adassp.sensitivities(10, 3, Fraction(3))
    assert [b / a for a, b in zip(small[1:], large[1:], strict=True)] == [81, 9]
    assert float(large[0] / small[0]) == pytest.approx(81, rel=1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(10)])
def test_the_three_together_are_calibrated(epsilon: Fraction) -> None:
    squared = adassp.sensitivities(1000, 5, ONE)
    noises = adassp.mechanisms(squared, 21, epsilon, TINY)
    coordinates = (1, 15, 5)
    parts = [GaussianLoss(s, n.variance, c) for s, n, c in zip(squared, noises, coordinates, strict=True)]
    assert analytic_delta(epsilon, parts) <= TINY
    weaker = [GaussianLoss(p.l2_squared, p.variance * Fraction(98, 100), p.dimension) for p in parts]
    assert analytic_delta(epsilon, weaker) > TINY
    assert len({p.rho for p in parts}) == 1


def test_noise_has_its_law_and_ridge_is_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[DiscreteGaussian, np.ndarray]] = []
    exact = DiscreteGaussian.draw

    def spy(self: DiscreteGaussian, count: int, random: SecureRandom) -> np.ndarray:
        drawn.append((self, exact(self, count, random)))
        return drawn[-1][1]

    monkeypatch.setattr(DiscreteGaussian, "draw", spy)
    d = 60
    model = adassp.fit(np.zeros((4, d)), np.zeros(4), epsilon=ONE, delta=TINY, random=SecureRandom())
    (low, first), (middle, second), (last, third) = drawn
    expected = adassp.mechanisms(adassp.sensitivities(4, d, adassp.row_bound(None, d)), 1 + 1830 + d, ONE, TINY)
    assert [low, middle, last] == expected
    assert [len(first), len(second), len(third)] == [1, 1830, d]
    assert stats.kstest(second / math.sqrt(middle.variance), "norm").pvalue > 1e-9
    moments = np.zeros((d, d))
    moments[np.triu_indices(d)] = second / UNIT**2
    moments = moments + moments.T - np.diag(moments.diagonal())
    deviation = math.sqrt(middle.variance) / UNIT**2
    bound = first[0] / UNIT**2 - math.sqrt(low.variance * math.log(6e5)) / UNIT**2
    ridge = max(0.0, deviation * math.sqrt(d * math.log(2 * d * d / 0.05)) - max(bound, 0))
    weights = np.linalg.solve(moments + ridge * np.eye(d), third / UNIT**2)
    assert model.weights == pytest.approx(weights, rel=1e-6)


def test_large_epsilon_is_the_exact_solution() -> None:
    x, y = tables.linear()
    found = adassp.fit(x, y, epsilon=Fraction(1000), delta=TINY, random=SecureRandom())
    assert found.weights == pytest.approx(ols.fit(x, y).weights, abs=1e-3)


def test_rows_are_shortened_to_the_norm() -> None:
    x, y = tables.linear()
    half = Fraction(1, 2)
    found = adassp.fit(x, y, epsilon=Fraction(1000), delta=TINY, random=SecureRandom(), norm=half)
    assert found.weights == pytest.approx(ols.fit(shortened(x, half), y).weights, abs=1e-3)
    assert np.abs(found.weights - ols.fit(x, y).weights).max() > 0.05


def test_moderate_epsilon_is_near_it() -> None:
    x, y = tables.linear(50_000)
    found = adassp.fit(x, y, epsilon=ONE, delta=TINY, random=SecureRandom())
    assert found.weights == pytest.approx(ols.fit(x, y).weights, abs=0.02)


def test_fewer_rows_than_columns() -> None:
    x, y = tables.linear(2, 5)
    assert np.isfinite(adassp.fit(x, y, epsilon=ONE, delta=TINY, random=SecureRandom()).weights).all()


def test_norm_must_be_positive() -> None:
    x, y = tables.linear(20)
    with pytest.raises(ValueError, match="norm"):
        adassp.fit(x, y, epsilon=ONE, delta=TINY, random=SecureRandom(), norm=Fraction(0))
