"""The noisy quadratic objective: which coefficients are released, and its minimiser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.schema import Floats, Schema
from smpc.ring import Integers

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Coefficients:
    """The released entries of the Gram matrix of (1, columns): each unordered pair of columns once.

    Left out: the number of rows, which is public, and the label's square, which no minimiser needs. Entry e is
    (first[e], second[e]); `holders[p]` marks the entries that depend on a column of party p.
    """

    first: Indices
    second: Indices
    label: int
    holders: Mapping[str, Mask]

    @classmethod
    def of(cls, schema: Schema) -> Coefficients:
        owners: list[str | None] = [None]  # the constant column is everybody's
        for party, width in schema.widths.items():
            owners += [party] * width
        label = 1 + sum(schema.widths[p] for p in list(schema.widths)[: list(schema.widths).index(schema.label_holder)])
        label += len(schema.features[schema.label_holder])
        first, second = np.triu_indices(len(owners))
        keep = ~((first == second) & ((first == 0) | (first == label)))
        first, second = first[keep], second[keep]
        owner = np.array(owners, dtype=object)
        holders = {party: (owner[first] == party) | (owner[second] == party) for party in schema.widths}
        return cls(first, second, label, holders)

    def __len__(self) -> int:
        return len(self.first)

    def matrix(self, rows: int, bits: int, released: Integers) -> Floats:
        """The symmetric (1 + D, 1 + D) matrix of the released coefficients in real units; the label's square is 0.

        Columns lie in [-1, 1], so no sum exceeds the rows: noise beyond that is cut off.
        """
        size = int(self.second.max()) + 1
        matrix = np.zeros((max(size, self.label + 1),) * 2)
        matrix[self.first, self.second] = matrix[self.second, self.first] = np.ldexp(
            released.astype(np.float64), -2 * bits
        )
        matrix[0, 0] = rows
        return np.clip(matrix, -rows, rows)  # where the sums must lie, noise or not


def minimise(matrix: Floats, label: int, ridge: float) -> Floats:
    """The intercept and weights w that minimise the quadratic form with data-independent `ridge` on the weights.

    `matrix` is the noisy Gram matrix of (1, columns). The number of rows is exact, so the intercept is eliminated
    exactly and not penalised; negative curvature that the noise left is cut at zero before the ridge is added, so the
    form is positive definite and the weights are bounded whatever the noise.
    """
    rows = matrix[0, 0]
    keep = np.delete(np.arange(1, len(matrix)), label - 1)
    means, label_mean = matrix[0, keep] / rows, matrix[0, label] / rows
    curvature = matrix[np.ix_(keep, keep)] - rows * np.outer(means, means)
    slope = matrix[keep, label] - rows * means * label_mean
    values, vectors = np.linalg.eigh(curvature)
    weights = vectors @ ((vectors.T @ slope) / (np.maximum(values, 0.0) + ridge))
    return np.concatenate([[label_mean - means @ weights], weights])


def in_original_units(schema: Schema, weights: Floats) -> Floats:
    """Intercept and weights for unscaled columns and label."""
    features = schema.all_features
    half = np.array([column.half for column in features])
    middle = np.array([column.middle for column in features])
    slopes = schema.label.half * weights[1:] / half
    return np.concatenate([[schema.label.middle + schema.label.half * weights[0] - slopes @ middle], slopes])
