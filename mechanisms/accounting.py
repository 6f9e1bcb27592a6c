"""What several releases about the same units cost together: the least of several proofs, with the name of the proof.

- pure sum: epsilons add up, exactly, as fractions;
- zCDP: an epsilon-DP release is epsilon^2 / 2, a Gaussian l2^2 / (2 variance); the sum converts at delta;
- analytic Gaussian: Gaussians together are one Gaussian with mu^2 = sum l2^2 / variance;
- PLD: numerical convolution of privacy loss distributions (dp-accounting, pessimistic rounding), in which a pure
  release stands as randomised response, which no epsilon-DP mechanism exceeds (Kairouz, Oh and Viswanath 2015).

dp-accounting turns NaN noise into epsilon 0; nothing reaches it here that is not a checked positive number, and what it
returns is checked again. It is imported on use: that takes a second.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mechanisms import validate
from mechanisms.gaussian_privacy import GaussianLoss, Transfer, analytic_delta, zcdp_epsilon

_GRID = 2**18  # points of the convolution grid
_FLOAT_SLACK = Fraction(1, 10**9)  # for the rounding of sums and transforms in float64
_BISECTIONS = 40


@dataclass(frozen=True)
class PureLoss:
    """One epsilon-DP release, of any mechanism."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        validate.epsilon(validate.fraction("epsilon", self.epsilon), allow_weak=True)


Loss = PureLoss | GaussianLoss


@dataclass(frozen=True)
class Spent:
    """(epsilon, delta) of everything together, and the accountant that proved it."""

    epsilon: Fraction
    delta: Fraction
    accountant: str


def compose(losses: Sequence[Loss], delta: Fraction | None = None) -> Spent:
    """The smallest epsilon at `delta` that an accountant proves; without a delta the pure sum.

    Raises ValueError without releases, for Gaussians without a delta, and where only epsilon 0 could be said.
    """
    if not losses:
        raise ValueError("losses=[] are none: give at least one release")
    pure = [loss.epsilon for loss in losses if isinstance(loss, PureLoss)]
    gaussians = [loss for loss in losses if isinstance(loss, GaussianLoss)]
    found = []
    if not gaussians:
        found.append(Spent(sum(pure, Fraction(0)), Fraction(0), "pure sum"))
    if delta is None:
        if gaussians:
            raise ValueError("delta=None: Gaussian noise has no pure epsilon, give a delta in (0, 1)")
        return found[0]
    risk = validate.delta(delta)
    rho = sum((e * e / 2 for e in pure), Fraction(0)) + sum((g.rho for g in gaussians), Fraction(0))
    found.append(Spent(zcdp_epsilon(rho, risk), risk, "zCDP"))
    if not pure:
        found += _analytic(gaussians, risk)
    if len(losses) > 1:
        found += _pld(pure, gaussians, risk)
    told = [spent for spent in found if spent.epsilon > 0]
    if not told:
        raise ValueError(f"delta={delta} alone covers these releases, epsilon would be 0: give a smaller delta")
    return min(told, key=lambda spent: spent.epsilon)


def _analytic(gaussians: Sequence[GaussianLoss], delta: Fraction) -> list[Spent]:
    high = Fraction(1)
    while analytic_delta(high, gaussians) > delta:
        high *= 2
        if high > 2**10:
            return []
    low = Fraction(0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if analytic_delta(middle, gaussians) <= delta else (middle, high)
    return [Spent(high, delta, "analytic Gaussian")]


def _pld(pure: Sequence[Fraction], gaussians: Sequence[GaussianLoss], delta: Fraction) -> list[Spent]:
    """The convolution, on a grid fine enough for the smallest loss and small enough for memory."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    transfer = Transfer.of(gaussians)
    if transfer is None:
        return []
    typical = [float(e) for e in pure] + [math.sqrt(2 * g.rho) for g in gaussians]
    interval = max(min(typical) / 2**10, 4 * (sum(float(e) for e in pure) + 12 * math.hypot(*typical)) / _GRID)
    parts: list[Any] = []
    for epsilon, count in Counter(pure).items():
        response = pld.from_randomized_response(
            noise_parameter=2 / (1 + math.exp(float(epsilon) * (1 + 1e-12))),
            num_buckets=2,
            value_discretization_interval=interval,
        )
        parts.append(response.self_compose(count))
    if gaussians:
        mu = math.sqrt(sum(2 * g.rho for g in gaussians))
        parts.append(pld.from_gaussian_mechanism((1 - 1e-12) / mu, value_discretization_interval=interval))
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return _read(total, transfer, delta)


def _read(total: Any, transfer: Transfer, delta: Fraction) -> list[Spent]:
    """Epsilon of a distribution after the transfer to discrete noise, by lowering delta until the bound fits."""
    target = delta
    for _ in range(3):
        value = float(total.get_epsilon_for_delta(float(target)))
        if not math.isfinite(value) or value <= 0:
            return []
        inner = Fraction(value) * (1 + _FLOAT_SLACK)
        excess = transfer.delta(inner, target) / delta
        if excess <= 1:
            return [Spent(inner + transfer.extra, delta, "PLD")]
        target = target / excess * (1 - _FLOAT_SLACK)
    return []
