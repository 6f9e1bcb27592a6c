"""Least squares from released data alone (paper 2, sections 4 and 5, and AdaSSP for a noisy Gram matrix).

Second moments H = X'X / n and b = X'y / n of the released numbers, X with the column of ones. Noise of variance v_j on
m released rows lifts the diagonal of H by m v_j / n on average; the noise of different columns is independent, so b and
the rest of H stay right.

ols       (H + ridge I)^-1 b: the source's choice for `rmgm`, where m << n; on a `dgm` release it is its biased BGM
shrunk    as ols, the ridge raised by v_y / (n p^2), v_y the variance of the label's noise: the posterior mean for
          weights of deviation p = 1/2 before any data. It keeps the label's noise from becoming an intercept
debiased  (H - C + ridge I)^-1 b, C = diag(m v_j / n): the source's DGM. H - C may have eigenvalues near zero or below
floor     as debiased, eigenvalues lifted to 2 v sqrt(m d) / n, about the norm of what the noise leaves in H - C

A noisy Gram matrix is minimised as in the functional mechanism (`protocols.functional.quadratic`): adassp,
ridge or none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from protocols.data_release.released_data import ReleasedColumn, ReleasedData
from protocols.functional.quadratic import PRIOR_NORM, minimise
from protocols.schema import Floats
from smpc.errors import InputError

SOLVERS = ("ols", "shrunk", "debiased", "floor")
GRAM_SOLVERS = ("adassp", "ridge", "none")
DEFAULT = {"rmgm": "shrunk", "dgm": "floor", "gram": "adassp"}
RIDGE = 1e-5  # the source's, on second moments of numbers within [-1, 1]


@dataclass(frozen=True)
class Fitted:
    """Intercept and weights in the columns' own units, and how many directions of H had no positive eigenvalue."""

    weights: Floats
    indefinite: int


def fit(data: ReleasedData, solver: str | None = None, ridge: float = RIDGE) -> Fitted:
    """A linear model of the label from all other columns. Raises InputError for a solver that does not suit the data.

    Without `solver`: shrunk for `rmgm`, floor for `dgm`, adassp for `gram`.
    """
    known = GRAM_SOLVERS if data.method == "gram" else SOLVERS
    chosen = solver or DEFAULT[data.method]
    if chosen not in known:
        raise InputError(f"solver = {chosen!r}: for a {data.method} release it must be one of {', '.join(known)}")
    if isinstance(ridge, bool) or not (math.isfinite(ridge) and ridge >= 0):
        raise InputError(f"ridge = {ridge}: must be a number of at least 0")
    if data.label not in data.names or len(data.columns) < 2:
        raise InputError(f"the release has no label {data.label} beside features: add the parts of the other parties")
    label = 1 + data.names.index(data.label)
    if data.method == "gram":
        if data.values[label, label]:
            raise InputError(f"label = {data.label}: is no label of this release, which left the label's square out")
        noise = math.sqrt(np.mean([item.noise_variance for item in data.features]))
        minimum = minimise(data.values, label, chosen, noise)
        return _fitted(data, minimum.weights, minimum.indefinite)
    features = np.delete(data.values, label, axis=1)
    hessian = features.T @ features / data.records
    target = features.T @ data.values[:, label] / data.records
    if chosen == "shrunk":
        ridge, chosen = ridge + shrinkage(data.columns[label - 1].noise_variance, data.records), "ols"
    share = len(data.values) / data.records
    lifted = share * np.array([0.0, *(item.noise_variance for item in data.features)])
    weights, indefinite = solve(hessian, target, lifted, chosen, ridge, len(data.values))
    return _fitted(data, weights, indefinite)


def _fitted(data: ReleasedData, weights: Floats, indefinite: int) -> Fitted:
    with np.errstate(over="ignore", invalid="ignore"):
        result = in_original_units(data, weights)
    if not np.isfinite(result).all():
        raise InputError("the model's coefficients are beyond floating point: with other bounds or another solver?")
    return Fitted(result, indefinite)


def shrinkage(label_variance: float, records: int) -> float:
    """What the label's noise adds to the ridge."""
    return label_variance / (records * PRIOR_NORM**2)


def solve(hessian: Floats, target: Floats, lifted: Floats, solver: str, ridge: float, rows: int) -> tuple[Floats, int]:
    """Weights of shape (d,), and the number of eigenvalues that are not positive.

    `lifted`, shape (d,): by how much the noise of `rows` released rows lifts the diagonal of `hessian`.
    """
    if solver != "ols":
        hessian = hessian - np.diag(lifted)
    values, vectors = np.linalg.eigh(hessian)
    indefinite = int((values <= 0).sum())
    if solver == "floor":
        values = np.maximum(values, 2 * float(np.mean(lifted)) * math.sqrt(len(hessian) / rows))
    values = values + ridge
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values != 0)
    return vectors @ (inverse * (vectors.T @ target)), indefinite


def in_original_units(data: ReleasedData, weights: Floats) -> Floats:
    """Intercept and weights for values in their own units, from those for values in their released ranges."""
    label = data.columns[data.names.index(data.label)]
    features: tuple[ReleasedColumn, ...] = data.features
    slopes = weights[1:] * np.array([item.slope for item in features]) / label.slope
    moved = float(weights[1:] @ np.array([item.offset for item in features]))
    return np.concatenate([[(weights[0] + moved - label.offset) / label.slope], slopes])
