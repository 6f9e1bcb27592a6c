"""Releases of paper 2 for many seeds: their second moments drawn from their exact law, without the n x d noise.

All solvers see a release through second moments. With D of n rows and R independent Gaussian noise, column j of
deviation s_j,

    (D + R)'(D + R) = D'D + D'R + R'D + R'R.

Let D = U S V' of rank r: D'R = V S G with G = U'R, r rows of noise, and R'R = G'G + W, W of the n - r rows of noise
outside the span of D: Wishart. So the law needs D'D only. Mixed rows: B D for a real B, or (n > `MOST_MIXED`) rows
drawn from N(0, D'D), to which sums of n signs times records are close; the noise on k rows is added as it is.
The noise is continuous: at the protocol's scale, 2^20 and more, its discrete law has the same moments to ten digits.
"""

from __future__ import annotations

import math

import numpy as np

from protocols.data_release.fit import solve
from protocols.data_release.sign_matrix import signed_sums
from protocols.schema import Floats

MOST_MIXED = 100_000  # records up to which the pages mix by a real B
_SCALE = 2.0**20


def mixed(records: Floats, rows: int, seed: bytes) -> Floats:
    """B D / sqrt(rows) of all columns, shape (rows, d). The first k rows times sqrt(rows / k) are a mix to k rows."""
    exact = np.round(records.T * _SCALE).astype(np.int64)
    result: Floats = signed_sums(seed, rows, exact).T / (_SCALE * math.sqrt(rows))
    return result


def mixed_gaussian(gram: Floats, rows: int, rng: np.random.Generator) -> Floats:
    """The same with rows from N(0, D'D)."""
    root = _root(gram)
    result: Floats = rng.standard_normal((rows, len(root))) @ root / math.sqrt(rows)
    return result


def noisy_rows(mix: Floats, rows: int, deviations: Floats, rng: np.random.Generator) -> Floats:
    """A release of the first `rows` of a mix, noise added; shape (rows, d)."""
    noise = rng.standard_normal((rows, mix.shape[1])) * deviations
    result: Floats = mix[:rows] * math.sqrt(len(mix) / rows) + noise
    return result


def noisy_moments(gram: Floats, records: int, deviations: Floats, rng: np.random.Generator) -> Floats:
    """(D + R)'(D + R), by the law above; shape (d, d)."""
    root = _root(gram)
    along = rng.standard_normal((len(root), len(gram))) * deviations
    cross = root.T @ along
    outside = _wishart(len(gram), records - len(root), rng) * np.outer(deviations, deviations)
    result: Floats = gram + cross + cross.T + along.T @ along + outside
    return result


def _root(gram: Floats) -> Floats:
    """A of shape (rank, d) with A'A = gram."""
    values, vectors = np.linalg.eigh(gram)
    keep = values > 1e-12 * values[-1]
    root: Floats = np.sqrt(values[keep])[:, None] * vectors[:, keep].T
    return root


def _wishart(size: int, freedom: int, rng: np.random.Generator) -> Floats:
    """N'N for N of shape (freedom, size) of standard normals (Bartlett 1933)."""
    if freedom < size:
        rows = rng.standard_normal((freedom, size))
        return np.asarray(rows.T @ rows)
    lower = np.tril(rng.standard_normal((size, size)), -1)
    lower[np.diag_indices(size)] = np.sqrt(rng.chisquare(freedom - np.arange(size)))
    return np.asarray(lower @ lower.T)


def weights_of(moments: Floats, records: int, solver: str, ridge: float, lifted: Floats, rows: int) -> Floats:
    """Weights of the last column on all others, shape (d - 1,). `lifted`: by noise, the diagonal of moments / n."""
    scaled = moments / records
    weights, _ = solve(scaled[:-1, :-1], scaled[:-1, -1], lifted, solver, ridge, rows)
    return weights
