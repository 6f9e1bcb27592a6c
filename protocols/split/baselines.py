"""Perturbed gradients without a privacy proof, for comparison: what is added depends on the batch's true labels.

Label parties of this kind train h on the true labels and change only the gradients that they send, as in Li et al.
2022: the transcript's later messages hold the labels again.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from torch import nn

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.randomness import RandomWords
from protocols.schema import Floats
from protocols.split.observed import ObservedSide, Seen
from protocols.split.perturb import on_lattice
from protocols.split.plan import Plan, Rows
from protocols.split.sides import Floats32
from smpc.ring import Integers

_UNIT = 1 << 20
Change = Callable[[Floats, Integers, RandomWords], Floats]  # gradients (b, d), labels (b,), words: gradients (b, d)


def isotropic_gaussian(ratio: float) -> Change:
    """Each coordinate gets N(0, (ratio max ||g||)^2 / d), the largest norm of the batch (Li et al.)."""

    def change(g: Floats, labels: Integers, random: RandomWords) -> Floats:
        deviation = ratio * np.linalg.norm(g, axis=1).max() / np.sqrt(g.shape[1])
        return np.asarray(g + deviation * normals(g.size, random).reshape(g.shape))

    return change


def max_norm(g: Floats, labels: Integers, random: RandomWords) -> Floats:
    """Each gradient times 1 + N(0, max^2 / ||g||^2 - 1): all norms alike in mean square (Li et al.)."""
    lengths = np.linalg.norm(g, axis=1)
    ratio = np.divide(lengths.max(), lengths, out=np.ones_like(lengths), where=lengths > 0)
    return np.asarray(g * (1 + np.sqrt(np.maximum(ratio**2 - 1, 0)) * normals(len(g), random))[:, None])


def marvell(scale: float) -> Change:
    """Gaussian noise for each class, along the difference of the class means and across it, that makes the two classes'
    gradients as alike (sum of KL divergences) as power scale ||difference||^2 allows. Batches of one class stay."""

    def change(g: Floats, labels: Integers, random: RandomWords) -> Floats:
        positive = labels == 1
        if positive.all() or not positive.any():
            return g
        difference = g[positive].mean(axis=0) - g[~positive].mean(axis=0)
        square, d = float(difference @ difference), g.shape[1]
        spreads = [float(g[side].var(axis=0).mean()) for side in (~positive, positive)]
        along, across = marvell_variances(d, spreads[0], spreads[1], square, float(positive.mean()), scale * square)
        own_along, own_across = along[labels], across[labels]
        unit = difference / max(np.sqrt(square), np.finfo(np.float64).tiny)
        extra = np.sqrt(np.maximum(own_along - own_across, 0)) * normals(len(g), random)
        noise = np.sqrt(own_across)[:, None] * normals(g.size, random).reshape(g.shape)
        return np.asarray(g + noise + extra[:, None] * unit)

    return change


def marvell_objective(x: Floats, d: int, u: float, v: float, square: float) -> float:
    """Twice the sum of both KL divergences plus 2 d; x = variances (l10, l11, l20, l21), along and across, by class.

    u and v are the mean coordinate variances of the negatives' and the positives' gradients.
    """
    l10, l11, l20, l21 = x
    across = (l20 + u) / (l21 + v)
    along = (l10 + u + square) / (l11 + v) + (l11 + v + square) / (l10 + u)
    return float((d - 1) * (across + 1 / across) + along)


def marvell_variances(
    d: int, u: float, v: float, square: float, positives: float, power: float
) -> tuple[Floats, Floats]:
    """The best noise variances of (negatives, positives), along and across, at a mean power of at most `power`."""
    from scipy.optimize import minimize

    if square <= 0 or power <= 0:
        return np.zeros(2), np.zeros(2)
    shares = np.array([1 - positives, positives, (d - 1) * (1 - positives), (d - 1) * positives])
    floor = 1e-3  # keeps the search's steps in proportion where a class does not vary at all

    def objective(x: Floats) -> float:  # in units of `square`
        return marvell_objective(x, d, max(u / square, floor), max(v / square, floor), 1.0)

    budget = power / square
    constraints = [
        {"type": "ineq", "fun": lambda x: budget - shares @ x},
        {"type": "ineq", "fun": lambda x: x[0] - x[2]},
        {"type": "ineq", "fun": lambda x: x[1] - x[3]},
    ]
    best = None
    for part in (0.1, 0.5, 0.9):  # of the power for the rarer class
        start = np.array([budget * (1 - part) / (1 - positives), budget * part / positives, 0, 0]) * 0.9
        found = minimize(objective, start, bounds=[(0, None)] * 4, constraints=constraints, method="SLSQP")
        if np.isfinite(found.fun) and (best is None or found.fun < best.fun):
            best = found
    x = np.zeros(4) if best is None else np.maximum(best.x, 0) * square
    return x[:2], x[2:]


def normals(count: int, random: RandomWords) -> Floats:
    """Standard normal numbers in units of 2^-20, shape (count,)."""
    return DiscreteGaussian(Fraction(_UNIT**2)).draw(count, random) / _UNIT


class ChangedSide(ObservedSide):
    """Trains on true labels, changes what it sends."""

    def __init__(self, network: nn.Module, labels: Integers, plan: Plan, change: Change, random: RandomWords) -> None:
        super().__init__(network, on_lattice(labels, plan.classes, plan.width)[np.newaxis], plan)
        self._change = change
        self._labels = labels
        self._random = random

    def step(self, rows: Rows, embeddings: Floats32) -> Floats32:
        """As the observed side's, with the change."""
        gradients = super().step(rows, embeddings)
        changed = self._change(gradients.astype(np.float64), self._labels[rows], self._random).astype(np.float32)
        self.seen[-1] = Seen(rows, changed, self.seen[-1].classes, self.seen[-1].logits)
        return changed
