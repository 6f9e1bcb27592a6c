"""Exact Bernoulli draws: vectorised in float64 where that provably suffices, finished in ball arithmetic elsewhere.

A draw compares a uniform number U in [0, 1) with a probability p and answers U < p. The first 64 binary digits of U are
one random word w. The float test looks at its 53 leading digits, u = (w >> 11) 2^-53, for which 0 <= U - u < 2^-53
holds, and at an estimate e of p. If |e - p| <= MARGIN / 2, then

    e - u > MARGIN   implies  U < u + 2^-53 < e - MARGIN / 2 <= p : the answer is True;
    u - e > MARGIN   implies  U >= u > e + MARGIN > p             : the answer is False;

where e - u, a float64 subtraction of numbers in [0, 1], is wrong by at most 2^-54 and MARGIN / 2 = 2^-41 absorbs that
as well. In the remaining cases (2^-39 of them) further words extend U and p is enclosed by an arb ball of growing
precision until the interval of U and the ball are disjoint. So the law is exactly p, given uniform words and
|e - p| <= 2^-41; each caller proves that bound for its estimate. NumPy's exp is taken to be good to 2^-48 relative
(documented as under 4 units in the last place, 2^-50), 64 times worse than it need be.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from mechanisms.enclosure import ball
from mechanisms.randomness import RandomWords

MARGIN = 2.0**-40

Ball = Callable[[], arb]  # an enclosure of one probability in the working precision; exact as that precision grows


class Uniform:
    """One uniform number in [0, 1), known to the digits drawn so far: it lies in [value, value + 1) / 2^bits."""

    def __init__(self, word: int, random: RandomWords) -> None:
        self.value, self.bits, self._random = word, 64, random

    def below(self, probability: Ball) -> bool:
        """Whether the number is below the probability. Later calls compare the same number."""
        while True:
            with ctx.workprec(self.bits + 64):
                scaled = probability() * arb(2) ** self.bits
                if scaled >= self.value + 1:
                    return True
                if scaled <= self.value:
                    return False
            self.value = (self.value << 64) | int(self._random.words(1)[0])
            self.bits += 64


def fractions_of(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The 53 leading binary digits of each uniform number, as the exact float64 in [0, 1)."""
    digits: npt.NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64)
    return digits * 2.0**-53


def bernoulli_near(
    estimate: npt.NDArray[np.float64], probability: Callable[[int], arb], random: RandomWords
) -> npt.NDArray[np.bool_]:
    """Independent draws, the i-th true with exactly `probability(i)`, shape of `estimate` (count,).

    `estimate[i]` has to be within 2^-41 of `probability(i)`, which encloses it in the working precision.
    """
    words = random.words(len(estimate))
    gap = estimate - fractions_of(words)
    result = gap > 0
    for i in np.flatnonzero(np.abs(gap) <= MARGIN).tolist():
        result[i] = Uniform(int(words[i]), random).below(partial(probability, i))
    return result


def bernoulli(probability: Fraction, count: int, random: RandomWords) -> npt.NDArray[np.bool_]:
    """`count` independent draws, each true with exactly the rational `probability`, shape (count,).

    Raises ValueError outside [0, 1]. The correctly rounded quotient is within 2^-54 of the probability.
    """
    if not 0 <= probability <= 1:
        raise ValueError(f"probability={probability} is outside [0, 1]: give a fraction in that range")
    return bernoulli_near(np.full(count, float(probability)), lambda _: ball(probability), random)


def bernoulli_exp(exponent: Fraction, count: int, random: RandomWords) -> npt.NDArray[np.bool_]:
    """`count` independent draws, each true with probability exp(-exponent), exponent >= 0, shape (count,).

    Rounding x = exponent moves exp(-x) by at most x exp(-x) 2^-53 < 2^-54; the function itself adds 2^-48.
    """
    if exponent < 0:
        raise ValueError(f"exponent={exponent} is negative: exp(-exponent) would exceed 1")
    estimate = np.exp(-np.full(count, float(min(exponent, Fraction(1 << 20)))))  # beyond 2^20 both are under 2^-41
    return bernoulli_near(estimate, lambda _: (-ball(exponent)).exp(), random)


def uniform_integers(bound: int, count: int, random: RandomWords) -> npt.NDArray[np.int64]:
    """`count` independent integers, uniform on 0 .. bound - 1, shape (count,); bound <= 2^62. By rejection."""
    mask = np.uint64((1 << (bound - 1).bit_length()) - 1)
    chunks, missing = [np.empty(0, np.int64)], count
    while missing > 0:
        candidates = (random.words(64 + 2 * missing) & mask).view(np.int64)
        chunks.append(candidates[candidates < bound][:missing])
        missing -= len(chunks[-1])
    return np.concatenate(chunks)
