"""No process of a run reads an un-noised value, a column, or any single party's noise or share, whatever it adds up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from protocols.functional.options import Options
from protocols.functional.plan import Plan
from tests.conftest import Pools
from tests.protocols.opened import NOISY, assert_nothing_else_is_read, observed_fit
from tests.support import schema, tables

pytestmark = pytest.mark.mpc

OF = schema(40, {"p0": 2, "p1": 1, "p2": 2}, "p1")
PLANS = {
    "laplace": Plan.make(OF, epsilon=Fraction(1)),
    "gamma-norm": Plan.make(OF, epsilon=Fraction(1), options=Options(mechanism="gamma-norm")),
}
SEEN = {
    "reveal without re-sharing": r"server reads the (share|noise) of p\d from received \d: reveal",
    "noise after opening": r"server reads the (un-noised coefficients|noise of p\d) from received",
    "masks of zero": r"p\d reads the columns of p\d from received \d: masked columns of p\d",
    "data to the dealer": "p1 sent 'masked columns' to the dealer",
}


def check(pools: Pools, plan: Plan, leak: str | None) -> dict[str, Any]:
    values = tables(OF)
    views = pools.run(3, observed_fit, record=True, values=values, plan=plan, leak=leak)
    columns = {party: plan.prepare(party, table) for party, table in values.items()}
    assert_nothing_else_is_read(views, columns, plan, "dealer")
    return views


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_nothing_but_the_noisy_coefficients_can_be_read(pools: Pools, plan: Plan) -> None:
    views = check(pools, plan, None)
    labels = {me: {label for _, label, _ in view.received} for me, view in views.items()}
    assert labels["server"] == {NOISY}
    assert labels["p0"] == {"masked columns", "model"}
    assert labels["p1"] == labels["p2"] == {"masked columns", "correction", "model"}


@pytest.mark.parametrize(("leak", "seen"), SEEN.items(), ids=SEEN.keys())
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_the_check_sees_a_leak(pools: Pools, plan: Plan, leak: str, seen: str) -> None:
    with pytest.raises(AssertionError, match=seen):
        check(pools, plan, leak)
