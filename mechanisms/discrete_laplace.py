"""The discrete Laplace law over the integers, drawn exactly.

    P(X = x) = (e^{1/t} - 1) / (e^{1/t} + 1) * e^{-|x|/t},   t = scale, any rational.

The magnitude is geometric, P(G = g) = (1 - q) q^g with q = e^{-1/t}; a fair sign is added and (minus, 0) is drawn again
so that zero is not counted twice (Canonne, Kamath and Steinke 2020, algorithm 2). For a power of two L, the largest one
<= max(t, 1), G = U + L V with U in [0, L) and V >= 0 independent, P(U = u) ~ q^u and P(V >= v) = r^v, r = q^L:
U is a uniform log2(L)-bit number kept with probability q^u, V counts the v >= 1 for which one uniform number is below
r^v. Nothing but e^{-u/t} and e^{-vL/t} is ever evaluated.

Float margin (bernoulli.py asks for 2^-41). The exponents x = u/t < 1 and x = vL/t come from correctly rounded
conversions and one division, so their relative error is below 2^-51; e^{-x} moves by at most x e^{-x} 2^-51 < 2^-52,
and the evaluation of exp adds 2^-48: together below 2^-47.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from mechanisms import bernoulli, validate
from mechanisms.bernoulli import Uniform, bernoulli_near, fractions_of
from mechanisms.enclosure import ball
from mechanisms.randomness import RandomWords

CHUNK = 1 << 15  # proposals at once: the temporaries stay in the cache
_SIGN = np.uint64(63)


class Parts(NamedTuple):
    """Accepted draws before they are put together: magnitude = low + 2^shift * high, shapes (n,)."""

    negative: npt.NDArray[np.bool_]
    low: npt.NDArray[np.uint64]
    high: npt.NDArray[np.uint64]
    shift: int

    def values(self) -> npt.NDArray[np.int64]:
        """The signed values modulo 2^64, in two's complement."""
        magnitude = self.low + (self.high << np.uint64(self.shift))
        values: npt.NDArray[np.int64] = np.where(self.negative, -magnitude, magnitude).view(np.int64)
        return values


@dataclass(frozen=True)
class DiscreteLaplace:
    """Integer noise with density proportional to exp(-|x| / scale); scale in [2^-62, 2^62]."""

    scale: Fraction

    def __post_init__(self) -> None:
        validate.scale(self.scale)

    def __str__(self) -> str:
        return f"discrete Laplace, scale {float(self.scale):.6g}"

    def draw(self, count: int, random: RandomWords) -> npt.NDArray[np.int64]:
        """`count` independent draws, shape (count,). A tail beyond 64 bits is reduced modulo 2^64."""
        validate.integer("count", count)
        chunks, missing = [np.empty(0, np.int64)], count
        while missing > 0:
            chunks.append(self.draw_parts(min(CHUNK, 64 + 2 * missing), random).values()[:missing])
            missing -= len(chunks[-1])
        return np.concatenate(chunks)

    def draw_parts(self, candidates: int, random: RandomWords) -> Parts:
        """The accepted among `candidates` independent proposals (half of them or more), with magnitudes of any size."""
        shift = max(0, math.floor(self.scale).bit_length() - 1)
        words = random.words(candidates)
        low, negative = words & np.uint64((1 << shift) - 1), (words >> _SIGN).astype(np.bool_)
        if shift:
            keep = bernoulli_near(np.exp(-(low / float(self.scale))), lambda i: self._decay(int(low[i])), random)
            low, negative = low[keep], negative[keep]
        high = self._blocks(len(low), 1 << shift, random)
        keep = ~(negative & (low == 0) & (high == 0))
        return Parts(negative[keep], low[keep], high[keep], shift)

    def _decay(self, distance: int) -> arb:
        return (-ball(distance / self.scale)).exp()

    def _blocks(self, count: int, width: int, random: RandomWords) -> npt.NDArray[np.uint64]:
        """Geometric draws V with P(V >= v) = exp(-v width / scale), shape (count,)."""
        rate, margin = float(width / self.scale), bernoulli.MARGIN
        # Thresholds e^{-v rate} above 4 margins, doubt around each of them, and below 5 margins for all the others.
        thresholds = np.exp(-rate * np.arange(1, 2 + math.floor(-math.log(4 * margin) / rate)))
        thresholds = thresholds[thresholds > 4 * margin][::-1]
        edges = np.concatenate([[5 * margin], np.column_stack([thresholds - margin, thresholds + margin]).ravel()])
        words = random.words(count)
        position = np.searchsorted(np.maximum.accumulate(edges), fractions_of(words), side="right")
        high = len(thresholds) - (position >> 1)
        for i in np.flatnonzero(position % 2 == 0).tolist():
            high[i] = self._count_blocks(Uniform(int(words[i]), random), width)
        return high.astype(np.uint64)

    def _count_blocks(self, uniform: Uniform, width: int) -> int:
        count = 0
        while uniform.below(partial(self._decay, (count + 1) * width)):
            count += 1
        return count

    def tail(self, probability: Fraction) -> int:
        """The smallest m with P(|X| > m) = 2 q^(m+1) / (1 + q) <= probability, q = exp(-1 / scale).

        Decided in ball arithmetic. It ends: q is transcendental, so that equality with a rational is impossible.
        """
        probability = validate.positive("probability", probability)
        if probability >= 1:
            return 0
        precision = 128
        while True:
            with ctx.workprec(precision):
                decay = self._decay(1)
                exceeded = (ball(self.scale) * (2 / (ball(probability) * (1 + decay))).log()).ceil().unique_fmpz()
            if exceeded is not None:
                return max(0, int(exceeded) - 1)
            precision *= 2

    @property
    def standard_deviation(self) -> float:
        half = float(1 / (2 * self.scale))
        return math.sqrt(2) * math.exp(-half) / -math.expm1(-2 * half)
