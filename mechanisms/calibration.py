"""From a sensitivity and a wanted guarantee to a mechanism. Scales and variances are exact rationals, rounded up."""

from __future__ import annotations

from fractions import Fraction

from flint import ctx

from mechanisms import validate
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.enclosure import PRECISION, ball, sqrt_above, upper
from mechanisms.gamma_norm import GammaNorm
from mechanisms.gaussian_privacy import GaussianLoss, analytic_delta, zcdp_epsilon
from mechanisms.search import least_enough
from mechanisms.sensitivity import Sensitivity

MOST_GAUSSIAN_EPSILON = 1000  # the bounds carry e^epsilon as an exact number
_STEPS = 40  # bisection stops at a relative excess of 2^-30 and less


def laplace(sensitivity: Sensitivity, epsilon: Fraction) -> DiscreteLaplace:
    """Pure epsilon from the L1 sensitivity: scale = l1 / epsilon."""
    return DiscreteLaplace(validate.positive("l1", sensitivity.l1) / validate.epsilon(epsilon, allow_weak=True))


def gamma_norm(l2: Fraction, epsilon: Fraction) -> GammaNorm:
    """Pure epsilon from an L2 sensitivity: scale = l2 / epsilon."""
    return GammaNorm(validate.positive("l2", l2) / validate.epsilon(epsilon, allow_weak=True))


def lattice_l2(l2: Fraction, dimension: int, fraction_bits: int) -> Fraction:
    """L2 sensitivity in units of 2^-fraction_bits of a real vector after rounding its coordinates to such units.

    Each of the two neighbours' coordinates moves by at most half a unit: l2 2^f + sqrt(dimension).
    """
    unit = 1 << validate.integer("fraction_bits", fraction_bits)
    return validate.positive("l2", l2) * unit + sqrt_above(validate.integer("dimension", dimension, low=1))


def zcdp_gaussian(l2_squared: Fraction | int, rho: Fraction) -> DiscreteGaussian:
    """rho-zCDP: variance = l2^2 / (2 rho)."""
    return DiscreteGaussian(validate.positive("l2_squared", l2_squared) / (2 * validate.positive("rho", rho)))


def gaussian(l2_squared: Fraction | int, dimension: int, epsilon: Fraction, delta: Fraction) -> DiscreteGaussian:
    """The least noise that is (epsilon, delta) by the analytic curve carried over to integers, or by zCDP.

    `dimension` is the number of coordinates. Excess over the true optimum of the two: a relative 2^-30 at most.
    Raises ValueError for epsilon above 1000, which says nothing about anybody.
    """
    squared = validate.positive("l2_squared", l2_squared)
    wanted, risk = validate.epsilon(epsilon, allow_weak=True), validate.delta(delta)
    if wanted > MOST_GAUSSIAN_EPSILON:
        raise ValueError(f"epsilon={float(wanted):g} is above {MOST_GAUSSIAN_EPSILON}, the most for Gaussian noise")

    def enough(ratio: Fraction) -> bool:
        loss = GaussianLoss(squared, squared * ratio**2, dimension)
        return analytic_delta(wanted, [loss]) <= risk or zcdp_epsilon(loss.rho, risk) <= wanted

    return DiscreteGaussian(squared * least_enough(enough, Fraction(1), _STEPS) ** 2)


def classical_variance(l2_squared: Fraction | int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """2 ln(1.25 / delta) l2^2 / epsilon^2, the textbook variance of continuous noise, for the papers' modes.

    Proved for epsilon < 1 (Dwork and Roth 2014, theorem A.1), hence at 1, as the exact curve is continuous: larger
    values are refused. `gaussian` needs less and holds for any epsilon.
    """
    wanted, risk = validate.epsilon(epsilon), validate.delta(delta)
    if wanted > 1:
        raise ValueError(
            f"epsilon={epsilon} is outside (0, 1], where the classical formula holds: use the analytic one"
        )
    with ctx.workprec(PRECISION):
        squared = ball(validate.positive("l2_squared", l2_squared))
        return upper(2 * ball(Fraction(5, 4) / risk).log() * squared / ball(wanted) ** 2)
