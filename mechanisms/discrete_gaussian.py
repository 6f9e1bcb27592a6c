"""The discrete Gaussian law over the integers, drawn exactly.

    P(X = x) proportional to exp(-x^2 / (2 sigma^2)),   sigma^2 = variance parameter, any rational.

Canonne, Kamath and Steinke 2020, algorithm 3: with t = floor(sigma) + 1, propose Y from the discrete Laplace law of
scale t and keep it with probability exp(-(|Y| - sigma^2 / t)^2 / (2 sigma^2)).

Float margin (bernoulli.py asks for 2^-41). With a = sigma^2 / t and z = (|Y| - a) / sigma the estimate is exp(-z^2 /
2). |Y|, a and 1 / sigma carry relative errors up to 2^-52, so z is off by at most ((|Y| + a) / sigma) 2^-52 + |z|
2^-51, which is below (2 + 3 |z|) 2^-52 because a <= sigma. That moves exp(-z^2 / 2) by at most |z| (2 + 3 |z|)
exp(-z^2 / 2) 2^-52 < 2^-50; squaring adds less than 2^-53 and exp 2^-48: together below 2^-47.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from mechanisms import validate
from mechanisms.bernoulli import bernoulli_near
from mechanisms.discrete_laplace import CHUNK, DiscreteLaplace, Parts
from mechanisms.enclosure import PRECISION, ball, upper
from mechanisms.randomness import RandomWords


@dataclass(frozen=True)
class DiscreteGaussian:
    """Integer noise with mass proportional to exp(-x^2 / (2 variance)); variance in [2^-124, 2^124]."""

    variance: Fraction

    def __post_init__(self) -> None:
        validate.variance(self.variance)

    def __str__(self) -> str:
        return f"discrete Gaussian, sigma {math.sqrt(self.variance):.6g}"

    def draw(self, count: int, random: RandomWords) -> npt.NDArray[np.int64]:
        """`count` independent draws, shape (count,). A tail beyond 64 bits is reduced modulo 2^64."""
        validate.integer("count", count)
        proposal = DiscreteLaplace(Fraction(math.isqrt(math.floor(self.variance)) + 1))
        chunks, missing = [np.empty(0, np.int64)], count
        while missing > 0:
            parts = proposal.draw_parts(min(CHUNK, 64 + 4 * missing), random)
            chunks.append(parts.values()[self._keep(parts, proposal.scale, random)][:missing])
            missing -= len(chunks[-1])
        return np.concatenate(chunks)

    def _keep(self, parts: Parts, scale: Fraction, random: RandomWords) -> npt.NDArray[np.bool_]:
        centre = self.variance / scale
        magnitude = parts.low + 2.0**parts.shift * parts.high
        z = (magnitude - float(centre)) * (1 / math.sqrt(self.variance))

        def probability(i: int) -> arb:
            distance = int(parts.low[i]) + (int(parts.high[i]) << parts.shift) - centre
            return (-ball(distance**2 / (2 * self.variance))).exp()

        return bernoulli_near(np.exp(z * z * -0.5), probability, random)

    def tail(self, probability: Fraction) -> int:
        """An m with P(|X| > m) <= 2 exp(-m^2 / (2 variance)) <= probability: the law is sub-Gaussian."""
        bound = validate.positive("probability", probability)
        if bound >= 1:
            return 0
        with ctx.workprec(PRECISION):
            return math.ceil(upper((2 * ball(self.variance) * (2 / ball(bound)).log()).sqrt()))

    @property
    def standard_deviation(self) -> float:
        """Of the law itself; it differs from the square root of the parameter only when that is small."""
        if self.variance > 16:
            return math.sqrt(self.variance)
        weights = [math.exp(-float(x * x / (2 * self.variance))) for x in range(64)]
        total = 2 * math.fsum(weights) - 1
        return math.sqrt(2 * math.fsum(x * x * weight for x, weight in enumerate(weights)) / total)
