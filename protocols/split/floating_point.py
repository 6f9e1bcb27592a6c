"""The printed formula of GradPerturb in floats, and the attack that reads every label from its rounding.

fl(g_y + fl(u fl(g_{1-y} - g_y))) can be reached from g_y with one float u in all coordinates at once, but hardly ever
from g_{1-y}. Whoever knows h knows g_0 and g_1, tries both, and needs no statistics.
"""

from __future__ import annotations

import numpy as np

from protocols.schema import Floats
from protocols.split.observed import Seen
from protocols.split.sides import Floats32
from smpc.ring import Integers

_STEPS = 6  # floats tried on either side of the estimate of u


def printed_form(seen: Seen, labels: Integers, noise: Floats) -> Floats32:
    """What Algorithm 2 as printed would have sent for the batch, (b, cut): `labels` and `noise` (u) of shape (b,)."""
    own = seen.classes[labels, np.arange(len(labels))]
    other = seen.classes[1 - labels, np.arange(len(labels))]
    sent: Floats32 = own + noise.astype(np.float32)[:, None] * (other - own)
    return sent


def rounding(seen: Seen) -> Floats:
    """How many more coordinates are met exactly from g_1 than from g_0: positive for a 1."""
    return _met(seen, 1) - _met(seen, 0)


def strata(t: Floats, count: int = 400) -> Integers:
    """Records of about the same t, or of a multiple of it; shapes (n,).

    t tells as much as epsilon allows, and a rounding attack reads it as well. What rounding tells beyond that shows
    within strata (`auc.auc_within`).
    """
    edges = np.quantile(t, np.arange(1, count) / count)
    return np.searchsorted(edges, t, side="right").astype(np.int64)


def _met(seen: Seen, label: int) -> Floats:
    """The most coordinates that one float u gives exactly, starting from the gradient of `label`; shape (b,)."""
    own, other = seen.classes[label], seen.classes[1 - label]
    difference = other - own
    place = np.abs(difference).argmax(axis=1)[:, None]
    step = np.take_along_axis(difference, place, axis=1)[:, 0].astype(np.float64)
    moved = np.take_along_axis(seen.gradients.astype(np.float64) - own, place, axis=1)[:, 0]
    u = np.divide(moved, step, out=np.zeros_like(moved), where=step != 0).astype(np.float32)
    for _ in range(_STEPS):
        u = np.nextafter(u, np.float32(-np.inf))
    best = np.zeros(len(u))
    for _ in range(2 * _STEPS + 1):
        met = (own + u[:, None] * difference == seen.gradients).sum(axis=1)
        best = np.maximum(best, met)
        u = np.nextafter(u, np.float32(np.inf))
    return best
