"""Output perturbation of regularised logistic regression (Chaudhuri, Monteleoni and Sarwate 2011, algorithm 1).

Guarantee: pure epsilon, replace one record. The minimiser of (1/n) sum loss + (r/2) |w|^2 moves by at most 2 R / (n r)
in L2 when a record is replaced: the loss has gradients no longer than the row, R (theirs is R = 1), and the objective
is r-strongly convex. Noise: density proportional to exp(-epsilon |b|_2 / sensitivity).

Corrected: the theorem is about the exact minimiser, so what Newton's method leaves, at most `tolerance` in the gradient
and tolerance / r in the weights for each of two neighbours, is added; and the weights are rounded to a lattice before
exact integer noise, which adds the lattice's sqrt(d) (`calibration.lattice_l2`).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechanisms import calibration, validate
from mechanisms.gamma_norm import GammaNorm
from mechanisms.randomness import RandomWords
from protocols.baselines import logistic
from protocols.baselines.inputs import checked, row_bound, shortened
from protocols.baselines.model import Model, Statement
from protocols.schema import Floats
from smpc.fixedpoint import encode

_FINENESS = 10  # the lattice is 2^10 times finer than the sensitivity a coordinate


def sensitivity(n: int, regularisation: Fraction, norm: Fraction) -> Fraction:
    """2 norm / (n r) of the exact minimiser, and 2 tolerance / r for the solver."""
    return (2 * norm / n + 2 * Fraction(logistic.TOLERANCE)) / regularisation


def lattice_bits(l2: Fraction, d: int) -> int:
    """Fraction bits of a lattice that is fine beside the sensitivity `l2` of d real coordinates."""
    return max(0, math.ceil((d << (2 * _FINENESS)) / l2**2).bit_length() // 2 + 1)


def mechanism(l2: Fraction, d: int, epsilon: Fraction) -> tuple[GammaNorm, int]:
    """The noise on weights in units of 2^-bits, and bits, public: fine beside the sensitivity `l2`."""
    bits = lattice_bits(l2, d)
    return calibration.gamma_norm(calibration.lattice_l2(l2, d, bits), epsilon), bits


def fit(
    x: Floats,
    y: Floats,
    *,
    epsilon: Fraction,
    random: RandomWords,
    regularisation: Fraction,
    norm: Fraction | None = None,
) -> Model:
    """Rows longer than `norm` (default: sqrt(d)) are shortened to it. `regularisation` r > 0 is public.

    Raises ValueError and InputError for numbers, entries and labels outside their ranges.
    """
    wanted, strength = validate.epsilon(epsilon, allow_weak=True), validate.positive("regularisation", regularisation)
    features, labels = checked(x, y, "logistic")
    n, d = features.shape
    limit = row_bound(norm, d)
    noise, bits = mechanism(sensitivity(n, strength, limit), d, wanted)
    exact = logistic.minimise(shortened(features, limit), labels, float(strength))
    noisy = encode(exact.weights, bits) + noise.draw(d, random)
    return Model(np.ldexp(noisy.astype(np.float64), -bits), Statement(wanted, Fraction(0), str(noise), "pure sum"))
