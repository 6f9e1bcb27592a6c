"""The noisy quadratic objective: which coefficients are released, and its minimiser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.schema import Floats, Schema

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Coefficients:
    """The released entries of the Gram matrix of (1, columns). Entry e is (first[e], second[e]).

    Symmetric: each unordered pair of columns once, but not the number of rows, which is public. Ordered, as the source
    counts: both orders of every pair of features, and the number of rows. The label's square no minimiser needs.
    `holders[p]` marks the entries that depend on a column of party p, `labelled` those with the label.
    """

    first: Indices
    second: Indices
    label: int
    holders: Mapping[str, Mask]

    @classmethod
    def of(cls, schema: Schema, *, ordered: bool = False) -> Coefficients:
        parties = list(schema.widths)
        owners: list[str | None] = [None]  # the constant column is everybody's
        for party in parties:
            owners += [party] * schema.widths[party]
        before = parties[: parties.index(schema.label_holder)]
        label = 1 + sum(schema.widths[party] for party in before) + len(schema.features[schema.label_holder])
        if ordered:
            first, second = (index.ravel() for index in np.indices((len(owners), len(owners))))
            keep = first != label
        else:
            first, second = np.triu_indices(len(owners))
            keep = ~((first == second) & ((first == 0) | (first == label)))
        first, second = first[keep], second[keep]
        owner = np.array(owners, dtype=object)
        holders = {party: (owner[first] == party) | (owner[second] == party) for party in parties}
        if ordered:  # the number of rows is known to everybody; the label holder perturbs it
            holders[schema.label_holder] = holders[schema.label_holder] | ((first == 0) & (second == 0))
        return cls(first, second, label, holders)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def labelled(self) -> Mask:
        labelled: Mask = (self.first == self.label) | (self.second == self.label)
        return labelled

    def matrix(self, rows: int, values: Floats) -> Floats:
        """The symmetric (1 + D, 1 + D) matrix of the released sums in real units; the label's square is 0.

        Sums released twice are averaged. Columns lie in [-1, 1], so no sum exceeds the rows: noise beyond is cut off.
        """
        size = int(max(self.first.max(), self.second.max(), self.label)) + 1
        total, count = np.zeros((size, size)), np.zeros((size, size))
        for a, b in ((self.first, self.second), (self.second, self.first)):
            np.add.at(total, (a, b), values)
            np.add.at(count, (a, b), 1)
        matrix: Floats = np.clip(total / np.maximum(count, 1), -rows, rows)
        matrix[0, 0] = rows
        return matrix


@dataclass(frozen=True)
class Minimum:
    """Intercept and weights of the minimiser, and how many directions of the form were not convex before repair."""

    weights: Floats
    indefinite: int


def minimise(matrix: Floats, label: int, repair: str, noise: float) -> Minimum:
    """The w that minimises the quadratic form sum (y - w'x)^2 given by a noisy Gram matrix of (1, columns).

    The number of rows is exact, so the intercept is eliminated exactly and not penalised. `noise`, the standard
    deviation of a coefficient's noise, is public; a symmetric matrix of it has spectral norm about 2 noise sqrt(m).

    ridge: negative curvature is cut at zero, then 4 noise sqrt(m) is added: bounded weights whatever the noise.
    adassp: only as much is added as lifts the smallest noisy curvature to that level (Wang 2018).
    spectral: directions without positive curvature are dropped (the source's trimming). none: they are left as they
    are; where the form is not convex the result is its stationary point, no minimum.
    """
    rows = matrix[0, 0]
    keep = np.delete(np.arange(1, len(matrix)), label - 1)
    means, label_mean = matrix[0, keep] / rows, matrix[0, label] / rows
    curvature = matrix[np.ix_(keep, keep)] - rows * np.outer(means, means)
    slope = matrix[keep, label] - rows * means * label_mean
    values, vectors = np.linalg.eigh(curvature)
    level = 4 * noise * np.sqrt(len(keep))
    tiny = 1e-9 * rows
    if repair == "ridge":
        inverse = 1 / (np.maximum(values, 0.0) + max(level, tiny))
    elif repair == "adassp":
        inverse = 1 / np.maximum(values + max(0.0, level - values[0]), tiny)
    elif repair == "spectral":
        inverse = np.where(values > tiny, 1 / np.where(values > tiny, values, 1.0), 0.0)
    else:
        inverse = np.where(np.abs(values) > tiny, 1 / np.where(np.abs(values) > tiny, values, 1.0), 0.0)
    weights = vectors @ (inverse * (vectors.T @ slope))
    return Minimum(np.concatenate([[label_mean - means @ weights], weights]), int((values <= 0).sum()))
