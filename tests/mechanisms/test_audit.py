"""The auditor itself: known bounds, power as predicted, false alarms never above its level."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.audit import Event, epsilon_lower_bound, events, mu_lower_bound
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.laws import discrete_laplace_law, law_p_value, table_law
from mechanisms.randomness import SecureRandom

POSITIVE = (Event("positive", lambda x: x > 0),)


def test_clopper_pearson_by_hand() -> None:
    """One event, 0 of 1000 against 1000 of 1000: ln(level^(1/1000) / (1 - level^(1/1000))), level = alpha / 8."""
    bound = epsilon_lower_bound(np.ones(1000, dtype=int), np.zeros(1000, dtype=int), POSITIVE, alpha=0.08)
    tail = 0.01 ** (1 / 1000)
    assert bound.value == pytest.approx(math.log(tail / (1 - tail)), rel=1e-9)
    assert bound.event in ("positive", "not positive")
    half = epsilon_lower_bound(np.ones(1000, dtype=int), np.zeros(1000, dtype=int), POSITIVE, alpha=0.08, delta=0.5)
    assert half.value == pytest.approx(math.log((tail - 0.5) / (1 - tail)), rel=1e-9)


def test_equal_inputs_show_nothing() -> None:
    values = DiscreteLaplace(Fraction(3)).draw(10_000, SecureRandom())
    assert epsilon_lower_bound(values, values, events(0, 3.0)).value == 0


def test_an_exact_mechanism_is_measured_from_below() -> None:
    """epsilon = 1, 2e5 runs: at least 0.9 is found, never more than 1 (at 1e-9)."""
    n, random = 200_000, SecureRandom()
    first, second = DiscreteLaplace(Fraction(4)).draw(n, random), 4 + DiscreteLaplace(Fraction(4)).draw(n, random)
    assert 0.9 < epsilon_lower_bound(first, second, events(2, 4.0)).value <= 1


def test_false_alarms_are_rarer_than_said() -> None:
    """Even at alpha = 1/2 a true epsilon is exceeded in under half of 200 audits (in fact hardly ever)."""
    random, registered = SecureRandom(), events(0, 1.0)
    alarms = 0
    for _ in range(200):
        values = DiscreteLaplace(Fraction(1)).draw(4_000, random)
        alarms += epsilon_lower_bound(values[:2000], values[2000:] + 1, registered, alpha=0.5).value > 1
    assert alarms < 60


@pytest.mark.parametrize(("share", "caught"), [(1.0, False), (0.5, True), (0.8, True)])
def test_mu_of_gaussian_noise(share: float, caught: bool) -> None:
    sigma, n, random = 100.0, 100_000, SecureRandom()
    noise = DiscreteGaussian(Fraction(int((share * sigma) ** 2)))
    bound = mu_lower_bound(noise.draw(n, random), 100 + noise.draw(n, random), 50)
    assert (bound.value > 1) == caught
    assert bound.value > 0.9


def test_mu_by_hand() -> None:
    bound = mu_lower_bound(np.zeros(100, dtype=int), np.ones(100, dtype=int), 0, alpha=0.02)
    rate = 1 - 0.01 ** (1 / 100)
    assert bound.value == pytest.approx(-2 * stats.norm.ppf(rate), rel=1e-9)
    assert mu_lower_bound(np.ones(100, dtype=int), np.zeros(100, dtype=int), 0).value == 0


def test_refuses_empty_audits() -> None:
    some = np.zeros(3, dtype=int)
    with pytest.raises(ValueError, match="outcomes=0 and 3"):
        epsilon_lower_bound(some[:0], some, POSITIVE)
    with pytest.raises(ValueError, match="registered="):
        epsilon_lower_bound(some, some, ())
    for alpha in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="alpha="):
            mu_lower_bound(some, some, 0, alpha=alpha)


def test_law_p_values_are_honest() -> None:
    """Over 300 correct samples the p-values are not too small: the smallest is about 1/300, uniform-like below."""
    random, law = SecureRandom(), discrete_laplace_law(Fraction(2))
    p_values = [law_p_value(DiscreteLaplace(Fraction(2)).draw(2_000, random), law) for _ in range(300)]
    assert min(p_values) > 1e-7
    assert stats.binom.sf(sum(p < 0.05 for p in p_values) - 1, 300, 0.05) > 1e-6


def test_table_law() -> None:
    law = table_law(np.array([-1, 0, 3]), np.array([2.0, 1.0, 1.0]))
    assert [law.cdf(x) for x in (-2, -1, 0, 2, 3)] == [0, 0.5, 0.75, 0.75, 1]
    assert (law.even, law.zero, law.quantile(0.6), law.quantile(0.5)) == (0.25, 0.25, 0, -1)
