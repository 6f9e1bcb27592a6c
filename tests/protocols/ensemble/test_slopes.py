"""Excess risks of private releases fall as M^-2 epsilon^-2, and that of the sampled objective as N^-1 (theorem 4)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.randomness import SecureRandom
from protocols.ensemble import erm
from protocols.ensemble.auxiliary import Auxiliary, unit_rows
from protocols.ensemble.budget import Budget
from protocols.ensemble.paper import PaperPlan
from protocols.ensemble.statistic import StatisticPlan
from tests.ballots.support import Election
from tests.protocols.ensemble.support import PARTIES

LAMBDA = Fraction(1, 10)  # strong enough that all M and epsilon here are in the quadratic regime
VOTERS = (500, 2_000, 20_000)
EPSILONS = (1, 4, 16)
DRAWS = 400


def population(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and the share of votes for class 1: a probabilistic target."""
    features = np.random.default_rng(seed).uniform(-1, 1, (rows, 3))
    return unit_rows(features), 1 / (1 + np.exp(-3 * features[:, 0]))[None]


def risk(x: np.ndarray, alpha: np.ndarray, w: np.ndarray) -> float:
    z = w @ x.T
    return float(np.mean(np.logaddexp(0, z) - alpha * z) + float(LAMBDA) / 2 * np.sum(w * w))


def slope(x: tuple[int, ...], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def excess(release: Callable[[int, int], list[np.ndarray]], voters: int, epsilon: int) -> float:
    """The mean over draws of the regularised risk above the minimiser's."""
    x, alpha = population(300)
    x = Auxiliary.of(x).x
    least = risk(x, alpha, erm.minimise(x, erm.statistic(x, alpha), float(LAMBDA)).weights)
    return float(np.mean([risk(x, alpha, w) - least for w in release(voters, epsilon)]))


def by_output_perturbation(voters: int, epsilon: int) -> list[np.ndarray]:
    x, alpha = population(300)
    of = Election(PARTIES, ("v0",), 300, 2)
    plan = PaperPlan(Auxiliary.of(x), of.poll, Budget(Fraction(epsilon)), "soft", "paper", LAMBDA)
    exact, (mechanism, bits) = plan.exact(alpha), plan.mechanism(voters)
    return [plan.perturbed(exact, mechanism.draw(4, SecureRandom()), bits) for _ in range(DRAWS)]


def by_statistic(voters: int, epsilon: int) -> list[np.ndarray]:
    x, alpha = population(300)
    of = Election(PARTIES, ("v0",), 300, 2)
    plan = StatisticPlan(Auxiliary.of(x), of.poll, Budget(Fraction(epsilon)), float(LAMBDA))
    sums = np.rint(voters * alpha @ plan.whitened.rows).astype(np.int64).reshape(-1)
    draws = [plan.mechanism.draw(4, SecureRandom()) + plan.mechanism.draw(4, SecureRandom()) for _ in range(DRAWS)]
    return [plan.solve(sums + noise, voters)[1] for noise in draws]


@pytest.mark.long
@pytest.mark.parametrize("release", [by_output_perturbation, by_statistic])
def test_excess_risk_falls_with_the_square_of_voters_and_of_epsilon(
    release: Callable[[int, int], list[np.ndarray]],
) -> None:
    by_voters = slope(VOTERS, [excess(release, m, 4) for m in VOTERS])
    by_epsilon = slope(EPSILONS, [excess(release, 5_000, e) for e in EPSILONS])
    print(f"{release.__name__}: M^{by_voters:.2f}, epsilon^{by_epsilon:.2f}")
    assert abs(by_voters + 2) < 0.15 and abs(by_epsilon + 2) < 0.15


@pytest.mark.long
def test_excess_risk_over_all_samples_falls_with_their_number() -> None:
    x, alpha = population(40_000)
    least = risk(x, alpha, erm.minimise(x, erm.statistic(x, alpha), float(LAMBDA)).weights)
    rng = np.random.default_rng(1)
    counts, found = (50, 200, 800, 3_200), []
    for count in counts:
        above = []
        for _ in range(120):
            part = rng.integers(0, len(x), count)
            labels = (rng.random(count) < alpha[0, part]).astype(float)[None]
            w = erm.minimise(x[part], erm.statistic(x[part], labels), float(LAMBDA), certified=False).weights
            above.append(risk(x, alpha, w) - least)
        found.append(float(np.mean(above)))
    print(f"N^{slope(counts, found):.2f}")
    assert abs(slope(counts, found) + 1) < 0.2
