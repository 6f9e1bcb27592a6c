"""The accounting of DP-SGD done a second time, without its library: brackets, sampled losses, Renyi bounds, integers.

One step with the worst records: P = (1 - q) N(0, s^2) + q N(1, s^2) against Q, the same with N(v, s^2), v = -1. The
loss ln(P / Q) grows with x, so its law follows from normal distribution functions at the points where it has given
values. Rounded up to a grid it is that of a worse mechanism, rounded down of a better one: their T-fold convolutions
enclose delta.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import signal, special

from protocols.baselines import poisson_accounting

GRID = 4e-3
CASES = [(0.1, 0.8, 20, 1.0), (0.05, 1.0, 60, 1.0), (0.3, 2.0, 30, 0.5), (0.5, 8.0, 40, 1.0), (1.0, 12.0, 25, 2.0)]


def loss(x: np.ndarray, q: float, s: float, v: float = -1.0) -> np.ndarray:
    """ln(P / Q) at x, in the units of the norm bound."""
    stay = math.log1p(-q) if q < 1 else -math.inf
    top = np.logaddexp(stay, math.log(q) + (2 * x - 1) / (2 * s * s))
    return top - np.logaddexp(stay, math.log(q) + (2 * v * x - v * v) / (2 * s * s))


def loss_masses(q: float, s: float, v: float) -> tuple[np.ndarray, int]:
    """P(loss in (GRID (i - 1), GRID i]) for i from a first one on, tails included at the ends, and that first i."""
    ends = np.array([-1 - 13 * s, 1 + 13 * s])
    low, high = np.floor(loss(ends, q, s, v) / GRID).astype(int) + np.array([0, 1])
    values = GRID * np.arange(low, high + 1)
    left, right = np.full(len(values), ends[0]), np.full(len(values), ends[1])
    for _ in range(60):
        middle = (left + right) / 2
        below = loss(middle, q, s, v) < values
        left, right = np.where(below, middle, left), np.where(below, right, middle)
    at_most = (1 - q) * special.ndtr(left / s) + q * special.ndtr((left - 1) / s)
    return np.diff(np.concatenate([[0.0], at_most[:-1], [1.0]])), int(low)


def enclosure(epsilon: float, q: float, s: float, steps: int, v: float = -1.0) -> tuple[float, float]:
    """A lower and an upper bound of delta at `epsilon` after so many steps."""
    one, first = loss_masses(q, s, v)
    total = one
    for _ in range(steps - 1):
        total = np.maximum(signal.fftconvolve(total, one), 0)
    bounds = []
    for down in (steps, 0):  # every step's loss rounded down, or up
        losses = GRID * (first * steps + np.arange(len(total)) - down)
        bounds.append(float(total @ -np.expm1(np.minimum(epsilon - losses, 0.0))))
    return bounds[0] - 1e-12, bounds[1] + 1e-12


@pytest.mark.parametrize(("q", "s", "steps", "epsilon"), CASES)
def test_delta_lies_between_two_roundings_of_the_loss(q: float, s: float, steps: int, epsilon: float) -> None:
    low, high = enclosure(epsilon, q, s, steps)
    found = poisson_accounting.steps_delta(epsilon, q, s, steps)
    assert 1e-9 < low < high
    assert low <= found <= high * 1.001 + 1e-10
    if q < 1:
        weaker = poisson_accounting.steps_delta(epsilon, q, s * 1.1, steps)
        assert weaker < low  # a tenth more noise would be told apart


@pytest.mark.parametrize(("q", "s", "steps", "epsilon"), CASES[:3])
def test_delta_is_what_sampled_losses_average_to(q: float, s: float, steps: int, epsilon: float) -> None:
    rng, runs = np.random.default_rng(7), 40_000
    total = np.zeros(runs)
    for _ in range(steps):
        total += loss((rng.random(runs) < q) + s * rng.normal(size=runs), q, s)
    leaks = np.maximum(-np.expm1(epsilon - total), 0)
    error = 6 * leaks.std() / math.sqrt(runs)
    assert abs(poisson_accounting.steps_delta(epsilon, q, s, steps) - leaks.mean()) <= error + 1e-6


@pytest.mark.parametrize("v", [0.0, -0.5, 0.6])
@pytest.mark.parametrize(("q", "s", "steps", "epsilon"), [CASES[0], CASES[3]])
def test_other_records_leak_less_after_many_steps(q: float, s: float, steps: int, epsilon: float, v: float) -> None:
    other, worst = enclosure(epsilon, q, s, steps, v), enclosure(epsilon, q, s, steps)
    assert other[0] < worst[0] and other[1] < worst[1]
    assert other[0] <= poisson_accounting.steps_delta(epsilon, q, s, steps)


@pytest.mark.parametrize(("q", "s", "steps", "epsilon"), CASES)
def test_delta_is_below_every_renyi_bound(q: float, s: float, steps: int, epsilon: float) -> None:
    """E_P (P / Q)^(a - 1) bounds delta for each a > 1 (Canonne, Kamath and Steinke 2020, proposition 12)."""

    for a in (1.5, 2.0, 4.0, 8.0, 16.0):
        x = np.arange(-13 * s, 13 * s + 2 * a, 1e-3 * s)
        peaks = [math.log(p) - (x - c) ** 2 / (2 * s * s) for p, c in ((1 - q, 0), (q, 1)) if p > 0]
        log_density = np.logaddexp.reduce(peaks) - math.log(s * math.sqrt(2 * math.pi))
        moment = float(special.logsumexp(log_density + (a - 1) * loss(x, q, s))) + math.log(1e-3 * s)
        log_delta = steps * moment - (a - 1) * epsilon + a * math.log1p(-1 / a) - math.log(a - 1)
        assert (
            poisson_accounting.steps_delta(epsilon, q, s, steps) <= math.exp(min(0.0, log_delta)) * (1 + 1e-6) + 1e-11
        )


@pytest.mark.parametrize(("bound", "q"), [(1, Fraction(1, 2)), (4, Fraction(3, 10)), (16, Fraction(1))])
def test_integer_noise_keeps_its_promise_on_integers(bound: int, q: Fraction) -> None:
    """Two steps on a line, all outcomes added up: what the discrete Gaussian leaks is under the promised delta."""
    epsilon, delta = Fraction(1), Fraction(1, 10**3)
    variance = poisson_accounting.variance(epsilon, delta, sampling=q, steps=2, dimension=1, bound=bound)
    reach = math.ceil(12 * math.sqrt(variance)) + bound
    noise = np.exp(-(np.arange(-reach - bound, reach + bound + 1.0) ** 2) / (2 * float(variance)))
    noise /= noise.sum()
    middle = noise[bound:-bound]
    first = (1 - float(q)) * middle + float(q) * noise[: -2 * bound]  # shifted up
    second = (1 - float(q)) * middle + float(q) * noise[2 * bound :]
    gap = np.outer(first, first) - math.exp(epsilon) * np.outer(second, second)
    leak = float(gap[gap > 0].sum())
    assert leak <= delta
    assert leak >= delta / 1.5 or bound < 16  # coarse lattices are given more noise than they need
