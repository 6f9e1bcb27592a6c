"""The least Gaussian noise for DP-SGD: steps on Poisson samples, replace one record, composed as loss distributions.

One step adds N(0, s^2 I) to a sum of vectors of L2 norm <= 1 over a sample that each record joins with probability q.
Given the others, it turns on replacing one record from P = (1 - q) N(0) + q N(u) to Q = (1 - q) N(0) + q N(v), with
|u|, |v| <= 1. The worst pair at every order is v = -u, |u| = 1, in one dimension:

For a >= 1 the hockey-stick divergence is integral (P - a Q)_+ = q E[1 - a R - c S]_+, where c = (1 - q)(a - 1) / q >= 0
and the expectation is over N(u), under which R = N(v) / N(u) and S = N(0) / N(u) are e^{G - Var G / 2} of two jointly
Gaussian G with variances |u - v|^2 / s^2, |u|^2 / s^2 and covariance <u - v, u> / s^2. None of the three is larger than
at v = -u, |u| = 1. By Kahane's convexity inequality (1986) the expectation of a convex function of a sum of such
exponentials with weights >= 0 grows with every entry of the covariance matrix. Below a = 1 exchange P and Q.

So T steps, each chosen after the last, are dominated by T draws of that pair (Zhu, Dong and Wang 2022, theorem 10),
which dp-accounting discretises, rounding up, and convolves. The noise is discrete: what that adds is given by
`gaussian_privacy.Transfer` for all coordinates of all steps; the laws here are mixtures, over samples, of shifts by
integers, for which the same pointwise ratios hold.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from mechanisms import validate
from mechanisms.gaussian_privacy import GaussianLoss, Transfer
from mechanisms.search import least_enough

_RELATIVE, _ABSOLUTE = 1e-6, 1e-12  # for float64 in the discretisation and the transforms
_LEAST_DELTA = Fraction(1, 10**10)
_GRID = 2**10  # points an epsilon
_BISECTIONS = 20  # to a relative 2^-20


def steps_delta(epsilon: float, sampling: float, ratio: float, steps: int) -> float:
    """An upper bound of the delta at `epsilon` of all steps, 1 where the accountant finds nothing.

    Continuous noise with a standard deviation of `ratio` times the norm bound.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    one = pld.from_gaussian_mechanism(
        ratio,
        sampling_prob=sampling,
        value_discretization_interval=epsilon / _GRID,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    total = float(one.self_compose(steps).get_delta_for_epsilon(epsilon))
    return total * (1 + _RELATIVE) + _ABSOLUTE if 0 <= total < 1 else 1.0


@cache
def variance(
    epsilon: Fraction, delta: Fraction, *, sampling: Fraction, steps: int, dimension: int, bound: int
) -> Fraction:
    """The variance of integer noise on each of `dimension` coordinates of sums of integer vectors of norm <= `bound`.

    Raises ValueError for delta under 1e-10, which float64 cannot tell apart from its own errors.
    """
    if validate.delta(delta) < _LEAST_DELTA:
        raise ValueError(f"delta={delta} is below 1e-10: the numerical accountant cannot certify it, give a larger one")

    def enough(ratio: Fraction) -> bool:
        spread = (ratio * bound) ** 2
        transfer = Transfer.of([GaussianLoss(Fraction(bound) ** 2, spread, steps * dimension)])
        if transfer is None or transfer.extra >= epsilon / 2:
            return False
        inner = epsilon - transfer.extra
        continuous = steps_delta(math.nextafter(float(inner), 0.0), float(sampling), float(ratio), steps)
        return transfer.delta(inner, Fraction(continuous)) <= delta

    # The search starts above the answer, near 2 q sqrt(2 T ln(1/delta)) / epsilon: grids grow as noise shrinks.
    guess = 8 * float(sampling) * math.sqrt(2 * steps * math.log(1 / delta)) / float(epsilon)
    start = Fraction(2) ** math.ceil(math.log2(guess))
    return (least_enough(enough, start, _BISECTIONS) * bound) ** 2
