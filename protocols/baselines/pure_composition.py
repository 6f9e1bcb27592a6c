"""The least noise for T releases, each epsilon_0-DP, to be (epsilon, delta)-DP together.

No such sequence is worse than T randomised responses (Kairouz, Oh and Viswanath 2015, theorem 3.3): with X ~ Bin(T, p),
p = e^e0 / (1 + e^e0), delta(epsilon) = E[1 - exp(epsilon - (2 X - T) e0)]_+. Exact for every epsilon, while the formula
sqrt(8 T ln(1/delta)) asks for epsilon <= about 4 ln(1/delta).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechanisms import validate

_SLACK = 1 + 1e-8  # for float64: log-factorials of size T ln T, to a relative 1e-15
_BISECTIONS = 40


def delta(epsilon: float, step: float, count: int) -> float:
    """An upper bound of the delta at `epsilon` of `count` releases, each `step`-DP."""
    successes = np.arange(count // 2, count + 1)
    logs = np.array([math.lgamma(k + 1) for k in range(count + 1)])
    likely, rare = -math.log1p(math.exp(-step)), -step - math.log1p(math.exp(-step))
    mass = logs[-1] - logs[successes] - logs[count - successes] + successes * likely + (count - successes) * rare
    gain = (2 * successes - count) * step - epsilon
    positive = gain > 0
    return float(np.sum(np.exp(mass[positive]) * -np.expm1(-gain[positive]))) * _SLACK


def step_epsilon(epsilon: Fraction, risk: Fraction, count: int) -> Fraction:
    """The largest epsilon_0 found by bisection, at least epsilon / T, the pure sum."""
    validate.integer("count", count, low=1)
    goal, low = float(epsilon), epsilon / count
    high = epsilon
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(goal, float(middle), count) <= risk else (low, middle)
    return Fraction(math.nextafter(float(low), 0.0)) if low > epsilon / count else low
