"""L2 sensitivity of sum_i (votes on sample i) (x) (its public integer row X_i) when one voter is replaced.

A voter gives one vote a sample. S = sum_i c_i (x) X_i, c_i the counts of sample i: replacing a voter changes S by
sum_i a_i (x) X_i, where with two classes a_i (of the counts of class 1) is -1, 0 or 1, and with more classes a_i is 0
or the difference of two unit vectors. Two bounds hold, and the smaller one is taken:

- triangle inequality: sum_i |X_i| (two classes), sqrt 2 sum_i |X_i| (more). Attained by rows of one direction.
- operator norm: |A' X|_F <= |A|_F |X|_2 with |A|_F <= sqrt N (two classes), sqrt(2 N) (more), A having the rows a_i,
  |X|_2^2 = largest eigenvalue of G = X'X <= trace(G^k)^(1/k) for every k. Attained by orthogonal rows of one length.

X are the integers that are really multiplied, so nothing is rounded afterwards. Source: paper 3 (Hamm, Cao, Belkin)
releases minimisers; that the votes enter a logistic or softmax loss through S alone is in `protocols.ensemble`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpz_mat

from mechanisms import validate
from mechanisms.enclosure import PRECISION, ball, upper

_SQUARINGS = 6  # trace(G^64): at most a factor d^(1/128) above the operator norm


def vote_statistic(rows: npt.NDArray[np.int64], classes: int) -> Fraction:
    """A rational upper bound of the L2 sensitivity; `rows` has shape (N, d), their Gram matrix fits into 64 bits."""
    return min(by_lengths(rows, classes), by_operator_norm(rows, classes))


def by_lengths(rows: npt.NDArray[np.int64], classes: int) -> Fraction:
    """sum_i |X_i|, times sqrt 2 with more than two classes."""
    squares = np.einsum("ij,ij->i", _checked(rows), rows)
    with ctx.workprec(PRECISION):
        return upper(_moved(classes) * sum((arb(int(square)).sqrt() for square in squares), arb(0)))


def by_operator_norm(rows: npt.NDArray[np.int64], classes: int) -> Fraction:
    """sqrt N |X|_2, times sqrt 2 with more than two classes."""
    gram = fmpz_mat((_checked(rows).T @ rows).tolist())
    power = 1
    for _ in range(_SQUARINGS):
        gram, power = gram * gram, 2 * power
    trace = sum((int(gram[i, i]) for i in range(gram.nrows())), 0)
    if not trace:
        return Fraction(0)
    with ctx.workprec(PRECISION):
        return upper(_moved(classes) * arb(len(rows)).sqrt() * (ball(trace).log() / (2 * power)).exp())


def _moved(classes: int) -> arb:
    """How far one sample's counts move, in L2, when one vote changes; the count of class 1 alone if there are two."""
    return arb(1 if validate.integer("classes", classes, low=2) == 2 else 2).sqrt()


def _checked(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if rows.ndim != 2 or 0 in rows.shape or rows.dtype != np.int64:
        raise ValueError(f"rows are {rows.dtype} {rows.shape}: give int64 of shape (N, d), N and d at least 1")
    most = max(int(rows.max()), -int(rows.min()))
    if len(rows) * most * most >= 2**63 or rows.shape[1] * most * most >= 2**63:
        raise ValueError(f"rows of up to {most} leave 64 bits over {rows.shape} products: use fewer bits")
    return rows
