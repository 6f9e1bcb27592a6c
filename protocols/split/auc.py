"""The area under the ROC curve: exact for known labels, estimated without bias from perturbed ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from protocols.schema import Floats
from smpc.errors import InputError


def auc(labels: npt.NDArray[np.generic], scores: Floats) -> float:
    """P(score of a positive > score of a negative), ties as one half; labels 0 and 1, both of shape (n,).

    Raises InputError for NaN scores and where one of the classes is missing.
    """
    positive = np.asarray(labels) == 1
    if not (positive | (np.asarray(labels) == 0)).all() or positive.all() or not positive.any():
        raise InputError("labels of an AUC must be 0 and 1, at least one of each")
    return auc_of_weights(positive.astype(np.float64), scores)


def auc_within(labels: npt.NDArray[np.generic], scores: Floats, strata: npt.NDArray[np.int64]) -> float:
    """The same over pairs of one stratum, (n,): what the scores tell beyond what the strata do."""
    above, pairs = 0.0, 0
    for stratum in np.unique(strata):
        own = strata == stratum
        positives = int((labels[own] == 1).sum())
        count = positives * (int(own.sum()) - positives)
        if count:
            above += count * auc(labels[own], scores[own])
            pairs += count
    if not pairs:
        raise InputError("no stratum has both labels: the AUC within strata is not defined")
    return above / pairs


def oriented(value: float) -> float:
    """The AUC of a score whose sign is arbitrary, like that of a singular vector: max(AUC, 1 - AUC)."""
    return max(value, 1 - value)


def auc_of_weights(values: Floats, scores: Floats) -> float:
    """The AUC from values whose means are the labels, independent of each other and of the scores; shapes (n,).

    With values v it is the ratio of two unbiased sums over pairs i != j: of v_i (1 - v_j) [score_i > score_j] and of
    v_i (1 - v_j). For perturbed labels (`Perturbation.unbiased`) that is post-processing: an evaluation on private
    labels that costs no epsilon beyond theirs. Its noise may take it outside [0, 1].
    """
    v, x = np.asarray(values, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if v.ndim != 1 or v.shape != x.shape or np.isnan(x).any() or np.isnan(v).any():
        raise InputError(f"values of shape {v.shape} and scores {x.shape}: need the same (n,), without NaN")
    order = np.argsort(x, kind="stable")
    v, x = v[order], x[order]
    starts = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])) if len(x) else np.zeros(0, dtype=np.intp)
    negative = np.add.reduceat(1 - v, starts)
    positive = np.add.reduceat(v, starts)
    below = np.cumsum(negative) - negative
    itself = float((v * (1 - v)).sum())  # pairs of a record with itself, which count as ties above
    above = float((positive * (below + negative / 2)).sum()) - itself / 2
    pairs = float(v.sum() * (1 - v).sum()) - itself
    if pairs == 0:
        raise InputError("no pair of a positive and a negative to compare: the AUC is not defined")
    return above / pairs
