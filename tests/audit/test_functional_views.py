"""The whole functional mechanism audited: what the server, its coalitions and each peer are shown, against the claims.

Two-row tables whose second record differs, in the way that attains the sensitivity; `functional.fit` in the clear
session, which releases the same integers as the secure one. Evidence at alpha = 1e-9; the same harness catches too
little noise, a contribution that is left out, and the paper's order from a peer's seat. (How much noise is exactly
right is for the law of the released noise: protocols/test_functional.py. A few thousand runs see factors.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.audit import _ratio, _silenced, _tables, audit
from mechanisms.audit import Bound, epsilon_lower_bound, events
from mechanisms.discrete_laplace import DiscreteLaplace
from protocols.functional import protocol as functional
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.schema import Column, Floats, Schema
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.ring import Integers
from smpc.values import Held, Noise, Shared, value_of
from tests.launch.jobs import valid_job, write_job

RUNS = 500
ONE = Fraction(1)
PARTIES = ("ann", "bob", "cid")
Tables = dict[str, Floats]
View = Callable[["Watched"], Integers]


class Watched(ClearSession):
    """Keeps what each participant is shown, what is published, and every party's draws."""

    def __init__(self, parties: tuple[str, ...]) -> None:
        super().__init__(Cast(parties))
        self.shown: dict[str, list[Integers]] = {name: [] for name in self.cast.everyone}
        self.drawn: dict[str, list[Integers]] = {name: [] for name in parties}
        self.model: Floats = np.zeros(0)

    def draw_noise(self, mechanism: Any, contributors: Any) -> Noise:
        noise = super().draw_noise(mechanism, contributors)
        for party, draws in self.drawn.items():
            draws.append(value_of(noise.draws[party]) if party in noise.draws else np.zeros(noise.size, dtype=np.int64))
        return noise

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        held = super()._reveal(shared, to)
        self.shown[to].append(value_of(held))
        return held

    def _send(self, held: Held[Any], to: str, shape: tuple[int, ...], message: str) -> Held[Any]:
        self.shown[to].append(value_of(held))
        return super()._send(held, to, shape, message)

    def _publish(self, held: Held[Any], shape: tuple[int, ...], message: str) -> Floats:
        self.model = super()._publish(held, shape, message)
        return self.model


def schema(loss: str, parties: tuple[str, ...] = PARTIES) -> Schema:
    label = Column("y", 0.0, 1.0) if loss == "logistic" else Column("y", -1.0, 3.0)
    return Schema(2, {p: (Column(f"x_{p}", -2.0, 2.0),) for p in parties}, parties[0], label)


def neighbours(of: Schema, changing: tuple[str, ...]) -> tuple[Tables, Tables]:
    """Tables that differ in the second record, at the parties `changing`."""
    upper, lower = _tables(of, upper=True), _tables(of, upper=False)
    return upper, {p: lower[p] if p in changing else upper[p] for p in of.widths}


def run(plan: Plan, tables: Tables) -> Watched:
    s = Watched(tuple(plan.schema.widths))
    functional.fit(s, {p: Held(p, table) for p, table in tables.items()}, plan)
    return s


def server(s: Watched) -> Integers:
    return np.concatenate(s.shown["server"])


def server_with_all_but(honest: str) -> View:
    """What is opened minus the colluders' draws."""

    def view(s: Watched) -> Integers:
        known = [sum(parts) for parts in zip(*(d for p, d in s.drawn.items() if p != honest), strict=True)]
        return server(s) - np.concatenate(known) if known else server(s)

    return view


def shown(plan: Plan, view: View, pair: tuple[Tables, Tables], runs: int = RUNS) -> Bound:
    """The epsilon that `view` demonstrably gives away between the two tables."""
    exact = [view(run(_silenced(plan), tables)) for tables in pair]
    laplace = plan.options.mechanism == "laplace"
    outcomes = [
        np.array([_ratio(view(run(plan, tables)), *exact, laplace=laplace) for _ in range(runs)], dtype=np.int64)
        for tables in pair
    ]
    spread = float(np.abs(_ratio(exact[0], *exact, laplace=laplace))) / 4
    return epsilon_lower_bound(*outcomes, events(0, spread), delta=float(plan.delta), alpha=1e-9)


VARIANTS = {
    "linear": Options(),
    "logistic": Options(loss="logistic"),
    "balanced": Options(weights="balanced", repair="posterior"),
    "paper's constants": Options(sensitivity="paper", release="ordered", repair="spectral"),
    "gamma-norm": Options(mechanism="gamma-norm"),
}


LONG = [
    *((order, name) for order in ("shares", "joint") for name in ("linear", "logistic", "balanced")),
    ("paper", "linear"),
    ("paper", "paper's constants"),
    ("shares", "gamma-norm"),
]


@pytest.mark.parametrize(
    ("order", "variant", "runs"),
    [("shares", "balanced", RUNS), *(pytest.param(*case, 10 * RUNS, marks=pytest.mark.long) for case in LONG)],
)
def test_the_server_learns_no_more_than_claimed(order: str, variant: str, runs: int) -> None:
    options = VARIANTS[variant]
    of = schema(options.loss)
    plan = Plan.make(of, epsilon=Fraction(2), noise=order, options=options)
    assert shown(plan, server, neighbours(of, PARTIES), runs).value <= 2


