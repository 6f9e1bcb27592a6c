"""The functional mechanism with one curator who holds all columns (Zhang et al., VLDB 2012): the coefficients of the
(order-2 Taylor) objective plus Laplace noise, then a minimum. Guarantee: pure epsilon, replace one record.

`original`: as the article states it. Linear Delta = 2 (d + 1)^2, which counts y^2; logistic Delta = d^2/4 + 3 d, which
bounds x / 2 and x y apart. Noise on the upper triangle, copied below; ridge 4 standard deviations of it.
`author`: as the author's own code does it. Linear 2 d^2 + 4 d, logistic d^2/4 + d. Noise on all d x d entries, averaged
with its transpose; ridge 5 standard deviations.
Both then drop the directions whose curvature is not positive, which is post-processing like the ridge.

Corrected: data are rounded to the lattice first, so that the coefficients are integers and the noise on them exact.
The constants are proved for |x_j| <= 1 (the article says |x|_2 <= 1, for which they are larger than need be). d counts
an intercept's column of ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms import objective_constants, validate
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import RandomWords
from protocols.baselines.inputs import UNIT, check_exact, checked, noisy, on_lattice
from protocols.baselines.model import Model, Statement
from protocols.schema import Floats
from smpc.errors import InputError

_FLAT = 1e-8  # the author's code drops eigenvalues below this


@dataclass(frozen=True)
class Constants:
    """Delta of the two losses as functions of d, whether the upper triangle's noise is copied, ridge / deviation."""

    linear: Callable[[int], Fraction]
    logistic: Callable[[int], Fraction]
    copied: bool
    ridge: int


CONSTANTS = {
    "original": Constants(
        linear=lambda d: objective_constants.linear(d, label_square=True),
        logistic=lambda d: objective_constants.logistic(d) + 2 * d,
        copied=True,
        ridge=4,
    ),
    "author": Constants(objective_constants.linear, objective_constants.logistic, copied=False, ridge=5),
}


@dataclass(frozen=True)
class Objective:
    """w' quadratic w + slope' w in integers: `unit` of them make 1. Shapes (d, d) and (d,)."""

    quadratic: Floats
    slope: Floats
    unit: int


def objective(x: Floats, y: Floats, loss: str) -> Objective:
    """The coefficients without noise, of integer `x` (n, d) and, if linear, integer `y`; the constant is left out."""
    if loss == "linear":
        return Objective(x.T @ x, -2 * (x.T @ y), UNIT**2)
    return Objective(x.T @ x, 4 * UNIT * (x.T @ (1 - 2 * y)), 8 * UNIT**2)


def fit(
    x: Floats, y: Floats, *, loss: str, epsilon: Fraction, random: RandomWords, constants: str = "original"
) -> Model:
    """Raises ValueError and InputError for numbers, entries, labels and names outside their ranges."""
    wanted = validate.epsilon(epsilon, allow_weak=True)
    if constants not in CONSTANTS:
        raise InputError(f"constants = {constants!r}: need one of {', '.join(CONSTANTS)}")
    chosen = CONSTANTS[constants]
    features, labels = checked(x, y, loss)
    n, d = features.shape
    check_exact(n, 4 * UNIT**2, "coefficients")
    exact = objective(on_lattice(features), on_lattice(labels) if loss == "linear" else labels, loss)
    delta = (chosen.linear if loss == "linear" else chosen.logistic)(d)
    noise = DiscreteLaplace(delta * exact.unit / wanted)
    quadratic = noisy(exact.quadratic, noise, random) / exact.unit
    slope = noisy(exact.slope, noise, random) / exact.unit
    upper = np.triu(quadratic)
    symmetric = upper + np.triu(quadratic, 1).T if chosen.copied else (quadratic + quadratic.T) / 2
    ridge = chosen.ridge * math.sqrt(2) * float(delta / wanted)
    weights = minimise(symmetric + ridge * np.eye(d), slope)
    return Model(weights, Statement(wanted, Fraction(0), f"{noise}, {constants} constants", "pure sum"))


def minimise(quadratic: Floats, slope: Floats) -> Floats:
    """argmin of w' quadratic w + slope' w in the directions of positive curvature, 0 in the others."""
    values, vectors = np.linalg.eigh(quadratic)
    kept = vectors[:, values >= _FLAT]
    weights: Floats = -kept @ ((kept.T @ slope) / values[values >= _FLAT]) / 2
    return weights
