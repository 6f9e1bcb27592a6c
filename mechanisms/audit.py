"""Lower bounds of epsilon and mu from samples: what an attacker has demonstrably learnt, whatever a proof says.

Outcomes are integers, one per run, under each of two neighbouring inputs: a projection of the view, chosen before the
runs. So are the events: thresholds, residues modulo 2, 4 and 8, single values. (Thresholds alone miss noise on a coarse
lattice.) Every binomial probability is bounded by Clopper and Pearson at the level that is left after dividing by
all bounds looked at (Bonferroni), so that "bound > epsilon" happens with probability alpha at most if epsilon holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Event:
    """A named set of outcomes."""

    name: str
    contains: Callable[[Integers], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Bound:
    """With probability 1 - alpha the true value is at least `value`; `event` showed it."""

    value: float
    event: str
    alpha: float


def events(centre: int, spread: float, thresholds: int = 32) -> tuple[Event, ...]:
    """Events for outcomes around `centre`, to register before the first run: thresholds up to 4 spreads away,
    residues, and the values that whole lattices or clipped noise pile up on."""
    steps = np.rint(np.linspace(-4, 4, thresholds) * spread).astype(int)
    found = [_at_most(t) for t in sorted({centre + int(step) for step in steps})]
    found += [_residue(r, m) for m in (2, 4, 8) for r in range(m) if m > 2 or r]
    found += [Event(f"x = {centre}", lambda x: x == centre), Event("x = 0", lambda x: x == 0)]
    return tuple(found)


def _at_most(threshold: int) -> Event:
    return Event(f"x <= {threshold}", lambda x: x <= threshold)


def _residue(residue: int, modulus: int) -> Event:
    return Event(f"x = {residue} mod {modulus}", lambda x: x % modulus == residue)


def epsilon_lower_bound(
    first: Integers, second: Integers, registered: Sequence[Event], *, delta: float = 0.0, alpha: float = 1e-9
) -> Bound:
    """The largest ln((P_lower - delta) / Q_upper) over events, complements and both directions; shapes (n,), (m,)."""
    _check(first, second, alpha)
    if not registered:
        raise ValueError("registered=[] are no events: register some before the runs")
    level = alpha / (8 * len(registered))
    counts = np.array([[event.contains(x).sum() for event in registered] for x in (first, second)], dtype=np.int64)
    best = Bound(0.0, "none", alpha)
    for ours, theirs, n, m in ((0, 1, len(first), len(second)), (1, 0, len(second), len(first))):
        for word, k, other in (("", counts[ours], counts[theirs]), ("not ", n - counts[ours], m - counts[theirs])):
            gain = np.maximum(_lower(k, n, level) - delta, 0) / _upper(other, m, level)
            i = int(np.argmax(gain))
            if gain[i] > math.exp(best.value):
                best = Bound(math.log(gain[i]), word + registered[i].name, alpha)
    return best


def mu_lower_bound(first: Integers, second: Integers, threshold: int, *, alpha: float = 1e-9) -> Bound:
    """For Gaussian noise, from one threshold set before the runs: Phi^-1(1 - FPR) - Phi^-1(FNR) of the test
    "above the threshold means the second input", both rates at their upper bounds."""
    from scipy import stats

    _check(first, second, alpha)
    false_positive = _upper(np.array([(first > threshold).sum()]), len(first), alpha / 2)[0]
    false_negative = _upper(np.array([(second <= threshold).sum()]), len(second), alpha / 2)[0]
    value = float(stats.norm.isf(false_positive) - stats.norm.ppf(false_negative))
    return Bound(max(0.0, value), f"x > {threshold}", alpha)


def _check(first: Integers, second: Integers, alpha: float) -> None:
    if not (len(first) and len(second)):
        raise ValueError(f"outcomes={len(first)} and {len(second)} are too few: run both inputs")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha} is outside (0, 1): give the chance of a false alarm")


def _lower(successes: Integers, trials: int, level: float) -> npt.NDArray[np.float64]:
    from scipy import stats

    bound: npt.NDArray[np.float64] = stats.beta.ppf(level, np.maximum(successes, 1), trials - successes + 1)
    return np.where(successes == 0, 0.0, bound)


def _upper(successes: Integers, trials: int, level: float) -> npt.NDArray[np.float64]:
    from scipy import stats

    bound: npt.NDArray[np.float64] = stats.beta.isf(level, successes + 1, np.maximum(trials - successes, 1))
    return np.where(successes == trials, 1.0, bound)
