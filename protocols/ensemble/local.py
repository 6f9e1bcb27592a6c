"""What one voter does with its own few samples: a regularised linear classifier, its votes, its parameters."""

from __future__ import annotations

import numpy as np

from protocols.ensemble import erm
from protocols.ensemble.tables import Classes
from protocols.schema import Floats


def train(x: Floats, y: Classes, classes: int, regularisation: float) -> Floats:
    """The minimiser's weights (width, d) on the rows `x` (n, d), found inside the span of the rows.

    With one class among the samples the classifier still leans to it everywhere.
    """
    basis, coordinates = np.linalg.qr(x.T)
    alpha = y[None] == np.arange(classes)[:, None] if classes > 2 else y[None] == 1
    s = erm.statistic(coordinates.T, alpha.astype(np.float64))
    return np.asarray(erm.minimise(coordinates.T, s, regularisation, certified=False).weights @ basis.T)
