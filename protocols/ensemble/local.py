"""What one voter does with its own few samples: a regularised linear classifier, its votes, its parameters."""

from __future__ import annotations

import numpy as np

from protocols.ensemble import erm
from protocols.ensemble.tables import Classes
from protocols.schema import Floats

_STEPS = 100
_SMALL = 1e-9  # a margin's last move


def train(x: Floats, y: Classes, classes: int, regularisation: float) -> Floats:
    """The minimiser's weights (width, d) on the rows `x` (n, d), found inside the span of the rows.

    With one class among the samples the classifier still leans to it everywhere.
    """
    basis, coordinates = np.linalg.qr(x.T)
    alpha = y[None] == np.arange(classes)[:, None] if classes > 2 else y[None] == 1
    s = erm.statistic(coordinates.T, alpha.astype(np.float64))
    return np.asarray(erm.minimise(coordinates.T, s, regularisation, certified=False).weights @ basis.T)


def train_many(x: Floats, y: Classes, regularisation: float) -> Floats:
    """The two-class minimisers of many voters at once: x (voters, n, d), y (voters, n) gives (voters, d).

    Newton's method on the coefficients of the rows, w = x' a, each step shortened so that no margin moves by more than
    its logarithm: for votes and averages, which need no certified minimiser.
    """
    n = x.shape[1]
    gram = x @ x.transpose(0, 2, 1)
    a = np.zeros(y.shape)
    for _ in range(_STEPS):
        z = np.einsum("vij,vj->vi", gram, a)
        p = 0.5 * (1 + np.tanh(0.5 * z))
        spread = p * (1 - p)
        system = spread[:, :, None] * gram / n + regularisation * np.eye(n)
        target = (spread * z + y - p) / n
        step = np.linalg.solve(system, target[:, :, None])[:, :, 0] - a
        moved = np.abs(np.einsum("vij,vj->vi", gram, step)).max(axis=1)
        if moved.max() < _SMALL:
            break
        a += step * np.where(moved > 1, np.log1p(moved) / np.maximum(moved, 1), 1.0)[:, None]
    return np.asarray(np.einsum("vnd,vn->vd", x, a))
