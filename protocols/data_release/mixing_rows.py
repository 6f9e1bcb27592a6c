"""How many rows k a random-mixing release has, from public numbers only (paper 2, section 4).

More rows mean a better sketch of the records, fewer mean less noise in all: B D / sqrt(k) keeps its size, each row of
it gets the same noise. With n records, d features, sigma = sqrt(2 ln(1.25 / delta)) / epsilon or the analytic one:

printed   sqrt(n) / sigma: what the source says it took
official  10 sqrt(n) / sigma: what its code took
theorem   sqrt(n d / d_max) / sigma: the rate of its theorem, d_max the most columns of a party
balanced  ours: the fewest rows with an expected error of least squares, below, within a tenth of the least possible

Balanced. A released row is the sum of n / k records, as far as second moments go, with noise of variance v. Let u =
k v / (n s), s the variance of a feature: least squares shrinks the weights by 1 / (1 + u) and has k rows for d
weights. Of a label of variance t, half of which the features explain, the expected squared error beyond the best one is

    t/2 (u / (1 + u))^2  +  d / ((k - d - 1)(1 + u)) (t/2 u / (1 + u) + t/2 + k v_y / n).

Features and label count as uniform on their declared ranges (s and t a twelfth of the squared range): half explained
and uniform is a guess about data that nobody has looked at, not a fact. Where noise drowns everything the error falls
towards t/2, that of predicting nothing, for any large k: the fewest rows are taken that come near.

All in rational numbers: every party decides for itself, and all must come to the same k.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from mechanisms import validate
from smpc.errors import InputError

RULES = ("balanced", "printed", "official", "theorem")
EXPLAINED = Fraction(1, 2)  # of the label's variance, by the features: a guess
_UNIFORM = 12  # variance of a uniform number: range squared by this
_STEP = 150  # candidates for k are this fine: 1/150 apart
_NEARLY = Fraction(11, 10)


def mixing_rows(rule: str, records: int, features: int, *, widest: int, variance: Fraction, noise: Fraction) -> int:
    """k by one of RULES, between features + 2 and `records`.

    `widest`: the most columns of a party, label included. `variance`: sigma^2. `noise`: the mean variance of a released
    entry's noise in units of the squared declared range. Raises InputError for another rule and where no k fits.
    """
    if rule not in RULES:
        raise InputError(f"rows = {rule!r}: must be a whole number or one of {', '.join(RULES)}")
    n, d = validate.integer("records", records, low=1), validate.integer("features", features, low=1)
    least = d + 2
    if n < least:
        raise InputError(f"{n} records for {d} features: a release needs at least {least}")
    if rule == "balanced":
        errors = {k: expected_error(k, n, d, noise) for k in _candidates(least, n)}
        enough = _NEARLY * min(errors.values())
        return next(k for k, error in errors.items() if error <= enough)
    ratio_squared = {"printed": Fraction(1), "official": Fraction(100), "theorem": Fraction(d, widest)}[rule]
    squared = math.ceil(ratio_squared * n / variance)
    return min(max(math.isqrt(squared - 1) + 1, least), n)  # the root, rounded up


def _candidates(least: int, most: int) -> Iterator[int]:
    k = least
    while k < most:
        yield k
        k += max(1, k // _STEP)
    yield most


def expected_error(k: int, n: int, d: int, noise: Fraction) -> Fraction:
    """The error above in units of the label's variance, for a k > d + 1."""
    relative = k * noise * _UNIFORM / n
    shrinking = (relative / (1 + relative)) ** 2 * EXPLAINED
    unexplained = relative / (1 + relative) * EXPLAINED + 1 - EXPLAINED + relative
    return shrinking + d * unexplained / ((k - d - 1) * (1 + relative))
