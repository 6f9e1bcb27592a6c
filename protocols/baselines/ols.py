"""Ordinary least squares, the solution without privacy."""

from __future__ import annotations

import numpy as np

from protocols.baselines.inputs import checked
from protocols.baselines.model import NOT_PRIVATE, Model
from protocols.schema import Floats


def fit(x: Floats, y: Floats) -> Model:
    """The w of least sum (y - x . w)^2; of least norm where several are, as with collinear columns or n < d."""
    features, labels = checked(x, y, "linear")
    weights = np.asarray(np.linalg.lstsq(features, labels, rcond=None)[0], dtype=np.float64)
    return Model(weights, NOT_PRIVATE)
