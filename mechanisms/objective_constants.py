"""The L1 constants of the functional mechanism as paper 1 (and the original, VLDB 2012) state them.

They count the coefficients of the objective, columns (features, with the intercept among them) real in [-1, 1], label
in [-1, 1] (linear) or {0, 1} (logistic), and double the largest L1 norm of one record's coefficients. d is the number
of columns after one-hot coding. `ordered` counts x_a x_b and x_b x_a both, as the papers do; releasing each such sum
once and doubling it afterwards needs the unordered constant, about half of it for large d.
Party 1 holds the label. Our own protocols use `moments`, with exact integer sensitivities; these are for comparison
and for the papers' modes.
"""

from __future__ import annotations

from fractions import Fraction

from mechanisms import validate


def linear(d: int, *, label_square: bool = False, ordered: bool = True) -> Fraction:
    """2 (2 d + d^2), or 2 (2 d + d (d + 1) / 2) unordered; 2 more when sum y^2 is released too (2 (d + 1)^2)."""
    return 2 * (2 * d + _pairs(d, ordered) + label_square)


def logistic(d: int, *, ordered: bool = True) -> Fraction:
    """d + d^2 / 4, or d + d (d + 1) / 8 unordered: coefficients (1/2 - y) x_a and x_a x_b / 8."""
    return d + _pairs(d, ordered) / 4


def linear_party(d: int, held: int, *, label: bool, label_square: bool = False) -> Fraction:
    """The constant of the coefficients that depend on a party with `held` columns, and the label if `label`."""
    touched = _touched(d, held)
    if label:
        return 2 * (label_square + 2 * d + touched)
    return 2 * (2 * held + touched)


def logistic_party(d: int, held: int, *, label: bool) -> Fraction:
    """Delta^1 = d + d^1 (2d - d^1) / 4 with the label, Delta^k = d^k + d^k (2d - d^k) / 4 without."""
    return (d if label else held) + _touched(d, held) / 4


def linear_block(held: int, *, label: bool, label_square: bool = False) -> Fraction:
    """Bottom-up noise, the block of one party alone: 2 (2 d^1 + (d^1)^2) with the label, 2 (d^k)^2 without."""
    return 2 * (label * 2 * held + _pairs(held, True) + (label and label_square))


def logistic_block(held: int, *, label: bool) -> Fraction:
    """d^1 + (d^1)^2 / 4 with the label, (d^k)^2 / 4 without."""
    return label * held + _pairs(held, True) / 4


def linear_cross_block(first: int, second: int, *, label: bool) -> Fraction:
    """Bottom-up noise, the block of two parties: 4 d^k d^l, and 4 d^k more when the first holds the label."""
    return Fraction(4 * _width(first) * _width(second) + label * 4 * second)


def logistic_cross_block(first: int, second: int, *, label: bool) -> Fraction:
    """d^k d^l / 2, and d^l more when the first holds the label."""
    return Fraction(_width(first) * _width(second), 2) + label * second


def _width(columns: int) -> int:
    return validate.integer("columns", columns)


def _pairs(d: int, ordered: bool) -> Fraction:
    return Fraction(_width(d) ** 2 if ordered else _width(d) * (d + 1) // 2)


def _touched(d: int, held: int) -> Fraction:
    """Ordered pairs of columns with at least one at the party: d^2 - (d - held)^2."""
    if not 0 <= _width(held) <= _width(d):
        raise ValueError(f"held={held} is outside [0, {d}]: a party holds some of the d={d} columns")
    return Fraction(held * (2 * d - held))
