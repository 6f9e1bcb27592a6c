"""Ball arithmetic helpers: rationals in, rigorous rational upper bounds out."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, ctx, fmpq

PRECISION = 128  # bits; bounds are at most a relative 2^-100 above the true value


def ball(value: Fraction | int) -> arb:
    """An enclosure of a rational number in the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def upper(enclosure: arb) -> Fraction:
    """The exact upper end of a ball."""
    mantissa, exponent = enclosure.upper().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def sqrt_above(value: Fraction | int) -> Fraction:
    """A rational >= the square root of `value` >= 0, exact for squares of integers."""
    with ctx.workprec(PRECISION):
        return upper(ball(value).sqrt())
