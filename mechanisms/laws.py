"""Does noise follow its law? One test over all draws, with a p-value that may be compared with 1e-9.

Three questions are asked and the smallest p-value is multiplied by three (Bonferroni): a chi-square over bins of equal
probability, the share of even values, the share of zeros. The last two see what bins are blind to: noise on a coarser
lattice, a zero drawn twice as often, a zero that never comes. scipy is imported on use, it takes a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Law:
    """An integer law: its distribution function P(X <= x) and the probabilities of an even value and of zero."""

    cdf: Callable[[int], float]
    even: float
    zero: float

    def quantile(self, probability: float) -> int:
        """The smallest integer x with P(X <= x) >= probability, found by bisection over 64-bit integers."""
        low, high = -(2**63), 2**63 - 1
        while low < high:
            middle = (low + high) // 2
            if self.cdf(middle) >= probability:
                high = middle
            else:
                low = middle + 1
        return low


def table_law(support: Integers, probabilities: npt.NDArray[np.float64]) -> Law:
    """The law of a finite table: increasing integers and their probabilities, which are normalised; shapes (k,)."""
    probabilities = probabilities / math.fsum(probabilities)
    below = np.concatenate([[0.0], np.cumsum(probabilities)])
    return Law(
        cdf=lambda x: float(below[np.searchsorted(support, x, side="right")]),
        even=math.fsum(probabilities[support % 2 == 0]),
        zero=math.fsum(probabilities[support == 0]),
    )


def discrete_laplace_law(scale: Fraction) -> Law:
    """The law of DiscreteLaplace(scale), in closed form and good for any scale."""
    rate = float(1 / scale)
    q, gap = math.exp(-rate), -math.expm1(-rate)  # gap = 1 - q without cancellation

    def cdf(x: int) -> float:
        if x < 0:
            return math.exp(x * rate) / (1 + q)
        return 1 - q * math.exp(-x * rate) / (1 + q)

    return Law(cdf, even=(1 + q * q) / (1 + q) ** 2, zero=gap / (1 + q))


def law_p_value(values: Integers, law: Law, bins: int = 32) -> float:
    """The p-value of `values`, shape (n,), being independent draws from `law`; fail a sampler under 1e-9."""
    from scipy import stats

    edges = sorted({law.quantile(k / bins) for k in range(1, bins)})
    inside = np.searchsorted(np.array(edges), values, side="left")
    expected = np.diff([0.0, *(law.cdf(edge) for edge in edges), 1.0]) * len(values)
    counts, expected = _merge_rare(np.bincount(inside, minlength=len(expected)), expected)
    found = (
        [float(stats.chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1))] if len(counts) > 1 else []
    )
    for event, probability in ((values % 2 == 0, law.even), (values == 0, law.zero)):
        found.append(float(stats.binomtest(int(event.sum()), len(values), min(probability, 1.0)).pvalue))
    return min(1.0, len(found) * min(found))


def _merge_rare(counts: Integers, expected: npt.NDArray[np.float64]) -> tuple[Integers, npt.NDArray[np.float64]]:
    """Joins neighbouring bins until each expects five draws or more, as the chi-square approximation asks."""
    starts, total = [0], 0.0
    for i, value in enumerate(expected):
        if total >= 5 and expected[i:].sum() >= 5:
            starts.append(i)
            total = 0.0
        total += value
    return np.add.reduceat(counts, starts), np.add.reduceat(expected, starts)
