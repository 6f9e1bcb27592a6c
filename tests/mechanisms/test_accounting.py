"""Calibration and composition against known values, exact sums and each other."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms import calibration
from mechanisms.accounting import PureLoss, compose
from mechanisms.gaussian_privacy import GaussianLoss, analytic_delta, continuous_delta, zcdp_epsilon
from mechanisms.sensitivity import Sensitivity

MILLIONTH = Fraction(1, 10**6)
UNIT = 2**60  # squared L2 sensitivity at ring scale: one unit is 2^30


def exact_delta(epsilon: float, shift: int, sigma: float) -> float:
    """The delta of one-dimensional discrete Gaussian noise, by summing the positive part of P - e^epsilon Q."""
    x = np.arange(-math.ceil(40 * sigma), math.ceil(40 * sigma) + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    other = np.exp(-((x - shift) ** 2) / (2 * sigma**2))
    return float(np.maximum(weights - math.exp(epsilon) * other, 0).sum() / weights.sum())


def test_an_epsilon_that_protects_nobody_is_no_work() -> None:
    with pytest.raises(ValueError, match="epsilon=1e\\+06 is above 1000"):
        calibration.gaussian(UNIT, 10, Fraction(10**6), MILLIONTH)
    assert calibration.gaussian(2**80, 10, Fraction(1000), MILLIONTH).standard_deviation < 2**40 / 30


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        ("1", "1e-6", 4.2247),
        ("1", "1e-5", 3.7306),
        ("0.3", "1e-5", 11.238),
        ("0.1", "1e-5", 30.750),
        ("10", "1e-5", 0.4999),
    ],
)
def test_analytic_gaussian_has_the_published_sigma(epsilon: str, delta: str, sigma: float) -> None:
    noise = calibration.gaussian(UNIT, 10, Fraction(epsilon), Fraction(delta))
    assert math.sqrt(noise.variance / UNIT) == pytest.approx(sigma, rel=3e-5)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_calibrated_noise_is_enough_and_hardly_more(epsilon: str) -> None:
    wanted = Fraction(epsilon)
    for squared, dimension in ((UNIT, 1), (UNIT, 500), (1, 1), (7, 3)):
        noise = calibration.gaussian(squared, dimension, wanted, MILLIONTH)
        spent = compose([GaussianLoss(Fraction(squared), noise.variance, dimension)], MILLIONTH)
        assert wanted * Fraction(999, 1000) < spent.epsilon <= wanted * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("sigma", [2.0, 8.0, 40.0, 3000.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_discrete_delta_is_bounded_by_the_carried_over_curve(sigma: float, epsilon: float) -> None:
    for shift in (1, 3, int(sigma / 2)):
        loss = GaussianLoss(Fraction(shift**2), Fraction(sigma) ** 2, 1)
        bound = analytic_delta(Fraction(epsilon), [loss])
        assert exact_delta(epsilon, shift, sigma) <= float(bound) * (1 + 1e-9)
        order = zcdp_epsilon(loss.rho, MILLIONTH)
        assert exact_delta(float(order), shift, sigma) <= 1e-6


def test_carried_over_curve_is_tight_at_ring_scale() -> None:
    loss = GaussianLoss(Fraction(UNIT), Fraction(100 * UNIT), 10_000)
    assert analytic_delta(Fraction(1, 2), [loss]) / continuous_delta(Fraction(1, 2), Fraction(1, 100)) < 1 + MILLIONTH


def test_known_epsilons() -> None:
    """sigma = 10: 0.397 exactly, 0.430 by zCDP."""
    loss = GaussianLoss(Fraction(UNIT), Fraction(100 * UNIT), 1)
    spent = compose([loss], MILLIONTH)
    assert spent.accountant == "analytic Gaussian"
    assert float(spent.epsilon) == pytest.approx(0.39686, rel=1e-4)
    assert float(zcdp_epsilon(loss.rho, MILLIONTH)) == pytest.approx(0.430, abs=2e-3)


def test_gaussians_together_are_one() -> None:
    one = GaussianLoss(Fraction(UNIT), Fraction(400 * UNIT), 5)
    four = compose([one] * 4, MILLIONTH)
    assert four.accountant == "analytic Gaussian"
    alone = compose([GaussianLoss(Fraction(UNIT), Fraction(100 * UNIT), 5)], MILLIONTH)
    assert float(four.epsilon) == pytest.approx(float(alone.epsilon), rel=1e-6)


def test_few_pure_releases_add_up_exactly() -> None:
    spent = compose([PureLoss(Fraction(1, 10))] * 3, MILLIONTH)
    assert (spent.epsilon, spent.delta, spent.accountant) == (Fraction(3, 10), 0, "pure sum")
    assert compose([PureLoss(Fraction(1, 3)), PureLoss(Fraction(1, 6))]).epsilon == Fraction(1, 2)


def test_many_pure_releases_compose_optimally() -> None:
    """100 releases of epsilon 0.1 against the exact hockey-stick of 100 randomised responses."""
    spent = compose([PureLoss(Fraction(1, 10))] * 100, MILLIONTH)
    assert spent.accountant == "PLD"
    n, p = 100, 1 / (1 + math.exp(-0.1))
    k = np.arange(n + 1)
    log_mass = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k]
    ours = np.exp(log_mass + k * math.log(p) + (n - k) * math.log(1 - p))

    def delta(epsilon: float) -> float:
        return float(np.maximum(ours * (1 - np.exp(np.minimum(epsilon - 0.1 * (2 * k - n), 0))), 0).sum())

    assert delta(float(spent.epsilon)) <= 1e-6
    assert delta(float(spent.epsilon) * 0.98) > 1e-6


def test_mixed_releases() -> None:
    losses = [PureLoss(Fraction(1, 10))] * 30 + [GaussianLoss(Fraction(UNIT), Fraction(100 * UNIT), 50)]
    spent = compose(losses, MILLIONTH)
    assert spent.accountant == "PLD"
    rho = sum((Fraction(1, 200) for _ in range(30)), Fraction(1, 200))
    apart = compose(losses[:-1], MILLIONTH / 2).epsilon + compose(losses[-1:], MILLIONTH / 2).epsilon
    assert spent.epsilon < min(zcdp_epsilon(rho, MILLIONTH), apart)
    assert spent.epsilon > compose(losses[:-1], MILLIONTH).epsilon


@given(
    st.lists(st.fractions(Fraction(1, 1000), 5), min_size=1, max_size=6),
    st.sampled_from([None, MILLIONTH, Fraction(1, 100)]),
)
@settings(max_examples=25)
def test_never_more_than_the_pure_sum_and_never_zero(epsilons: list[Fraction], delta: Fraction | None) -> None:
    spent = compose([PureLoss(epsilon) for epsilon in epsilons], delta)
    assert 0 < spent.epsilon <= sum(epsilons)


def test_laplace_and_gamma_norm() -> None:
    assert calibration.laplace(Sensitivity(12, 30), Fraction(1, 10)).scale == 120
    assert calibration.gamma_norm(Fraction(3), Fraction(1, 2)).scale == 6
    lattice = calibration.lattice_l2(Fraction(1, 10), 100, 16)
    assert lattice == Fraction(2**16, 10) + 10
    assert calibration.zcdp_gaussian(10, Fraction(1, 20)).variance == 100


def test_lattice_rounding_is_covered() -> None:
    generator = np.random.default_rng(5)
    for _ in range(200):
        first = generator.uniform(-4, 4, 6)
        second = first + (step := generator.normal(size=6)) / np.linalg.norm(step) * 0.7
        moved = np.linalg.norm(np.rint(first * 8) - np.rint(second * 8))
        assert moved <= float(calibration.lattice_l2(Fraction(7, 10), 6, 3)) * (1 + 1e-12)


def test_classical_formula_only_where_it_holds() -> None:
    for epsilon, sigma in (("1", 4.845), ("0.3", 16.15), ("0.1", 48.45)):
        variance = calibration.classical_variance(1, Fraction(epsilon), Fraction(1, 10**5))
        assert math.sqrt(variance) == pytest.approx(sigma, abs=0.005)
        assert continuous_delta(Fraction(epsilon), 1 / variance) < Fraction(1, 10**5)
    for epsilon in (Fraction(1001, 1000), Fraction(10)):
        with pytest.raises(ValueError, match="where the classical formula holds"):
            calibration.classical_variance(1, epsilon, MILLIONTH)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0, Fraction(0), Fraction(-1), True, "x", None])
def test_nothing_bad_becomes_a_cheap_epsilon(bad: object) -> None:
    attempts = [
        lambda: PureLoss(bad),
        lambda: GaussianLoss(bad, Fraction(1), 1),
        lambda: GaussianLoss(Fraction(1), bad, 1),
        lambda: compose([PureLoss(Fraction(1))] * 2, bad if bad is not None else math.nan),
        lambda: calibration.gaussian(bad, 1, Fraction(1), MILLIONTH),
        lambda: calibration.gaussian(1, 1, bad, MILLIONTH),
        lambda: calibration.gaussian(1, 1, Fraction(1), bad),
        lambda: calibration.zcdp_gaussian(1, bad),
        lambda: calibration.laplace(Sensitivity(1, 1), bad),
        lambda: calibration.gamma_norm(bad, Fraction(1)),
    ]
    for attempt in attempts:
        with pytest.raises((ValueError, TypeError), match=r"^\w+[^\n]*: [^\n]+$"):
            attempt()


def test_kept_numbers_are_fractions() -> None:
    for attempt in (lambda: PureLoss(0.1), lambda: GaussianLoss(1.0, Fraction(1), 1), lambda: PureLoss(1)):
        with pytest.raises(TypeError, match=r"give a fractions\.Fraction"):
            attempt()


def test_refuses_to_compose_nothing_or_gaussians_without_delta() -> None:
    with pytest.raises(ValueError, match="losses="):
        compose([])
    with pytest.raises(ValueError, match="epsilon would be 0: give a smaller delta"):
        compose([GaussianLoss(Fraction(1, 10**8), Fraction(1, 2), 1)], Fraction(1, 100))
    with pytest.raises(ValueError, match="delta=None"):
        compose([GaussianLoss(Fraction(1), Fraction(1), 1)])
    with pytest.raises(ValueError, match="l1=0"):
        calibration.laplace(Sensitivity(0, 0), Fraction(1))


def test_noise_that_hides_everything_costs_no_time() -> None:
    """A delta far below 2^-1000 is rounded up: as a fraction it would have as many bits as its exponent says."""
    found = continuous_delta(Fraction(1), Fraction(1, 10**7))
    assert 0 < found <= Fraction(1, 2**999) and found.denominator.bit_length() < 2000
    spent = compose([GaussianLoss(Fraction(1), Fraction(2**100), 1)], Fraction(1, 10**5))
    assert 0 < spent.epsilon < Fraction(1, 10**9)
