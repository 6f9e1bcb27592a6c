"""What a baseline returns: a linear score and what it costs in privacy. One trusted curator holds all columns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.guarantee import INFINITE
from mechanisms.neighbours import Neighbours, ReplaceRecord
from protocols.schema import Floats


@dataclass(frozen=True)
class Statement:
    """(epsilon, delta) of the model, as in a row of a `Guarantee`, for whoever sees the model and nothing else."""

    epsilon: Fraction | float
    delta: Fraction
    mechanism: str
    accountant: str
    neighbours: Neighbours = ReplaceRecord()  # noqa: RUF009  # a frozen value without state


NOT_PRIVATE = Statement(INFINITE, Fraction(0), "no noise", "none")


@dataclass(frozen=True)
class Model:
    """score = x . weights + constant: the label, or (logistic) the log-odds of label 1. weights: shape (d,)."""

    weights: Floats
    statement: Statement
    constant: float = 0.0

    def score(self, x: Floats) -> Floats:
        """Scores of the rows of `x`, shape (n,)."""
        scores: Floats = np.asarray(x, dtype=np.float64) @ self.weights + self.constant
        return scores
