"""AdaSSP (Wang 2018, algorithm 2): ridge regression from noisy second moments, its ridge from a noisy eigenvalue.

Guarantee: (epsilon, delta), replace one record. Three Gaussian releases, rows with |x|_2 <= R, |y| <= 1:

    smallest eigenvalue of X'X   moves by at most R^2 (0 <= x x' <= R^2 I, so that a difference is within +-R^2 I)
    upper triangle of X'X        by sqrt 2 R^2: |x x' - z z'|_F^2 = |x|^4 + |z|^4 - 2 (x . z)^2 <= 2 R^4
    X'y                          by 2 R

The source has add or remove, R^2, R^2 and R. Corrected: its sqrt(ln(6 / delta)) / (epsilon / 3) is no calibration for
epsilon above about 1; here the three together are one Gaussian by the analytic curve, a third of mu^2 each. R is public
(the ports that take it from the data are not private).

The ridge, and what is subtracted from the noisy eigenvalue to make it a lower bound, are the source's in terms of the
deviations s: max(0, s_X sqrt(d ln(2 d^2 / rho)) - max(0, noisy eigenvalue - s_e sqrt(ln(6 / delta)))), rho = 0.05.

Exact: rows and labels are rounded to integers, whose products are summed exactly. The eigenvalue is computed in
float64, off by at most d 2^-46 of the largest possible one, R^2 n, and rounded: both enter its sensitivity.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechanisms import calibration, validate
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.randomness import RandomWords
from protocols.baselines.inputs import UNIT, check_exact, checked, noisy, on_lattice, row_bound, short_rows_on_lattice
from protocols.baselines.model import Model, Statement
from protocols.schema import Floats

_FAILURE = 0.05  # rho
_EIGENVALUE_ERROR = Fraction(1, 2**46)


def sensitivities(n: int, d: int, norm: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Squared L2, in units of 4^-BITS, of the eigenvalue, the upper triangle and X'y."""
    square = norm**2 * UNIT**2
    eigenvalue = square + 2 * d * n * square * _EIGENVALUE_ERROR + 1
    return eigenvalue**2, 2 * square**2, 4 * square * UNIT**2


def mechanisms(
    squared: tuple[Fraction, Fraction, Fraction], coordinates: int, epsilon: Fraction, delta: Fraction
) -> list[DiscreteGaussian]:
    """A third of mu^2 each: three times the variance that one release of all `coordinates` needs.

    Calibrated at the least of them, where going from continuous noise to integers costs most.
    """
    least = min(squared)
    ratio = calibration.gaussian(least, coordinates, epsilon, delta).variance / least
    return [DiscreteGaussian(3 * ratio * square) for square in squared]


def fit(
    x: Floats, y: Floats, *, epsilon: Fraction, delta: Fraction, random: RandomWords, norm: Fraction | None = None
) -> Model:
    """Rows longer than `norm` (default: sqrt(d)) are shortened to it.

    Raises ValueError and InputError for numbers, entries and labels outside their ranges.
    """
    wanted, risk = validate.epsilon(epsilon, allow_weak=True), validate.delta(delta)
    features, labels = checked(x, y, "linear")
    n, d = features.shape
    limit = row_bound(norm, d)
    check_exact(n, UNIT**2, "second moments")
    rows = short_rows_on_lattice(features, limit)
    first, second = np.triu_indices(d)
    noises = mechanisms(sensitivities(n, d, limit), 1 + len(first) + d, wanted, risk)
    exact = rows.T @ rows
    smallest = noisy(np.floor(np.linalg.eigvalsh(exact)[:1]), noises[0], random)[0] / UNIT**2
    moments = np.zeros((d, d))
    moments[first, second] = noisy(exact[first, second], noises[1], random) / UNIT**2
    moments += np.triu(moments, 1).T
    target = noisy(rows.T @ on_lattice(labels), noises[2], random) / UNIT**2
    deviations = [noise.standard_deviation / UNIT**2 for noise in noises]
    lower = max(0.0, smallest - deviations[0] * math.sqrt(math.log(6 / risk)))
    ridge = max(0.0, deviations[1] * math.sqrt(d * math.log(2 * d * d / _FAILURE)) - lower)
    weights = np.linalg.lstsq(moments + ridge * np.eye(d), target, rcond=None)[0]
    statement = Statement(wanted, risk, f"three discrete Gaussians, {noises[1]} on X'X", "analytic Gaussian or zCDP")
    return Model(weights, statement)
