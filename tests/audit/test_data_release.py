"""Audit of data releases: the whole text on worst-case neighbours, against the claims for a party and for a record."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.audit import Bound, mu_lower_bound
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.guarantee import Guarantee
from protocols.data_release.plan import ReleasePlan
from protocols.data_release.protocol import script
from protocols.schema import Column, Floats, Schema
from smpc import Cast, ClearSession
from smpc.ring import Integers
from smpc.values import Held, value_of

SCHEMA = Schema(6, {"a": (Column("u", -1, 1), Column("v", -1, 1)), "b": (Column("w", -1, 1),)}, "b", Column("y", -1, 1))
RUNS = 800
GUARANTEE = Guarantee.for_release(
    order="shares", epsilon=1, parties=("a", "b"), server="server", dealer=None, mechanism="as claimed elsewhere"
)
Tables = Mapping[str, Floats]


class KnownMatrix(ClearSession):
    """The adversary chose B: a guarantee for every B is one for this one, too."""

    def _toss(self) -> dict[str, Held[bytes]]:
        return {party: Held(party, bytes(range(32))) for party in self.cast.parties}


def view(plan: ReleasePlan, tables: Tables) -> Integers:
    """All released integers, as one vector."""
    s = KnownMatrix(Cast(("a", "b"), dealer=None))
    held = {party: Held(party, table) for party, table in tables.items()}
    data: Any = script(plan.method)(s, held, plan, "r", GUARANTEE)
    exact: Integers = np.round(value_of(data["server"]).values[:, 1:] * plan.unit).astype(np.int64)
    return exact.ravel()


def neighbours(changing: tuple[str, ...]) -> tuple[Tables, Tables]:
    """Record 3 goes from the lowest values to the highest, in all columns of these parties."""
    first = {party: np.full((2, 6), 0.25) for party in ("a", "b")}
    second = {party: table.copy() for party, table in first.items()}
    for party in changing:
        first[party][:, 3], second[party][:, 3] = -1, 1
    return first, second


def quiet(plan: ReleasePlan) -> ReleasePlan:
    return replace(plan, mechanisms={p: DiscreteGaussian(Fraction(1, 2**124)) for p in plan.mechanisms})


def shown(plan: ReleasePlan, changing: tuple[str, ...], claimed: float) -> Bound:
    """The mu that the best test of the two views demonstrates: their projection on the exact difference."""
    pair = neighbours(changing)
    exact = [view(quiet(plan), tables).astype(np.float64) for tables in pair]
    # every party's numbers in units of its noise: then the projection is the likelihood ratio
    deviations = np.array(
        [math.sqrt(plan.mechanisms[p].variance) for p in ("a", "a", "b", "b")] * plan.rows, dtype=np.float64
    )
    direction = (exact[1] - exact[0]) / deviations**2
    middle = float(direction @ (exact[0] + exact[1]) / 2)
    outcomes = [
        np.array([round(1000 * (float(direction @ view(plan, tables)) - middle)) for _ in range(RUNS)])
        for tables in pair
    ]
    bound = mu_lower_bound(*outcomes, 0)
    assert float(np.linalg.norm((exact[1] - exact[0]) / deviations)) == pytest.approx(claimed, rel=1e-6)
    return bound


def mu(plan: ReleasePlan, parties: tuple[str, ...]) -> float:
    return math.sqrt(sum(2 * plan.loss(party).rho for party in parties))


@pytest.mark.parametrize(("method", "changing"), [("rmgm", ("a",)), ("rmgm", ("a", "b")), ("dgm", ("a", "b"))])
def test_no_more_is_shown_than_claimed(method: str, changing: tuple[str, ...]) -> None:
    plan = ReleasePlan.make(SCHEMA, epsilon=Fraction(8), delta=Fraction(1, 10**5), method=method, rows=4)
    claimed = mu(plan, changing)
    assert 0.5 * claimed < shown(plan, changing, claimed).value <= claimed


def test_half_the_noise_is_noticed() -> None:
    plan = ReleasePlan.make(SCHEMA, epsilon=Fraction(8), delta=Fraction(1, 10**5), rows=4)
    halved = replace(plan, mechanisms={p: DiscreteGaussian(m.variance / 4) for p, m in plan.mechanisms.items()})
    assert shown(halved, ("a",), 2 * mu(plan, ("a",))).value > mu(plan, ("a",))
