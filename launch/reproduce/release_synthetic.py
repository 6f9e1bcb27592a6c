"""Paper 2's synthetic data: distances to the true weights, for many seeds, of releases by six parties.

Ten features, uniform on [-1, 1], two at each of five parties; weights uniform on [-1/10, 1/10]; the label, at the sixth
party, is the features' sum with these weights, exactly. Deviation of a released number, as printed: 2 sqrt(2) sigma,
sigma = sqrt(2 ln(1.25 / delta)) / epsilon, delta = 1e-5.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np

from launch.reproduce.release_simulation import (
    MOST_MIXED,
    mixed,
    mixed_gaussian,
    noisy_moments,
    noisy_rows,
    weights_of,
)
from protocols.data_release.mixing_rows import RULES, mixing_rows
from protocols.data_release.plan import ReleasePlan
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.functional.quadratic import minimise
from protocols.schema import Column, Floats, Schema
from smpc.cast import Cast

FEATURES, WIDEST = 10, 2
DELTA = Fraction(1, 10**5)
EPSILONS = (Fraction(1), Fraction(3, 10), Fraction(1, 10))
RIDGE = 1e-4  # what the official code adds; the paper says 1e-5
GRAM, BGM, DGM, FLOOR, OLS, ZERO = "gram", "BGM", "DGM", "DGM, floor", "OLS", "predict zero"
NORMAL = "RMGM official, normal rows"

Key = tuple[str, Fraction | None, int]  # method, epsilon, records


def sigma(epsilon: Fraction) -> float:
    """The printed one."""
    return math.sqrt(2 * math.log(1.25 / float(DELTA))) / float(epsilon)


def rmgm(rule: str) -> str:
    """The name of RMGM with k by this rule."""
    return f"RMGM {rule}"


def schema(records: int) -> Schema:
    """Five parties with two features each, a sixth with the label."""
    features = {f"P{p + 1}": tuple(Column(f"x{2 * p + i + 1}", -1, 1) for i in range(2)) for p in range(5)}
    return Schema(records, {**features, "P6": ()}, "P6", Column("y", -1, 1))


@cache
def joint_epsilon(epsilon: Fraction) -> Fraction:
    """What the printed release at this epsilon of each party costs a whole record."""
    plan = ReleasePlan.make(
        schema(10**4), epsilon=epsilon, delta=DELTA, sigma="classical", sensitivity="paper", rows=100
    )
    worst = plan.guarantee(Cast(tuple(plan.schema.features), dealer=None)).worst(5)
    return Fraction(worst.epsilon).limit_denominator(10**6)


@cache
def deviations_of_gram(records: int, epsilon: Fraction) -> Floats:
    """The noise of our gram release at the same guarantee for a whole record."""
    options = Options(mechanism="gaussian", delta=DELTA)
    return Plan.make(schema(records), epsilon=joint_epsilon(epsilon), options=options).deviations


@cache
def rows_by_rule(records: int, epsilon: Fraction) -> dict[str, int]:
    """k of every rule, at the printed sigma."""
    variance = Fraction(sigma(epsilon)) ** 2
    return {
        rule: mixing_rows(rule, records, FEATURES, widest=WIDEST, variance=variance, noise=WIDEST * variance)
        for rule in RULES
    }


@dataclass
class Distances:
    """|w - w*| of every seed, by method, epsilon and records; smallest absolute eigenvalues where asked for."""

    of: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))
    eigenvalues: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, method: str, epsilon: Fraction | None, records: int, weights: Floats, truth: Floats) -> None:
        self.of[method, epsilon, records].append(float(np.linalg.norm(weights - truth)))


def measure(sizes: Sequence[int], seeds: int, say: Callable[[str], None]) -> Distances:
    """All methods, `seeds` times for every number of records."""
    found = Distances()
    for records in sizes:
        say(f"synthetic data, {records:,} records, {seeds} seeds")
        for seed in range(seeds):
            _once(records, np.random.default_rng([records, seed]), found)
    return found


def _once(records: int, rng: np.random.Generator, found: Distances) -> None:
    truth = rng.uniform(-1 / FEATURES, 1 / FEATURES, FEATURES)
    most = max(max(rows_by_rule(records, epsilon).values()) for epsilon in EPSILONS)
    if records <= MOST_MIXED:
        x = rng.uniform(-1, 1, (records, FEATURES))
        gram = _with_label(x.T @ x, truth)
        mix = mixed(np.column_stack([x, x @ truth]), most, rng.bytes(32))
    else:
        gram = _with_label(_normal_gram(records, rng), truth)
        mix = mixed_gaussian(gram, most, rng)
    none = np.zeros(FEATURES)
    found.add(ZERO, None, records, none, truth)
    found.add(OLS, None, records, weights_of(gram, records, "ols", RIDGE, none, records), truth)
    normal = None
    if records == MOST_MIXED:  # both ways
        normal = mixed_gaussian(_with_label(_normal_gram(records, rng), truth), most, rng)
    for epsilon in EPSILONS:
        deviations = np.full(FEATURES + 1, 2 * math.sqrt(WIDEST) * sigma(epsilon))
        by_rule = rows_by_rule(records, epsilon)
        for rule, k in by_rule.items():
            found.add(rmgm(rule), epsilon, records, _mixed_weights(mix, k, records, deviations, rng), truth)
        if normal is not None:
            weights = _mixed_weights(normal, by_rule["official"], records, deviations, rng)
            found.add(NORMAL, epsilon, records, weights, truth)
        _unmixed(gram, records, deviations, epsilon, truth, rng, found)
        noisy = _noisy_gram(gram, records, deviations_of_gram(records, epsilon), rng)
        minimum = minimise(noisy, FEATURES + 1, "adassp", deviations_of_gram(records, epsilon))
        found.add(GRAM, epsilon, records, minimum.weights[1:], truth)


def _with_label(gram: Floats, truth: Floats) -> Floats:
    """Second moments of the features and of the label that they determine."""
    slope = gram @ truth
    return np.block([[gram, slope[:, None]], [slope[None], np.array([[truth @ slope]])]])


def _normal_gram(records: int, rng: np.random.Generator) -> Floats:
    """X'X of uniform features: sums of squares have mean 1/3, variance 4/45 a record; of products 0 and 1/9."""
    upper = np.triu(rng.standard_normal((FEATURES, FEATURES)), 1) / 3
    diagonal = rng.standard_normal(FEATURES) * math.sqrt(4 / 45)
    noise = upper + upper.T + np.diag(diagonal)
    gram: Floats = records / 3 * np.eye(FEATURES) + math.sqrt(records) * noise
    return gram


