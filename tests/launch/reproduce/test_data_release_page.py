"""Paper 2's page: published numbers at few seeds, the simulation against the protocol itself, what the page has."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from launch.reproduce import data_release
from launch.reproduce.release_figure2 import DISTANCE, OFFICIAL, SIZES
from launch.reproduce.release_synthetic import (
    BGM,
    DELTA,
    DGM,
    EPSILONS,
    GRAM,
    RIDGE,
    ZERO,
    Distances,
    joint_epsilon,
    measure,
    rows_by_rule,
    schema,
)
from protocols.averages import mean
from protocols.data_release.fit import solve
from protocols.data_release.plan import ReleasePlan
from protocols.data_release.protocol import release
from smpc import Cast, ClearSession
from smpc.values import Held, value_of


def quiet(line: str) -> None:
    """Nobody watches."""


@pytest.fixture(scope="module")
def found() -> Distances:
    return measure((10**4,), 100, quiet)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_published_distances_at_ten_thousand_records(found: Distances, epsilon: Fraction) -> None:
    for method in (OFFICIAL, BGM):
        ours = mean(found.of[method, epsilon, 10**4]).centre
        assert ours == pytest.approx(DISTANCE[method, epsilon][0], rel=0.15)
    zero, biased = (np.mean(found.of[key]) for key in ((ZERO, None, 10**4), (BGM, epsilon, 10**4)))
    assert abs(biased / zero - 1) < 0.12  # BGM predicts hardly anything
    assert np.median(found.of[DGM, epsilon, 10**4]) > 1  # and DGM diverges
    assert np.mean(found.of[GRAM, epsilon, 10**4]) < np.mean(found.of[OFFICIAL, epsilon, 10**4]) / 3


def test_joint_epsilon_of_the_printed_settings() -> None:
    assert [round(float(joint_epsilon(e)), 3) for e in EPSILONS] == [1.922, 0.512, 0.154]


def test_the_protocol_itself_is_as_far_from_the_truth() -> None:
    """Sixteen runs of `release` with exact integer noise, against the simulation."""
    n, epsilon, runs = 10**4, Fraction(1), 16
    of = schema(n)
    k = rows_by_rule(n, epsilon)["official"]
    plan = ReleasePlan.make(of, epsilon=epsilon, delta=DELTA, sigma="classical", sensitivity="paper", rows=k)
    distances = []
    for seed in range(runs):
        rng = np.random.default_rng([seed, 5])
        x, truth = rng.uniform(-1, 1, (10, n)), rng.uniform(-0.1, 0.1, 10)
        tables = {f"P{p + 1}": Held(f"P{p + 1}", x[2 * p : 2 * p + 2]) for p in range(5)}
        s = ClearSession(Cast(tuple(of.features), dealer=None))
        done = release(s, {**tables, "P6": Held("P6", (truth @ x)[None])}, plan, "r")
        rows = value_of(done.data["server"]).values[:, 1:]
        moments = rows.T @ rows / n
        weights, _ = solve(moments[:-1, :-1], moments[:-1, -1], np.zeros(10), "ols", RIDGE, k)
        distances.append(float(np.linalg.norm(weights - truth)))
    ours, simulated = mean(distances), mean(measure((n,), 60, quiet).of[OFFICIAL, epsilon, n])
    assert ours.low < simulated.high and simulated.low < ours.high


def test_the_page_has_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_release, "QUICK_SIZES", (10**4, 10**5))
    monkeypatch.setattr(data_release, "SEEDS", {True: 3})
    monkeypatch.delenv("SMPC_DATA", raising=False)
    page = data_release.page(True, quiet)
    text = page.markdown()
    parts = ("Figure 2", "published", "DGM, median", "slope in n", "| 1 | 1.922 |", "times closer", "SMPC_DATA was not")
    for part in parts:
        assert part in text, part
    page.write(tmp_path / "out")
    figures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert figures == {"distance.png", "over-0.1.png", "over-0.2.png", "over-0.5.png", "eigenvalues.png"}
    assert all(len(values) == len(SIZES) for values in DISTANCE.values())
