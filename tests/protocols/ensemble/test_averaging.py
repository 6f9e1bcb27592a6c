"""Parameter averaging: the mean of bounded weights, bounds that no minimiser exceeds, noise of every party."""

from __future__ import annotations

import itertools
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.gamma_norm import GammaNorm
from mechanisms.guarantee import INFINITE
from protocols.ensemble import averaging, local
from protocols.ensemble.averaging import BITS, AveragingPlan, release
from protocols.ensemble.budget import Budget
from smpc import Cast, ClearSession, Held, InputError
from smpc.transcript import table
from tests.ballots.support import Election, put
from tests.protocols.ensemble.support import PARTIES, SILENT, VOTERS, Unit, rows_of

ONE = Budget(Fraction(1))


def plan_of(classes: int, columns: int, **options: object) -> tuple[Election, AveragingPlan]:
    width = 1 if classes == 2 else classes
    of = Election(PARTIES, VOTERS, width * columns, 2)
    return of, AveragingPlan(of.poll, classes, columns, ONE, **options)  # type: ignore[arg-type]


def run(of: Election, plan: AveragingPlan, weights: dict[str, np.ndarray]):  # type: ignore[no-untyped-def]
    s = ClearSession(Cast(PARTIES))
    with tempfile.TemporaryDirectory() as folder:
        boxes = of.boxes(Path(folder))
        for voter, own in weights.items():
            put(boxes, of.ballot(voter, plan.encode(own)))
        boxes[PARTIES[0]].close()
        return release(s, {p: Held(p, box) for p, box in boxes.items()}, plan), s


def some_weights(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {voter: rng.normal(size=shape) for voter in VOTERS}


@pytest.mark.parametrize(("classes", "width"), [(2, 1), (3, 3)])
def test_the_mean_of_the_weights_and_the_table(classes: int, width: int) -> None:
    of, plan = plan_of(classes, 4)
    plan.__dict__["mechanism"] = SILENT
    weights = some_weights((width, 4))
    found, s = run(of, plan, weights)
    assert s.transcript.steps() == table(release.__doc__ or "")
    assert np.allclose(found.weights, np.mean(list(weights.values()), axis=0), atol=2.0**-BITS)
    plan.__dict__["mechanism"] = Unit(Fraction(1))
    loud, _ = run(of, plan, weights)
    assert np.allclose(loud.weights - found.weights, 2 / 2**BITS / len(VOTERS), rtol=1e-6)


@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
@settings(max_examples=100)
def test_no_voters_integers_are_longer_than_the_bound(values: list[float]) -> None:
    _, plan = plan_of(2, 4)
    encoded = plan.encode(np.array([values]))
    assert sum(int(v) ** 2 for v in encoded) <= plan.longest**2
    assert np.linalg.norm(encoded / 2**BITS) == pytest.approx(
        min(np.linalg.norm(values), float(plan.longest) / 2**BITS), abs=1e-3
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("regularisation", [Fraction(1, 10_000), Fraction(1), Fraction(50)])
def test_no_minimiser_is_longer_and_noise_follows(classes: int, regularisation: Fraction) -> None:
    rng = np.random.default_rng(5)
    bounds = {}
    for constants in ("paper", "tight"):
        _, plan = plan_of(classes, 3, constants=constants, regularisation=regularisation)
        bounds[constants] = float(plan.longest) / 2**BITS
        assert plan.mechanism == GammaNorm(2 * plan.longest)
    assert bounds["paper"] == pytest.approx((1 if classes == 2 else 2**0.5) / float(regularisation))
    assert bounds["tight"] <= bounds["paper"]
    for seed in range(20):
        x, y = rows_of(5, 2, seed), rng.integers(0, classes, 5)
        for labels in (y, np.zeros(5, dtype=np.int64)):
            weights = local.train(x, labels, classes, float(regularisation))
            assert np.linalg.norm(weights) <= bounds["tight"]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("regularisation", [Fraction(1, 10_000), Fraction(1, 10), Fraction(10)])
def test_no_two_voters_are_further_apart(classes: int, regularisation: Fraction) -> None:
    """Every voter with two samples of a small domain, before any shortening: replacing one moves no sum further."""
    _, plan = plan_of(classes, 2, constants="tight", regularisation=regularisation)
    points = [(np.array(x) / np.sqrt(2), y) for x in ((1, 1), (-1, 1), (0, 1)) for y in range(classes)]
    voters = [
        local.train(np.array([a, b]), np.array([y, z]), classes, float(regularisation))
        for (a, y), (b, z) in itertools.combinations_with_replacement(points, 2)
    ]
    furthest = max(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(voters, 2))
    bound = 2 * float(plan.longest) / 2**BITS
    assert bound / 20 <= furthest <= bound


def test_the_guarantee_holds_against_all_but_one_compute_party() -> None:
    _, plan = plan_of(2, 3)
    rows = plan.guarantee(Cast(PARTIES), 5).rows
    assert {str(r.coalition): r.epsilon for r in rows if r.epsilon != INFINITE} == dict.fromkeys(
        ("server", "server + any 1 party", "dealer + server"), Fraction(1)
    )


def test_unfit_plans_and_weights_are_refused() -> None:
    of, plan = plan_of(2, 3)
    for wrong in (np.zeros(4), np.array([1.0, np.nan, 0.0]), np.array([np.inf, 0, 0])):
        with pytest.raises(InputError, match="need 3 finite numbers"):
            plan.encode(wrong)
    with pytest.raises(InputError, match="3 entries, there are 9 weights"):
        AveragingPlan(of.poll, 3, 3, ONE)
    with pytest.raises(InputError, match="constants"):
        AveragingPlan(of.poll, 2, 3, ONE, constants="loose")
    with pytest.raises(InputError, match="leaves the ring"):
        AveragingPlan(of.poll, 2, 3, Budget(Fraction(1, 10**9)))
    assert averaging.BITS == BITS