def _mixed_weights(mix: Floats, k: int, records: int, deviations: Floats, rng: np.random.Generator) -> Floats:
    rows = noisy_rows(mix, k, deviations, rng)
    return weights_of(rows.T @ rows, records, "ols", RIDGE, np.zeros(FEATURES), k)


def _unmixed(
    gram: Floats,
    records: int,
    deviations: Floats,
    epsilon: Fraction,
    truth: Floats,
    rng: np.random.Generator,
    found: Distances,
) -> None:
    """BGM, DGM and DGM with a floor, from the same release."""
    moments = noisy_moments(gram, records, deviations, rng)
    lifted = deviations[:-1] ** 2
    for method, solver in ((BGM, "ols"), (DGM, "debiased"), (FLOOR, "floor")):
        found.add(method, epsilon, records, weights_of(moments, records, solver, RIDGE, lifted, records), truth)
    values = np.linalg.eigvalsh(moments[:-1, :-1] / records)
    debiased = np.linalg.eigvalsh(moments[:-1, :-1] / records - np.diag(lifted))
    found.eigenvalues[BGM, epsilon, records].append(float(np.abs(values).min()))
    found.eigenvalues[DGM, epsilon, records].append(float(np.abs(debiased).min()))


def _noisy_gram(gram: Floats, records: int, deviations: Floats, rng: np.random.Generator) -> Floats:
    """What the server has of the gram release: the sums with the constant column are 0 here but for noise."""
    size = FEATURES + 2
    exact = np.zeros((size, size))
    exact[1:, 1:] = gram
    exact[-1, -1] = 0.0  # the label's square is not released
    noise = np.triu(rng.standard_normal((size, size)) * deviations)
    noisy: Floats = np.clip(exact + noise + np.triu(noise, 1).T, -records, records)
    noisy[0, 0] = records
    return noisy
