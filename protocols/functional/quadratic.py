"""The noisy quadratic objective: which of its coefficients are released, and its minimiser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.schema import Floats, Schema

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
# Before any data: columns and label are spread evenly over [-1, 1], columns are uncorrelated, weights have norm 1/2.
PRIOR_VARIANCE = 1 / 3
PRIOR_NORM = 1 / 2
_FLATTEST = PRIOR_VARIANCE / 10  # curvature below, relative to the rows, is taken for noise
_TINY = 1e-9  # relative to the rows


@dataclass(frozen=True)
class Coefficients:
    """The released entries of the Gram matrix of (1, columns). Entry e is (first[e], second[e]).

    Symmetric: each unordered pair of columns once, but not the number of rows, which is public. Ordered, as the source
    counts: both orders of every pair of features, and the number of rows. The label's square no minimiser needs.
    Products of two indicators of one category are 0 or, of one with itself, its sum: nothing to release (symmetric).
    `holders[p]` marks the entries that depend on a column of party p, `labelled` those with the label; `indicators` are
    the columns that are 0 or 1 for a value of a category.
    """

    first: Indices
    second: Indices
    label: int
    holders: Mapping[str, Mask]
    indicators: Indices

    @classmethod
    def of(cls, schema: Schema, *, ordered: bool = False) -> Coefficients:
        parties = list(schema.widths)
        owners: list[str | None] = [None]  # the constant column is everybody's
        for party in parties:
            owners += [party] * schema.widths[party]
        before = parties[: parties.index(schema.label_holder)]
        label = 1 + sum(schema.widths[party] for party in before) + len(schema.features[schema.label_holder])
        numbers = {category: number for number, category in enumerate(schema.categories)}
        held = [column for party in parties for column in schema.columns(party)]
        category = np.array([-1, *(-1 if c.category is None else numbers[c.category] for c in held)])
        if ordered:
            first, second = (index.ravel() for index in np.indices((len(owners), len(owners))))
            keep = first != label
        else:
            first, second = np.triu_indices(len(owners))
            keep = ~((first == second) & ((first == 0) | (first == label)))
            keep &= ~((category[first] == category[second]) & (category[first] >= 0))
        first, second = first[keep], second[keep]
        owner = np.array(owners, dtype=object)
        holders = {party: (owner[first] == party) | (owner[second] == party) for party in parties}
        if ordered:  # the number of rows is known to everybody; the label holder perturbs it
            holders[schema.label_holder] = holders[schema.label_holder] | ((first == 0) & (second == 0))
        return cls(first, second, label, holders, np.flatnonzero(category >= 0))

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
        total, count = self._scattered(values)
        matrix: Floats = np.clip(total / count, -rows, rows)
        matrix[0, 0] = rows
        matrix[self.indicators, self.indicators] = matrix[0, self.indicators]
        return matrix

    def deviations(self, values: Floats) -> Floats:
        """The standard deviations of the entries of `matrix` for independent sums with these, before it is cut."""
        total, count = self._scattered(values**2)
        deviations: Floats = np.sqrt(total) / count
        deviations[0, 0] = 0.0
        deviations[self.indicators, self.indicators] = deviations[0, self.indicators]
        return deviations

    def _scattered(self, values: Floats) -> tuple[Floats, Floats]:
        """The sum of the values at each place and its mirror image, and how many there are, at least 1."""
        size = int(max(self.first.max(), self.second.max(), self.label)) + 1
        total, count = np.zeros((size, size)), np.zeros((size, size))
        mirrored = self.first != self.second
        first = np.concatenate([self.first, self.second[mirrored]])
        second = np.concatenate([self.second, self.first[mirrored]])
        np.add.at(total, (first, second), np.concatenate([values, values[mirrored]]))
        np.add.at(count, (first, second), 1)
        return total, np.maximum(count, 1)


@dataclass(frozen=True)
class Minimum:
    """Intercept and weights of the minimiser, and how many directions of the form were not convex before repair."""

    weights: Floats
    indefinite: int


def minimise(matrix: Floats, label: int, repair: str, noise: Floats | float) -> Minimum:
    """The w that minimises the quadratic form sum (y - w'x)^2 given by a noisy Gram matrix of (1, columns).

    The number of rows is exact, so the intercept is eliminated exactly and not penalised. `noise`, the standard
    deviation of the entries' noise, or of each of them in the matrix's shape, is public. A symmetric matrix of noise
    with deviation s has spectral norm about 2 s sqrt(m).

    ridge: negative curvature is cut at zero, then 4 s sqrt(m) is added: bounded weights whatever the noise.
    adassp: only as much is added as lifts the smallest noisy curvature to that level (Wang 2018).
    spectral: directions without positive curvature are dropped (the source's trimming). none: they are left as they
    are; where the form is not convex the result is its stationary point, no minimum.
    posterior: moments are shrunk to a public prior by the size of their noise; then, of slope b and curvature q >= 0,
    q b / (q^2 + e^2): the posterior mean if q were exact. e: the noise of the gradient at weights of the prior's norm.
    rescaled: likewise b / (q + e), whose direction leans less on a noisy q, then longer weights, by least squares
    along that direction. For classes: shrunk weights beside an intercept that is not shrunk predict the majority.
    """
    rows = matrix[0, 0]
    keep = np.delete(np.arange(1, len(matrix)), label - 1)
    block = np.ix_(keep, keep)
    deviations = np.broadcast_to(np.asarray(noise, dtype=np.float64), matrix.shape)
    means, spread = matrix[0] / rows, _root_mean_square(deviations[block])
    curvature, slope = _centred(matrix, means, keep, label)
    values, vectors = np.linalg.eigh(curvature)
    indefinite = int((values <= 0).sum())
    level, tiny = 4 * spread * np.sqrt(len(keep)), _TINY * rows
    if repair in ("posterior", "rescaled"):
        means = means / (1 + (deviations[0] / rows) ** 2 / PRIOR_VARIANCE)
        curvature, slope = _centred(matrix, means, keep, label)
        trust = 1 / (1 + (spread / (PRIOR_VARIANCE * rows)) ** 2)
        prior = PRIOR_VARIANCE * rows * np.eye(len(keep))
        values, vectors = np.linalg.eigh(trust * curvature + (1 - trust) * prior)
        values = np.maximum(values, 0.0)
        slope_noise = _root_mean_square(deviations[keep, label]) / PRIOR_NORM
        level = np.sqrt(len(keep)) * np.hypot(trust * spread, slope_noise)
    along = vectors.T @ slope
    weights = vectors @ (_inverse(repair, values, level, tiny) * along)
    if repair == "rescaled":
        bending = (vectors.T @ weights) ** 2 @ np.maximum(values, _FLATTEST * rows)
        weights = weights * max(1.0, float(slope @ weights) / max(float(bending), tiny))
    return Minimum(np.concatenate([[means[label] - means[keep] @ weights], weights]), indefinite)


def _centred(matrix: Floats, means: Floats, keep: Indices, label: int) -> tuple[Floats, Floats]:
    """Curvature and slope of the form once the intercept is eliminated, for columns with these means."""
    around = matrix - matrix[0, 0] * np.outer(means, means)
    return around[np.ix_(keep, keep)], around[keep, label]


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _inverse(repair: str, values: Floats, level: float, tiny: float) -> Floats:
    """What the slope along each eigenvector is multiplied by."""
    if repair == "ridge":
        inverse = 1 / (np.maximum(values, 0.0) + max(level, tiny))
    elif repair == "adassp":
        inverse = 1 / np.maximum(values + max(0.0, level - values[0]), tiny)
    elif repair == "posterior":
        inverse = values / np.maximum(values**2 + level**2, tiny**2)
    elif repair == "rescaled":
        inverse = 1 / (values + max(level, tiny))
    else:
        large = (values if repair == "spectral" else np.abs(values)) > tiny
        inverse = np.where(large, 1 / np.where(large, values, 1.0), 0.0)
    result: Floats = inverse
    return result
