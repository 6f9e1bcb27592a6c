"""What all baselines take: x of shape (n, d) with entries in [-1, 1], y of shape (n,), and their integer lattice.

A label is in [-1, 1] for the linear loss and 0 or 1 for the logistic one. There is no intercept: append a column of
ones with `with_ones`, which then counts in d. On the lattice an entry is an integer multiple of 2^-BITS. These integers
are kept in float64, where sums of products are exact, in any order, as long as no partial sum can reach 2^53.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mechanisms import validate
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.enclosure import sqrt_above
from mechanisms.randomness import RandomWords
from protocols.schema import Floats
from smpc.errors import InputError
from smpc.fixedpoint import encode

BITS = 14  # data are rounded to 2^-14: over n rows an error of sqrt(n) 2^-15 at most, beside noise of 1 / epsilon
UNIT = 1 << BITS
LOSSES = ("linear", "logistic")
_EXACT = 2**53
_MARGIN = 1 - 2.0**-40  # float64 scaling to a length, and the length itself, err by less


def checked(x: Floats, y: Floats, loss: str) -> tuple[Floats, Floats]:
    """`x` and `y` as float64 arrays. Raises InputError for shapes, entries or labels outside the ranges above."""
    if loss not in LOSSES:
        raise InputError(f"loss = {loss!r}: need one of {', '.join(LOSSES)}")
    features, labels = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if features.ndim != 2 or 0 in features.shape:
        raise InputError(f"x has shape {features.shape}: need (n, d) with n >= 1 and d >= 1")
    if labels.shape != features.shape[:1]:
        raise InputError(f"y has shape {labels.shape}: need one label a row of x, ({len(features)},)")
    _count_outside("x", ~(np.abs(features) <= 1), "[-1, 1]; scale by public bounds and clip")
    if loss == "linear":
        _count_outside("y", ~(np.abs(labels) <= 1), "[-1, 1]; scale by public bounds and clip")
    else:
        _count_outside("y", (labels != 0) & (labels != 1), "{0, 1}; code the classes so")
    return features, labels


def _count_outside(name: str, outside: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], allowed: str) -> None:
    count = int(np.count_nonzero(outside))
    if count:
        raise InputError(f"{name} has {count} entries outside {allowed}")


def with_ones(x: Floats) -> Floats:
    """`x` with an intercept: a last column of ones, shape (n, d + 1)."""
    return np.hstack([x, np.ones((len(x), 1))])


def on_lattice(values: Floats) -> Floats:
    """The integers round(value 2^BITS), halves away from zero; |value| <= 1 stays within 2^BITS."""
    return encode(values, BITS).astype(np.float64)


def row_bound(norm: object, d: int) -> Fraction:
    """The L2 norm that rows are shortened to: `norm`, or sqrt(d), which no row exceeds."""
    return sqrt_above(d) if norm is None else validate.positive("norm", norm)


def shortened(x: Floats, norm: Fraction) -> Floats:
    """`x` with longer rows scaled to the L2 norm `norm`; a public rule for one record at a time."""
    lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
    limit = float(norm) * _MARGIN
    factors = np.minimum(1.0, limit / np.maximum(lengths, limit))
    scaled: Floats = x * factors[:, None]
    return scaled


def short_rows_on_lattice(x: Floats, norm: Fraction) -> Floats:
    """Integer rows, sum of squares <= (norm 2^BITS)^2: shortened, then rounded towards zero, never longer."""
    return np.trunc(shortened(x, norm) * UNIT)


def check_exact(rows: int, largest: int, what: str) -> None:
    """Refuse sums of `rows` integers up to `largest` that float64 might round."""
    if rows * largest >= _EXACT:
        raise InputError(
            f"n = {rows} rows: {what} could leave the exact integers, at most {(_EXACT - 1) // largest} fit"
        )


def noisy(exact: Floats, noise: DiscreteLaplace | DiscreteGaussian, random: RandomWords) -> Floats:
    """`exact` integers plus a draw each, the shape of `exact`.

    They are added as integers and only the sum is rounded to float64: large noise rounded before would not hide the low
    digits.
    """
    drawn = noise.draw(exact.size, random).reshape(exact.shape)
    return (exact.astype(np.int64) + drawn).astype(np.float64)
