"""Vector noise with density proportional to exp(-|x|_2 / scale), rounded to integers: pure epsilon from an L2 bound.

The length is Gamma(d) times the scale and the direction is uniform (Chaudhuri, Monteleoni and Sarwate 2011; paper 3).
A vector of integers v with L2 sensitivity D gets epsilon = D / scale: v + noise is epsilon-DP in R^d, and rounding each
coordinate commutes with adding the integers v. When v itself was rounded from reals, D grows by sqrt(d)
(`calibration.lattice_l2`).

Exact: length and direction are functions of uniform numbers, evaluated in ball arithmetic on the interval that the
digits drawn so far leave; while some coordinate could round two ways, 64 more digits of every number are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from mechanisms import validate
from mechanisms.enclosure import PRECISION, ball
from mechanisms.randomness import RandomWords

_FIRST_WORDS = 3


@dataclass(frozen=True)
class GammaNorm:
    """Integer vectors: rounded noise of density exp(-|x|_2 / scale); scale in [2^-62, 2^62]."""

    scale: Fraction

    def __post_init__(self) -> None:
        validate.scale(self.scale)

    def __str__(self) -> str:
        return f"rounded L2 gamma-norm, scale {float(self.scale):.6g}"

    def draw(self, count: int, random: RandomWords) -> npt.NDArray[np.int64]:
        """One noise vector of `count` coordinates, shape (count,), modulo 2^64."""
        dimension = validate.integer("count", count)
        if dimension == 0:
            return np.empty(0, np.int64)
        uniforms = _Uniforms(2 * dimension + dimension % 2, random)
        while True:
            with ctx.workprec(uniforms.bits + 64):
                rounded = [_round(x) for x in self._vector(uniforms.intervals(), dimension)]
            if None not in rounded:
                wrapped = [x % 2**64 for x in rounded if x is not None]
                return np.array(wrapped, dtype=np.uint64).view(np.int64)
            uniforms.extend()

    def _vector(self, uniforms: Sequence[arb], dimension: int) -> list[arb]:
        product = arb(1)
        for uniform in uniforms[:dimension]:
            product *= uniform
        normals = []
        for first, second in zip(uniforms[dimension::2], uniforms[dimension + 1 :: 2], strict=True):
            radius = (-2 * first.log()).sqrt()
            sine, cosine = (2 * second).sin_cos_pi()
            normals += [radius * cosine, radius * sine]
        squares = sum((x * x for x in normals[:dimension]), arb(0))
        factor = -product.log() * ball(self.scale) / squares.sqrt()
        return [x * factor for x in normals[:dimension]]

    def standard_deviation(self, dimension: int) -> float:
        """Of each coordinate: the length is Gamma(d), the direction uniform; without the rounding."""
        return float(self.scale) * math.sqrt(validate.integer("dimension", dimension, low=1) + 1)

    def tail(self, probability: Fraction, dimension: int) -> int:
        """The smallest power of two m with P(max |x_i| > m) <= P(length > m - 1/2) <= probability."""
        bound = validate.positive("probability", probability)
        size = arb(validate.integer("dimension", dimension, low=1))
        m = 1
        with ctx.workprec(PRECISION):
            while not (ball(m - Fraction(1, 2)) / ball(self.scale)).gamma_upper(size) / size.gamma() <= ball(bound):
                m *= 2
        return m


class _Uniforms:
    """Uniform numbers in [0, 1), each known to the same number of binary digits."""

    def __init__(self, count: int, random: RandomWords) -> None:
        self._values, self._random, self.bits = [0] * count, random, 0
        for _ in range(_FIRST_WORDS):
            self.extend()

    def extend(self) -> None:
        words = self._random.words(len(self._values)).tolist()
        self._values = [(value << 64) | word for value, word in zip(self._values, words, strict=True)]
        self.bits += 64

    def intervals(self) -> list[arb]:
        """The ball [value, value + 1] / 2^bits of each number."""
        unit = arb(2) ** -self.bits
        return [(arb(2 * value + 1) + arb(0, 1)) * unit / 2 for value in self._values]


def _round(x: arb) -> int | None:
    """The nearest integer of every number in the ball, None if they differ (or the ball is unbounded)."""
    nearest = (x + ball(Fraction(1, 2))).floor().unique_fmpz()
    return None if nearest is None else int(nearest)
