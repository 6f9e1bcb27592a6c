"""The law, the exact fallback, the tail and the limits of the discrete Gaussian sampler."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from mechanisms import bernoulli
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.enclosure import ball
from mechanisms.laws import Law, law_p_value, table_law
from mechanisms.randomness import SecureRandom, Stream


def law(sigma_squared: Fraction) -> Law:
    """The exact table up to sigma 1000; beyond, the normal law, which it equals to 1 part in sigma^2."""
    sigma = math.sqrt(sigma_squared)
    if sigma <= 1000:
        support = np.arange(-math.ceil(12 * sigma) - 12, math.ceil(12 * sigma) + 13)
        return table_law(support, np.exp(-(support.astype(float) ** 2) / (2 * sigma**2)))
    return Law(lambda x: math.erfc(-(x + 0.5) / sigma / math.sqrt(2)) / 2, 0.5, 1 / (sigma * math.sqrt(2 * math.pi)))


VARIANCES = [
    Fraction(1, 9),
    Fraction(1),
    Fraction(7, 3),
    Fraction(100),
    Fraction(10**6),
    Fraction(2**80),
    Fraction(2**116),
]


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_law(variance: Fraction) -> None:
    values = DiscreteGaussian(variance).draw(50_000, SecureRandom())
    assert values.shape == (50_000,)
    assert law_p_value(values, law(variance)) > 1e-9


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(7, 3), Fraction(2**80)], ids=str)
def test_exact_fallback_has_the_same_law(variance: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = DiscreteGaussian(variance).draw(2_000, Stream(bytes(32)))
    monkeypatch.setattr(bernoulli, "MARGIN", 1 / 32)
    assert np.array_equal(DiscreteGaussian(variance).draw(2_000, Stream(bytes(32))), fast)
    assert law_p_value(DiscreteGaussian(variance).draw(10_000, SecureRandom()), law(variance)) > 1e-9


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(2**117, 3)], ids=str)
def test_float_estimates_keep_within_half_a_margin(variance: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    worst = arb(0)

    def compare(estimate: np.ndarray, probability: object, random: SecureRandom) -> np.ndarray:
        nonlocal worst
        for i in range(0, len(estimate), 7):
            worst = worst.max(abs(arb(float(estimate[i])) - probability(i)))  # type: ignore[operator]  # a callable
        return np.ones(len(estimate), dtype=bool)

    with ctx.workprec(300):
        monkeypatch.setattr("mechanisms.discrete_gaussian.bernoulli_near", compare)
        DiscreteGaussian(variance).draw(3_000, SecureRandom())
        assert worst < bernoulli.MARGIN / 2**6


def test_tail_bounds_the_law() -> None:
    weights = np.exp(-(np.arange(0, 400) ** 2) / 450)
    weights /= 2 * weights.sum() - 1
    for exponent in (2, 10, 40):
        bound = DiscreteGaussian(Fraction(225)).tail(Fraction(1, 2**exponent))
        assert 2 * weights[bound + 1 :].sum() <= 2.0**-exponent
        assert bound <= math.ceil(15 * math.sqrt(2 * math.log(2 * 2**exponent)))
    assert DiscreteGaussian(Fraction(1)).tail(Fraction(1)) == 0


@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(1, 2), Fraction(3), Fraction(16), Fraction(17)])
def test_standard_deviation(variance: Fraction) -> None:
    with ctx.workprec(100):
        weights = [(-ball(Fraction(x * x) / (2 * variance))).exp() for x in range(-80, 81)]
        second = sum((x * x * w for x, w in zip(range(-80, 81), weights, strict=True)), arb(0))
        expected = float((second / sum(weights, arb(0))).sqrt())
    assert DiscreteGaussian(variance).standard_deviation == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("variance", [1.0, 4, True, Fraction(0), Fraction(-1), Fraction(2) ** 125, Fraction(1, 2**125)])
def test_refuses_a_bad_variance(variance: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^variance[^\n]*: [^\n]+$"):
        DiscreteGaussian(variance)  # type: ignore[arg-type]  # the wrong type is the test


def test_proposal_is_never_shorter_than_sigma() -> None:
    """A proposal with t < sigma would still be exact but the proof of the float margin needs sigma^2 / t <= sigma."""
    for variance in VARIANCES:
        scale = math.isqrt(math.floor(variance)) + 1
        assert Fraction(scale) ** 2 >= variance
        DiscreteLaplace(Fraction(scale))
