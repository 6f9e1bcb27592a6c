"""Output perturbation: the minimiser's movement, the noise's law, the limit."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.randomness import SecureRandom
from protocols.baselines import logistic, output_perturbation
from protocols.baselines.inputs import shortened
from tests.protocols.baselines import tables

ONE, STRENGTH = Fraction(1), Fraction(1, 10)


def test_sensitivity_is_chaudhuris_and_the_solvers() -> None:
    found = output_perturbation.sensitivity(100, STRENGTH, ONE)
    assert 0 < found - Fraction(2, 10) <= Fraction(3 * 10**-8 * 10)


def test_no_replacement_moves_the_minimiser_further() -> None:
    rng = np.random.default_rng(0)
    x = shortened(rng.uniform(-1, 1, (5, 2)), ONE)
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    bound = output_perturbation.sensitivity(5, STRENGTH, ONE)
    outcomes = []
    for angle in np.linspace(0, 2 * math.pi, 24, endpoint=False):
        for label in (0.0, 1.0):
            x[0], y[0] = (0.999 * math.cos(angle), 0.999 * math.sin(angle)), label
            outcomes.append(logistic.minimise(x, y, float(STRENGTH)).weights)
    worst = max(float(np.linalg.norm(a - b)) for a in outcomes for b in outcomes)
    assert 0.2 * bound < worst <= bound


def test_noise_has_its_law() -> None:
    """No data: the minimiser is 0. The length is Gamma(d) times sensitivity / epsilon, the direction uniform."""
    d, epsilon, words = 3, Fraction(2), SecureRandom()
    draws = np.array(
        [
            output_perturbation.fit(
                np.zeros((10, d)), np.zeros(10), epsilon=epsilon, random=words, regularisation=STRENGTH, norm=ONE
            ).weights
            for _ in range(1000)
        ]
    )
    scale = float(output_perturbation.sensitivity(10, STRENGTH, ONE) / epsilon)
    lengths = np.linalg.norm(draws, axis=1)
    assert stats.kstest(lengths / scale, "gamma", args=(d,)).pvalue > 1e-9
    assert stats.kstest(2 * lengths / scale, "gamma", args=(d,)).pvalue < 1e-9
    assert stats.kstest(draws[:, 0] / lengths, "uniform", args=(-1, 2)).pvalue > 1e-9  # Archimedes, in three dimensions


@pytest.mark.parametrize("d", [1, 7, 300])
@pytest.mark.parametrize("l2", [Fraction(1, 10**6), Fraction(1, 3), Fraction(40)])
def test_rounding_costs_little(d: int, l2: Fraction) -> None:
    noise, bits = output_perturbation.mechanism(l2, d, ONE)
    relative = noise.scale / (l2 * 2**bits)
    assert 1 + Fraction(1, 10**5) < relative < 1 + Fraction(1, 2**9) or bits == 0


def test_large_epsilon_is_the_regularised_minimiser() -> None:
    x, y = tables.logistic()
    found = output_perturbation.fit(x, y, epsilon=Fraction(10**7), random=SecureRandom(), regularisation=STRENGTH)
    assert found.weights == pytest.approx(logistic.minimise(x, y, 0.1).weights, abs=1e-5)


def test_rows_are_shortened_to_the_norm() -> None:
    x, y = tables.logistic()
    found = output_perturbation.fit(
        x, y, epsilon=Fraction(10**7), random=SecureRandom(), regularisation=STRENGTH, norm=Fraction(1, 2)
    )
    assert found.weights == pytest.approx(logistic.minimise(shortened(x, Fraction(1, 2)), y, 0.1).weights, abs=1e-5)


@pytest.mark.parametrize("options", [{"regularisation": Fraction(0)}, {"regularisation": -1}, {"norm": Fraction(0)}])
def test_options_out_of_range(options: dict[str, object]) -> None:
    x, y = tables.logistic(20)
    with pytest.raises(ValueError, match="is not above 0"):
        output_perturbation.fit(
            x, y, epsilon=ONE, random=SecureRandom(), **{"regularisation": STRENGTH, **options}  # type: ignore[arg-type]
        )  # fmt: skip
