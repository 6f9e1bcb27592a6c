"""How models are compared: errors on held-out rows, repeated with fresh noise, as a median with its interval."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from mechanisms import validate
from mechanisms.randomness import RandomWords, Stream
from protocols.schema import Floats
from smpc.errors import InputError

Indices = npt.NDArray[np.intp]


def mean_squared_error(y: Floats, scores: Floats) -> float:
    """The mean of (y - score)^2, both of shape (n,)."""
    labels, predicted = _pair(y, scores)
    return float(np.mean((labels - predicted) ** 2))


def misclassification(y: Floats, scores: Floats) -> float:
    """The share of rows whose class (1 for a score >= 0, else 0) is not `y`, 0 or 1; both of shape (n,)."""
    labels, predicted = _pair(y, scores)
    if not np.isin(labels, (0, 1)).all():
        raise InputError("y has entries other than 0 and 1: code the classes so")
    return float(np.mean((predicted >= 0) != (labels == 1)))


def _pair(y: Floats, scores: Floats) -> tuple[Floats, Floats]:
    labels, predicted = np.asarray(y, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if labels.ndim != 1 or not labels.size or labels.shape != predicted.shape:
        raise InputError(f"y has shape {labels.shape}, scores {predicted.shape}: need the same (n,), n >= 1")
    if np.isnan(labels).any() or np.isnan(predicted).any():
        raise InputError("y or scores have NaN entries: a model that fails should say so")
    return labels, predicted


def words_of(*names: object) -> Stream:
    """Replayable words for experiments on public data: equal names, equal words. Never for a release."""
    return Stream(hashlib.sha256("\0".join(map(str, names)).encode()).digest())


def split(rows: int, seed: int, test: Fraction = Fraction(1, 5)) -> tuple[Indices, Indices]:
    """Row numbers for training and test, both ascending: a permutation by a public seed, blind to what rows hold.

    The test part has round(rows test) rows. Raises InputError when one of the parts would be empty.
    """
    count = round(validate.integer("rows", rows, low=2) * validate.exact("test", test))
    if not 0 < count < rows:
        raise InputError(f"test = {test} of {rows} rows leaves a part empty: give a share strictly between 0 and 1")
    order = np.argsort(words_of("split", rows, validate.integer("seed", seed)).words(rows), kind="stable")
    return np.sort(order[count:]), np.sort(order[:count])


@dataclass(frozen=True)
class Summary:
    """The median of `count` results, and an interval of two of them that covers the true median.

    `coverage` is exact for independent results of any continuous law: it is that of order statistics, no resampling.
    """

    median: float
    low: float
    high: float
    coverage: float
    count: int

    @property
    def centre(self) -> float:
        return self.median

    def __str__(self) -> str:
        return f"{self.median:.4g} [{self.low:.4g}, {self.high:.4g}]"


def summarise(results: Iterable[float], confidence: float = 0.95) -> Summary:
    """The narrowest symmetric interval of order statistics with `coverage` >= confidence.

    With few results (five and less for 0.95) that is the whole range, and its lower coverage is told. Infinite results
    count as large ones. Raises InputError without results, for NaN, and for a confidence outside (0, 1).
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence}: need a number strictly between 0 and 1")
    ordered = sorted(float(result) for result in results)
    if not ordered or any(math.isnan(result) for result in ordered):
        raise InputError(f"results = {ordered[:5]}: need at least one, and no NaN")
    count = len(ordered)
    # P(B <= k) of B ~ Bin(count, 1/2) results under the true median: the interval that leaves k out a side misses it
    # when B <= k or B >= count - k.
    tails = [Fraction(total, 2**count) for total in accumulate(math.comb(count, k) for k in range((count + 1) // 2))]
    lower = max((k for k, tail in enumerate(tails) if 1 - 2 * tail >= confidence), default=0)
    coverage = float(1 - 2 * tails[lower])
    return Summary(float(np.median(ordered)), ordered[lower], ordered[count - 1 - lower], coverage, count)


def repeat(measure: Callable[[RandomWords], float], seeds: Iterable[int], confidence: float = 0.95) -> Summary:
    """`measure` once a seed, with words of that seed, summarised."""
    return summarise((measure(words_of("repeat", seed)) for seed in seeds), confidence)
