"""The least number at which a monotone condition holds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction


def least_enough(enough: Callable[[Fraction], bool], start: Fraction, bisections: int) -> Fraction:
    """A number at which `enough` holds, above the least one by 2^-bisections of it at most; `start` is above 0.

    `enough` is false below some number and true above it.
    """
    low = high = start
    while not enough(high):
        low, high = high, 2 * high
    while enough(low):
        low, high = low / 2, low
    for _ in range(bisections):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
