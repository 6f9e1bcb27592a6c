"""Expectations and probabilities estimated from repeated runs, with approximate 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smpc.errors import InputError

_Z = 1.959964


@dataclass(frozen=True)
class Average:
    """An estimate and its interval."""

    centre: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return f"{self.centre:.3g} [{self.low:.3g}, {self.high:.3g}]"


def mean(results: Sequence[float]) -> Average:
    """The mean, by the central limit theorem: no good for laws with such tails that there is no variance."""
    values = np.asarray(results, dtype=np.float64)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise InputError(f"results of shape {values.shape}: need at least one, all finite")
    error = _Z * float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else math.inf
    centre = float(values.mean())
    return Average(centre, centre - error, centre + error, values.size)


def exceeding(results: Sequence[float], bound: float) -> Average:
    """How likely a result is above `bound` (Wilson's interval)."""
    count = len(results)
    if not count or any(math.isnan(result) for result in results):
        raise InputError(f"{count} results: need at least one, and no NaN")
    share = sum(result > bound for result in results) / count
    middle = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return Average(share, max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half)), count)  # rounding
