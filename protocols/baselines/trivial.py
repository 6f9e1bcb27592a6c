"""Constant predictors: a model that predicts no better has learnt nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mechanisms import validate
from protocols.baselines.inputs import checked
from protocols.baselines.model import NOT_PRIVATE, Model, Statement
from protocols.schema import Floats


def zero(d: int) -> Model:
    """Always 0: reads no data, so that it costs nothing."""
    return Model(np.zeros(validate.integer("d", d, low=1)), Statement(Fraction(0), Fraction(0), "no data", "none"))


def mean(x: Floats, y: Floats) -> Model:
    """The exact mean of the labels, not private."""
    features, labels = checked(x, y, "linear")
    return Model(np.zeros(features.shape[1]), NOT_PRIVATE, float(labels.mean()))


def majority(x: Floats, y: Floats) -> Model:
    """The more frequent class, 1 in a tie, as log-odds +1 or -1; not private."""
    features, labels = checked(x, y, "logistic")
    return Model(np.zeros(features.shape[1]), NOT_PRIVATE, 1.0 if labels.mean() >= 0.5 else -1.0)
