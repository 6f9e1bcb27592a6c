"""(epsilon, delta) and zCDP of discrete Gaussian noise on integer vectors, as rigorous bounds in ball arithmetic.

rho = l2^2 / (2 variance) holds as it stands (Canonne, Kamath and Steinke 2020, theorem 14) and converts by

    delta <= exp((a - 1)(a rho - epsilon)) / (a - 1) * (1 - 1/a)^a    for any a > 1 (ibid., proposition 12).

The exact curve of the continuous Gaussian (Balle and Wang 2018),

    delta(epsilon, mu) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu),   mu = l2 / sigma,

is smaller, and it carries over. Let R be the continuous Gaussian rounded to integers (post-processing) and D the
discrete law, both with sigma >= 1. On |k| <= m sigma, R(k) = phi(k) c(k) with exp(-1/(8 sigma^2)) <= c(k) <= cosh(k /
(2 sigma^2)) <= exp(m^2 / (8 sigma^2)), and D(k) = phi(k) / Z with 1 <= Z <= 1 + 3 exp(-2 pi^2 sigma^2) (Poisson
summation), less than exp(1 / (8 sigma^2)). So log R/D is in [-h, (m^2 + 1) h], h = 1/(8 sigma^2), for each of d
coordinates. Outside lie at most t = 2 d exp(-(m - 1/(2 sigma))^2 / 2) of either law. Going from D to R and, on the
other side of the inequality, back: if R is (epsilon, delta), D is (epsilon + d (m^2 + 2) h, e^{d h} (delta +
e^epsilon t) + t).
At ring scale (sigma = 2^20 and more) that costs nothing that can be seen; at small sigma zCDP is the better bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from mechanisms import validate
from mechanisms.enclosure import ball, upper

_PRECISION = 256
_TAIL_BITS = 100  # t is about 2^-100
_LEAST_BITS = 1000  # no delta is told to be less than 2^-1000


@dataclass(frozen=True)
class GaussianLoss:
    """One release: squared L2 sensitivity, variance parameter and number of coordinates of its noise."""

    l2_squared: Fraction
    variance: Fraction
    dimension: int

    def __post_init__(self) -> None:
        validate.positive("l2_squared", validate.fraction("l2_squared", self.l2_squared))
        validate.variance(self.variance)
        validate.integer("dimension", self.dimension, low=1)

    @property
    def rho(self) -> Fraction:
        """The exact zCDP parameter."""
        return self.l2_squared / (2 * self.variance)


@dataclass(frozen=True)
class Transfer:
    """From continuous noise to discrete: (epsilon + extra, growth (delta + e^epsilon tail) + tail)."""

    extra: Fraction
    growth: Fraction
    tail: Fraction

    @classmethod
    def of(cls, losses: Sequence[GaussianLoss]) -> Transfer | None:
        """For releases made together; None if some sigma is below 1."""
        if not losses:
            return cls(Fraction(0), Fraction(1), Fraction(0))
        if any(loss.variance < 1 for loss in losses):
            return None
        coordinates = sum(loss.dimension for loss in losses)
        m = Fraction(math.isqrt(math.ceil(4 * 2 * (_TAIL_BITS * 0.7 + math.log(2 * coordinates)))) + 2, 2)
        h = sum((Fraction(loss.dimension) / (8 * loss.variance) for loss in losses), Fraction(0))
        with ctx.workprec(_PRECISION):
            tail = upper(2 * coordinates * (-ball((m - Fraction(1, 2)) ** 2 / 2)).exp())
            return cls((m * m + 2) * h, upper(ball(h).exp()), tail)

    def delta(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The delta of discrete noise at epsilon + extra."""
        with ctx.workprec(_PRECISION):
            leak = upper(ball(epsilon).exp() * ball(self.tail))
        return self.growth * (delta + leak) + self.tail


def continuous_delta(epsilon: Fraction, mu_squared: Fraction) -> Fraction:
    """An upper bound, within 2^-180, of delta(epsilon, mu) for continuous Gaussian noise."""
    with ctx.workprec(_PRECISION):
        mu, loss = ball(mu_squared).sqrt(), ball(epsilon)
        exact = _phi(mu / 2 - loss / mu) - loss.exp() * _phi(-mu / 2 - loss / mu)
        return upper(exact + arb(2) ** -_LEAST_BITS)  # a bound of 2^(-10^17) would be a number of 10^17 bits


def _phi(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def analytic_delta(epsilon: Fraction, losses: Sequence[GaussianLoss]) -> Fraction:
    """A bound of the delta at `epsilon` of discrete Gaussian releases made together, 1 where the curve says nothing."""
    transfer = Transfer.of(losses)
    if transfer is None or transfer.extra >= epsilon:
        return Fraction(1)
    inner = epsilon - transfer.extra
    mu_squared = sum((2 * loss.rho for loss in losses), Fraction(0))
    return min(Fraction(1), transfer.delta(inner, continuous_delta(inner, mu_squared)))


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """A bound of the epsilon at `delta` that rho-zCDP implies: the best order is found in floats, then proved."""

    def log_epsilon(log_order: float) -> float:
        extra = math.exp(log_order)  # a - 1
        gain = math.log(1 / delta) - log_order - (1 + extra) * math.log1p(1 / extra)
        return (1 + extra) * float(rho) + gain / extra

    low, high = -20.0, 20.0
    for _ in range(100):  # golden section of a function that falls, then rises
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, right) if log_epsilon(left) < log_epsilon(right) else (left, high)
    extra = Fraction(math.exp((low + high) / 2))
    with ctx.workprec(_PRECISION):
        order = ball(1 + extra)
        gain = (1 / ball(delta)).log() - ball(extra).log() + order * (1 - 1 / order).log()
        return max(Fraction(0), upper(order * ball(rho) + gain / ball(extra)))
