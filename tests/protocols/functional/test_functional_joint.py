"""The functional mechanism with joint noise: table, law of the released noise, delta in the guarantee, refusals."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.coalition import Coalition
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.joint_laplace import JointLaplace
from mechanisms.laws import discrete_laplace_law, law_p_value
from protocols.functional import protocol as functional
from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from protocols.functional.quadratic import Coefficients
from smpc import Cast, ClearSession, InputError, Shared
from smpc.ring import Integers
from smpc.transcript import table
from smpc.values import Held, value_of
from tests.support import clear_fit, held, schema, tables

ONE = Fraction(1)
WIDTHS = {"ann": 2, "bob": 1, "cid": 3}


def test_docstring_table_is_what_was_sent() -> None:
    of = schema(50, WIDTHS, "bob")
    _, s = clear_fit(of, tables(of), Plan.make(of, epsilon=ONE, noise="joint"))
    assert table(functional._noise_jointly.__doc__ or "") == s.transcript.steps()
    opened = [message for message in s.transcript.messages if message.verb == "reveal"]
    assert [message.noise for message in opened] == [("joint",)]


def joint_mechanism(plan: Plan) -> JointLaplace:
    (group,) = plan.groups
    assert isinstance(group.mechanism, JointLaplace)
    return group.mechanism


class Watching(ClearSession):
    """Keeps what is opened."""

    def __init__(self, cast: Cast) -> None:
        super().__init__(cast)
        self.shown: list[Integers] = []

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        opened = super()._reveal(shared, to)
        self.shown.append(value_of(opened))
        return opened


def test_every_coefficient_carries_one_whole_draw() -> None:
    """Nobody contributes, so nobody can subtract: the opened sums minus the exact ones are draws of the full scale."""
    of = schema(30, WIDTHS, "bob")
    values = tables(of)
    plan = Plan.make(of, epsilon=Fraction(8), noise="joint", bits=2)
    columns = np.vstack([np.full((1, of.rows), 4), *(plan.prepare(p, values[p]) for p in of.widths)])
    coefficients = Coefficients.of(of)
    exact = (columns @ columns.T)[coefficients.first, coefficients.second]
    differences = []
    for _ in range(400):
        s = Watching(Cast(tuple(of.widths)))
        fit(s, held(s, values), plan)
        differences.append(s.shown[0] - exact)
    scale = joint_mechanism(plan).scale
    assert law_p_value(np.concatenate(differences), discrete_laplace_law(scale)) > 1e-9
    (shares,) = Plan.make(of, epsilon=Fraction(8), noise="shares", bits=2).groups
    assert shares.mechanism == DiscreteLaplace(scale)


def test_delta_of_the_finite_law_is_in_the_guarantee() -> None:
    of = schema(100, WIDTHS, "bob")
    plan = Plan.make(of, epsilon=ONE, noise="joint")
    count = len(Coefficients.of(of))
    formula = count * (1 + math.e) * float(joint_mechanism(plan).total_variation)
    release, _ = clear_fit(of, tables(of), plan)
    rows = json.loads(release.guarantee.to_json())["rows"]
    finite = [row for row in rows if row["epsilon"] != "inf"]
    assert {Fraction(row["epsilon"]) for row in finite} == {1, *plan.per_party.values()}
    shares = Plan.make(of, epsilon=ONE, noise="shares", bits=plan.bits)
    assert plan.per_party == shares.per_party, "the same scale, and so the same share of epsilon"
    assert {Fraction(row["delta"]) for row in finite} == {plan.delta}
    assert formula <= float(plan.delta) <= formula * 1.001 < 2.0**-40
    assert all("joint discrete Laplace" in row["mechanism"] for row in rows)
    assert release.guarantee.worst(2).delta == plan.delta
    coalitions = {row.coalition for row in release.guarantee.rows if row.epsilon == ONE}
    assert Coalition(frozenset({"server"}), 2) in coalitions  # server and all parties but one
    assert Coalition(frozenset({"server", "dealer"})) in coalitions


def test_exact_noise_has_no_delta() -> None:
    assert Plan.make(schema(100, WIDTHS, "bob"), epsilon=ONE, noise="shares").delta == 0


def test_large_epsilon_is_refused_before_anything_runs() -> None:
    of = schema(100, WIDTHS, "bob")
    with pytest.raises(InputError, match=r"^epsilon = 40: joint noise would cost delta .* take noise = 'shares'$"):
        Plan.make(of, epsilon=Fraction(40), noise="joint", bits=None)
    assert Plan.make(of, epsilon=Fraction(10), noise="joint").delta < Fraction(1, 2**30)


def test_one_draw_needs_less_room_than_two() -> None:
    of = schema(10**6, {"ann": 3, "bob": 3}, "bob")
    joint, shares = (Plan.make(of, epsilon=Fraction(1, 20), noise=noise) for noise in ("joint", "shares"))
    assert joint.bits >= shares.bits
    for plan in (joint, shares):
        plan.check_room()
    with pytest.raises(InputError, match="can leave the ring"):
        loud = replace(joint.groups[0], mechanism=JointLaplace(Fraction(2**60), 64))
        replace(joint, groups=(loud,)).check_room()