@pytest.mark.parametrize(
    ("variant", "honest", "runs"),
    [
        ("linear", "ann", RUNS),
        *(
            pytest.param(v, h, 10 * RUNS, marks=pytest.mark.long)
            for v in ("linear", "balanced")
            for h in ("ann", "bob")
        ),
    ],
)
def test_server_and_all_parties_but_one_learn_no_more_than_claimed(variant: str, honest: str, runs: int) -> None:
    of = schema("linear")
    plan = Plan.make(of, epsilon=Fraction(2), options=VARIANTS[variant])
    found = shown(plan, server_with_all_but(honest), neighbours(of, (honest,)), runs)
    assert found.value <= plan.per_party[honest] < 2


@pytest.mark.parametrize("order", ["shares", "joint"])
def test_a_peer_is_shown_the_model_alone(order: str) -> None:
    of = schema("linear")
    plan = Plan.make(of, epsilon=Fraction(2), noise=order)
    s = run(plan, neighbours(of, PARTIES)[0])
    assert all(not s.shown[p] for p in PARTIES) and len(s.shown["server"]) == 1


@pytest.mark.parametrize("order", [pytest.param(order, marks=pytest.mark.long) for order in ("shares", "joint")])
def test_a_peer_learns_no_more_from_the_model_than_claimed(order: str) -> None:
    of = schema("linear")
    plan = Plan.make(of, epsilon=Fraction(2), noise=order)
    pair = neighbours(of, ("ann", "cid"))  # against bob
    exact = [run(_silenced(plan), tables).model for tables in pair]
    direction = (exact[0] - exact[1]) / np.linalg.norm(exact[0] - exact[1])
    outcomes = [
        np.array([round(float((run(plan, t).model - exact[1]) @ direction) * 2**20) for _ in range(10 * RUNS)])
        for t in pair
    ]
    spread = float(np.median(np.abs(np.concatenate(outcomes)))) or 1.0
    assert epsilon_lower_bound(*outcomes, events(0, spread), delta=float(plan.delta)).value <= 2


def test_in_the_papers_order_a_peer_reads_exact_blocks() -> None:
    """The first holder of a block opens it: bob, who opens his with cid, tells two records of cid apart for sure."""
    of = schema("linear")
    plan = Plan.make(of, epsilon=Fraction(1, 10), noise="paper")
    pair = neighbours(of, ("cid",))
    for peer, finds in (("bob", True), ("cid", False)):
        blocks = [np.concatenate(run(plan, tables).shown[peer]) for tables in pair]
        again = [np.concatenate(run(plan, tables).shown[peer]) for tables in pair]
        assert all(np.array_equal(a, b) for a, b in zip(blocks, again, strict=True))  # no noise
        assert np.array_equal(*blocks) != finds or peer == "cid"
    seen = shown(plan, lambda s: np.concatenate(s.shown["bob"]), pair, 300)
    assert seen.value > 20 * 0.1


def test_too_little_noise_is_caught_in_both_views() -> None:
    of = schema("linear")
    right = Plan.make(of, epsilon=Fraction(2))
    (group,) = right.groups
    assert isinstance(group.mechanism, DiscreteLaplace)
    wrong = replace(right, groups=(replace(group, mechanism=DiscreteLaplace(group.mechanism.scale / 8)),))
    assert shown(wrong, server, neighbours(of, PARTIES)).value > 2
    found = shown(wrong, server_with_all_but("ann"), neighbours(of, ("ann",)))
    assert found.value > float(right.per_party["ann"])


def test_a_dropped_contribution_is_caught() -> None:
    """Sums across parties that only the second of two perturbs: the second and the server together see them bare."""
    of = schema("linear", ("ann", "bob"))
    plan = Plan.make(of, epsilon=Fraction(2))
    (group,) = plan.groups
    less = {"ann": group.contributors["ann"] & ~group.contributors["bob"], "bob": group.contributors["bob"]}
    wrong = replace(plan, groups=(replace(group, contributors=less),))
    found = shown(wrong, server_with_all_but("ann"), neighbours(of, ("ann",)))
    assert found.value > 2


def test_audited_rows_of_categories_are_rows() -> None:
    """One value of each category, another one in the neighbour, and sums that move by most of the sensitivity."""
    indicators = tuple(Column(f"c{i}", 0.0, 1.0, "c") for i in range(3))
    single = (Column("d1", 0.0, 1.0, "d"),)
    of = Schema(2, {"ann": (Column("x", -2.0, 2.0), *indicators), "bob": single}, "ann", Column("y", -1.0, 1.0))
    upper, lower = _tables(of, upper=True), _tables(of, upper=False)
    assert upper["ann"][1:4].tolist() == [[0, 1], [0, 0], [0, 0]]
    assert lower["ann"][1:4].tolist() == [[0, 0], [0, 1], [0, 0]]
    assert (upper["bob"].tolist(), lower["bob"].tolist()) == ([[0, 1]], [[0, 0]])
    plan = Plan.make(of, epsilon=ONE, bits=3)
    moved = np.abs(server(run(_silenced(plan), upper)) - server(run(_silenced(plan), lower))).sum()
    (group,) = plan.groups
    assert isinstance(group.mechanism, DiscreteLaplace)
    assert 0.5 * group.mechanism.scale < moved <= group.mechanism.scale


def test_the_audit_command_takes_jobs_of_classes(tmp_path: Path) -> None:
    job = valid_job()
    job["job"] |= {"loss": "logistic", "epsilon": 2, "weights": "balanced", "repair": "rescaled"}
    job["party"][1]["columns"] = {"w": [0, 10], "y": [0, 1]}
    told = audit(write_job(tmp_path, job), 1_000)
    assert told.endswith(": consistent (a lower bound: an audit can refute a guarantee, never prove it)")
    shown, most = (float(told.split(before)[1].split()[0].strip(":)")) for before in ("at least ", "show about "))
    assert shown <= most < 2 and most > 1, "1,000 runs cannot show all of it, and the line says so"
