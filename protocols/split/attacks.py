"""Attacks on the labels of two classes, from what the feature party sees. Each gives a score a record: higher means 1.

Attack AUC, one convention for all: the scores of all records of the batches given, pooled; `auc.oriented` for norm and
spectral, whose sign says nothing by itself. (Li et al. average over batches and skip those without a positive.)

norm: Li et al. 2022. spectral: Tran et al. 2018, Sun et al. 2021. direction, hint: Li et al. 2022, who know labels of
some positives. shortest distance: Erdogan et al. 2021 (paper 4, section 3.1). model: what training itself leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.schema import Floats
from protocols.split.auc import auc
from protocols.split.observed import Seen
from smpc.ring import Integers

HINTS = 5  # known positives of a batch


def norm(seen: Seen) -> Floats:
    """The gradients' lengths: positives are rare and so pull harder."""
    lengths: Floats = np.linalg.norm(seen.gradients.astype(np.float64), axis=1)
    return lengths


def spectral(seen: Seen) -> Floats:
    """Along the direction in which the batch varies most, turned so that the few are on the positive side."""
    centred = seen.gradients.astype(np.float64) - seen.gradients.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    scores: Floats = centred @ directions[0]
    return scores if (scores**3).sum() >= 0 else -scores


def shortest_distance(seen: Seen) -> Floats:
    """||g - g_0||^2 - ||g - g_1||^2: nearer to what a 1 would have given. White box."""
    g, (g0, g1) = seen.gradients.astype(np.float64), seen.classes.astype(np.float64)
    scores: Floats = ((g - g0) ** 2).sum(axis=1) - ((g - g1) ** 2).sum(axis=1)
    return scores


def normalised_distance(seen: Seen) -> Floats:
    """The same over ||g_1 - g_0||^2: 2 t - 1 if g is g_0 + t (g_1 - g_0), whose AUC has a closed form."""
    g0, g1 = seen.classes.astype(np.float64)
    size = ((g1 - g0) ** 2).sum(axis=1)
    scores: Floats = shortest_distance(seen) / np.where(size > 0, size, 1.0)
    return scores


def model(seen: Seen) -> Floats:
    """What the model under training says about the records: any model that works tells labels so."""
    return seen.logits[:, 0] if seen.logits.shape[1] == 1 else seen.logits[:, 1] - seen.logits[:, 0]


def direction(seen: Seen, known: Integers) -> Floats:
    """The cosine to the gradient of one known positive, the first of the batch's `known` places."""
    g = seen.gradients.astype(np.float64)
    lengths = np.linalg.norm(g, axis=1)
    scores: Floats = g @ g[known[0]] / np.maximum(lengths * lengths[known[0]], np.finfo(np.float64).tiny)
    return scores


def hint(seen: Seen, known: Integers) -> Floats:
    """Minus the distance to the nearest of the known positives' gradients."""
    g = seen.gradients.astype(np.float64)
    squares = (g**2).sum(axis=1)
    distances = squares[:, None] - 2 * g @ g[known].T + squares[known]
    scores: Floats = -distances.min(axis=1)
    return scores


ATTACKS: dict[str, Callable[[Seen], Floats]] = {
    "norm": norm,
    "spectral": spectral,
    "shortest distance": shortest_distance,
    "shortest distance, normalised": normalised_distance,
    "model": model,
}
HINTED: dict[str, Callable[[Seen, Integers], Floats]] = {"direction": direction, "hint": hint}


@dataclass(frozen=True)
class Pooled:
    """Labels and scores of the records that were attacked, shapes (n,)."""

    labels: Integers
    scores: Floats

    @property
    def auc(self) -> float:
        return auc(self.labels, self.scores)


def pooled(attack: Callable[[Seen], Floats], batches: Sequence[Seen], labels: Integers) -> Pooled:
    """An attack on every record of the batches; `labels` are those of all records, by record number."""
    rows = np.concatenate([seen.rows for seen in batches])
    return Pooled(labels[rows], np.concatenate([attack(seen) for seen in batches]))


def pooled_hinted(attack: Callable[[Seen, Integers], Floats], batches: Sequence[Seen], labels: Integers) -> Pooled:
    """An attacker who knows up to HINTS positives of every batch; these are left out, and batches without one."""
    truth, scores = list[npt.NDArray[np.int64]](), list[Floats]()
    for seen in batches:
        own = labels[seen.rows]
        known = np.flatnonzero(own == 1)[:HINTS]
        if known.size:
            others = np.setdiff1d(np.arange(len(own)), known)
            truth.append(own[others])
            scores.append(attack(seen, known)[others])
    return Pooled(np.concatenate(truth), np.concatenate(scores))
