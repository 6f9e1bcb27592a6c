"""Paper 2's real tables: test errors of released data, by the official metric and by an honest one.

Official, as the code has it: columns and label in [0, 1], no intercept, noise of deviation 2 sqrt(ceil(d / m)) sigma
with m = 5 parties (10 from 20 features on), predictions clipped to [-1, 1], and of RMGM the k with the least mean test
error. Honest: columns in [-1, 1] with a column of ones, noise of each party for its own columns, analytic, as in
`protocols.data_release.plan`, k by a rule that knows no data, predictions as they are. The gram release has the same
guarantee for a whole record as these together. Errors are mean squared ones of the label in [0, 1], both times.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np

from launch.reproduce.release_simulation import (
    MOST_MIXED,
    mixed,
    mixed_gaussian,
    noisy_moments,
    noisy_rows,
    weights_of,
)
from launch.reproduce.release_synthetic import DELTA, EPSILONS, sigma
from protocols import datasets
from protocols.data_release.fit import RIDGE, shrinkage
from protocols.data_release.plan import ReleasePlan
from protocols.evaluation import split
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.functional.quadratic import minimise
from protocols.public_coding import Dataset
from protocols.schema import Column, Floats, Schema
from smpc.cast import Cast

TABLES: Mapping[str, Callable[[Path], Dataset]] = {
    "insurance": datasets.insurance,
    "bike": datasets.bike,
    "superconductor": datasets.superconductor,
    "gpu_sgemm": datasets.gpu_sgemm,
    "MSD-12": datasets.year_msd,
}
OFFICIAL_ROWS = (100, 300, 1000, 3000, 10_000)
OLS, ZERO, MIDDLE = "OLS", "predict zero", "predict the middle"
BGM, DGM, FLOOR, RMGM, SHRUNK = "BGM", "DGM", "DGM, floor", "RMGM", "RMGM, shrunk"
GRAM, POSTERIOR = "gram, AdaSSP", "gram, posterior"

ByMethod = dict[tuple[str, Fraction | None], list[float]]  # method, epsilon


@dataclass
class Errors:
    """Test errors of every seed, by method and epsilon; of the official RMGM for every k."""

    official: ByMethod = field(default_factory=lambda: defaultdict(list))
    honest: ByMethod = field(default_factory=lambda: defaultdict(list))
    mixed: dict[tuple[Fraction, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    eigenvalues: list[float] = field(default_factory=list)  # of the debiased DGM at the first epsilon, least in size

    def best_rows(self, epsilon: Fraction) -> int:
        """The k with the least mean test error: what the official numbers take."""
        return min(OFFICIAL_ROWS, key=lambda k: float(np.mean(self.mixed[epsilon, k])))


class Table:
    """A data set among parties, the label at the last one."""

    def __init__(self, data: Dataset) -> None:
        x, y = data.scaled()
        self.unit = np.column_stack([np.ones(len(y)), (x + 1) / 2, (y + 1) / 2])
        self.features = x.shape[1]
        self.parties = 5 if self.features < 20 else 10
        parts = np.array_split([f"x{i}" for i in range(self.features)], self.parties)
        self._held = {f"P{p + 1}": tuple(Column(str(name), -1, 1) for name in part) for p, part in enumerate(parts)}
        self.records = len(split(len(y), 0)[0])

    @cached_property
    def schema(self) -> Schema:
        """Of the training rows."""
        return Schema(self.records, self._held, f"P{self.parties}", Column("y", -1, 1))

    @cached_property
    def plans(self) -> dict[Fraction, ReleasePlan]:
        """RMGM as we release it."""
        return {e: ReleasePlan.make(self.schema, epsilon=e, delta=DELTA) for e in EPSILONS}

    @cached_property
    def gram_plans(self) -> dict[Fraction, Plan]:
        """Gram releases with the guarantee that these have for a whole record."""
        cast = Cast(tuple(self.schema.features), dealer=None)
        options = Options(mechanism="gaussian", delta=DELTA)
        plans = {}
        for epsilon, plan in self.plans.items():
            whole = Fraction(plan.guarantee(cast).worst(len(cast.parties) - 1).epsilon).limit_denominator(10**6)
            plans[epsilon] = Plan.make(self.schema, epsilon=whole, options=options)
        return plans

    @property
    def official_deviation(self) -> float:
        """In units of the printed sigma."""
        return 2 * math.sqrt(math.ceil(self.features / self.parties))


def measure(table: Table, seeds: int) -> Errors:
    """Both metrics on `seeds` splits, each with draws of its own."""
    found = Errors()
    for seed in range(seeds):
        train, test = split(len(table.unit), seed)
        rng = np.random.default_rng([len(train), seed])
        data = table.unit[train]
        most = max(*OFFICIAL_ROWS, *(plan.rows for plan in table.plans.values()))
        gram = data.T @ data
        mix = mixed(data, most, rng.bytes(32)) if len(data) <= MOST_MIXED else mixed_gaussian(gram, most, rng)
        _official(table, gram, mix, table.unit[test], rng, found)
        _honest(table, gram, mix, table.unit[test], rng, found)
    return found


def _official(table: Table, gram: Floats, mix: Floats, test: Floats, rng: np.random.Generator, found: Errors) -> None:
    inner, none, n = gram[1:, 1:], np.zeros(table.features), table.records

    def error(weights: Floats) -> float:
        return float(np.mean((np.clip(test[:, 1:-1] @ weights, -1, 1) - test[:, -1]) ** 2))

    found.official[ZERO, None].append(error(none))
    found.official[OLS, None].append(error(weights_of(inner, n, "ols", RIDGE, none, n)))
    for epsilon in EPSILONS:
        deviations = np.full(table.features + 1, table.official_deviation * sigma(epsilon))
        moments = noisy_moments(inner, n, deviations, rng)
        lifted = deviations[:-1] ** 2
        for method, solver in ((BGM, "ols"), (DGM, "debiased")):
            found.official[method, epsilon].append(error(weights_of(moments, n, solver, RIDGE, lifted, n)))
        if epsilon == EPSILONS[0]:
            values = np.linalg.eigvalsh(moments[:-1, :-1] / n - np.diag(lifted))
            found.eigenvalues.append(float(np.abs(values).min()))
        for k in OFFICIAL_ROWS:
            rows = noisy_rows(mix[:, 1:], k, deviations, rng)
            found.mixed[epsilon, k].append(error(weights_of(rows.T @ rows, n, "ols", RIDGE, none, k)))


def _honest(table: Table, gram: Floats, mix: Floats, test: Floats, rng: np.random.Generator, found: Errors) -> None:
    size, n = table.features + 2, table.records
    signed = np.diag([1.0, *[2.0] * (size - 1)])
    signed[0, 1:] = -1.0  # x in [0, 1] is 2 x - 1 in [-1, 1], by the column of ones
    gram, mix, test = signed.T @ gram @ signed, mix @ signed, test @ signed

    def error(weights: Floats) -> float:
        return float(np.mean((test[:, :-1] @ weights - test[:, -1]) ** 2)) / 4

    none = np.zeros(size - 1)
    found.honest[MIDDLE, None].append(error(none))
    found.honest[OLS, None].append(error(weights_of(gram, n, "ols", 0.0, none, n)))
    for epsilon, plan in table.plans.items():
        variances = [plan.noise_variance(p) for p, columns in table.schema.features.items() for _ in columns]
        variances = [0.0, *variances, plan.noise_variance(table.schema.label_holder)]
        deviations, lifted = np.sqrt(variances), np.array(variances[:-1])
        moments = noisy_moments(gram, n, deviations, rng)
        for method, solver in ((BGM, "ols"), (FLOOR, "floor")):
            found.honest[method, epsilon].append(error(weights_of(moments, n, solver, RIDGE, lifted, n)))
        rows = noisy_rows(mix, plan.rows, deviations, rng)
        for method, ridge in ((RMGM, RIDGE), (SHRUNK, RIDGE + shrinkage(variances[-1], n))):
            found.honest[method, epsilon].append(error(weights_of(rows.T @ rows, n, "ols", ridge, none, plan.rows)))
        noise = table.gram_plans[epsilon].deviations
        drawn = np.triu(rng.standard_normal((size, size)) * noise)
        noisy = np.clip(gram + drawn + np.triu(drawn, 1).T, -n, n)
        noisy[0, 0], noisy[-1, -1] = n, 0.0
        for method, repair in ((GRAM, "adassp"), (POSTERIOR, "posterior")):
            found.honest[method, epsilon].append(error(minimise(noisy, size - 1, repair, noise).weights))
