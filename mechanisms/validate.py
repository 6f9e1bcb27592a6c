"""Checks at every door: one line that names the parameter, the value, the allowed range and the fix.

Numbers from users become exact fractions of their decimal text, so 0.1 means 1/10 and not the nearest binary float.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TypeGuard

import numpy as np

WEAK_EPSILON = 50
SCALE_RANGE = (Fraction(1, 2**62), Fraction(2**62))
_LONGEST = 40
_LARGE_EXPONENT = re.compile(r"[eE][+-]?[\d_]{3}")
_WRITTEN = re.compile(r"[0-9]{1,1000}(/[0-9]{1,1000})?")


def _is_integer(value: object) -> TypeGuard[int | np.integer]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def exact(name: str, value: object) -> Fraction:
    """`value` (int, float, decimal text or Fraction) as the exact fraction of its decimal text.

    Raises TypeError for another type (bool included) and ValueError for NaN, infinities and unreadable text, for
    integers of more than 100 digits, and for text that is long or whose exponent is: "1e99999999" would take minutes.
    """
    if isinstance(value, Fraction):
        return value
    if _is_integer(value):
        number = Fraction(int(value))
        if abs(number) >= 10**100:
            raise ValueError(f"{name}={short(number)} has more than 100 digits: give a smaller number")
        return number
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name}={value} is not finite: give a finite number")
        return Fraction(repr(float(value)))
    if isinstance(value, str):
        if len(value) > _LONGEST or _LARGE_EXPONENT.search(value):
            raise ValueError(
                f"{name}={value!r:.60} has more than {_LONGEST} characters, or two digits of exponent: shorten it"
            )
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{name}={value!r} is no finite number: write it like '0.1' or '1/10'") from None
    raise TypeError(f"{name}={value!r} is a {type(value).__name__}: give an int, float, decimal text or Fraction")


def written(text: object) -> Fraction:
    """A Fraction of at least 0 from what `str` has made of it. Raises ValueError for anything else.

    From digits alone: an exponent could make a number of any size.
    """
    if isinstance(text, str) and _WRITTEN.fullmatch(text):
        with suppress(ZeroDivisionError):
            return Fraction(text)
    raise ValueError(f"{text!r:.60} is no number: it must be digits, like '10' or '1/10'")


def fraction(name: str, value: object) -> Fraction:
    """`value` if it is a Fraction already. Where a number is kept, a float would hide a rounding."""
    if not isinstance(value, Fraction):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}: give a fractions.Fraction")
    return value


def positive(name: str, value: object) -> Fraction:
    """`value` as an exact fraction above zero."""
    number = exact(name, value)
    if number <= 0:
        raise ValueError(f"{name}={value} is not above 0: give a positive number")
    return number


def epsilon(value: object, *, allow_weak: bool = False) -> Fraction:
    """A finite epsilon > 0; above 50 it protects nobody and has to be asked for with `allow_weak`."""
    number = positive("epsilon", value)
    if number > WEAK_EPSILON and not allow_weak:
        raise ValueError(
            f"epsilon={value} is above {WEAK_EPSILON}, too weak to protect: lower it or set allow_weak=True"
        )
    return number


def delta(value: object) -> Fraction:
    """A delta strictly between 0 and 1."""
    number = exact("delta", value)
    if not 0 < number < 1:
        raise ValueError(f"delta={value} is not in (0, 1): give less than one over the number of protected units")
    return number


def scale(value: object) -> Fraction:
    """The scale of an integer sampler: a Fraction in [2^-62, 2^62]."""
    number = fraction("scale", value)
    low, high = SCALE_RANGE
    if not low <= number <= high:
        raise ValueError(f"scale={short(number)} is outside [2^-62, 2^62]: lower the precision or raise epsilon")
    return number


def variance(value: object) -> Fraction:
    """The variance of an integer sampler: a Fraction in [2^-124, 2^124]."""
    number = fraction("variance", value)
    low, high = SCALE_RANGE
    if not low**2 <= number <= high**2:
        raise ValueError(f"variance={short(number)} is outside [2^-124, 2^124]: lower the precision or raise epsilon")
    return number


def integer(name: str, value: object, *, low: int = 0) -> int:
    """An integer (no bool) of at least `low`."""
    if not _is_integer(value):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}: give an integer")
    number = int(value)
    if number < low:
        raise ValueError(f"{name}={number} is below {low}: give at least {low}")
    return number


def short(number: Fraction) -> str:
    """A few digits of any fraction; its exponent may exceed that of a float."""
    with localcontext() as context:
        context.prec = 6
        return str(Decimal(number.numerator) / Decimal(number.denominator))
