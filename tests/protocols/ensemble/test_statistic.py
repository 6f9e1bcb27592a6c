"""The statistic release in the clear: exact without noise, noise of every party, guarantee, edges."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gamma_norm import GammaNorm
from mechanisms.guarantee import INFINITE
from mechanisms.randomness import SecureRandom
from protocols.ensemble import erm
from protocols.ensemble.auxiliary import BITS, Auxiliary, unit_rows
from protocols.ensemble.budget import Budget
from protocols.ensemble.statistic import StatisticPlan, release
from smpc import Cast, InputError
from smpc.transcript import table
from tests.ballots.support import Election
from tests.protocols.ensemble.support import PARTIES, SILENT, Unit, all_votes, auxiliary, election, run

ONE = Budget(Fraction(1))


def plan_of(of: Election, rows: Auxiliary, budget: Budget = ONE) -> StatisticPlan:
    return StatisticPlan(rows, of.poll, budget)


def silent(plan: StatisticPlan, mechanism: object = SILENT) -> StatisticPlan:
    plan.__dict__["mechanism"] = mechanism
    return plan


@pytest.mark.parametrize("classes", [2, 3])
def test_the_docstring_table_is_what_was_sent(classes: int) -> None:
    of = election(6, classes)
    _, s = run(release, plan_of(of, auxiliary(6)), of, all_votes(of))
    assert s.transcript.steps() == table(release.__doc__ or "")


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_without_noise_it_is_the_mean_of_vote_times_sample_and_its_minimiser(classes: int) -> None:
    of, rows = election(9, classes), auxiliary(9, 3)
    found, _ = run(release, silent(plan_of(of, rows)), of, all_votes(of))
    counts = of.counts(of.voters)
    expected = counts @ rows.x / (len(of.voters) * 9)
    assert found.statistic is not None and np.allclose(found.statistic, expected, rtol=0, atol=1e-6)
    assert np.array_equal(found.weights, erm.minimise(rows.x, found.statistic, 1e-4, certified=False).weights)
    assert found.counted == of.voters and not found.rejected and not found.missing


def test_every_party_adds_its_own_noise_to_every_entry() -> None:
    of, rows = election(4, 2), auxiliary(4)
    quiet, _ = run(release, silent(plan_of(of, rows)), of, all_votes(of))
    loud, _ = run(release, silent(plan_of(of, rows), Unit(Fraction(1))), of, all_votes(of))
    assert quiet.statistic is not None and loud.statistic is not None
    plan = plan_of(of, rows)
    step = np.full((1, rows.columns), len(PARTIES) / (2**plan.whitened.bits * len(of.voters) * 4))
    assert np.allclose(loud.statistic - quiet.statistic, plan.whitened.back(step), rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("budget", [ONE, Budget(Fraction(1), Fraction(1, 10**6))])
def test_the_share_of_noise_is_that_of_the_longest_statistic(classes: int, budget: Budget) -> None:
    """Against equal ballots of all voters, whatever they say, and the noise of all parties as it is drawn."""
    of, rows = election(3, classes), auxiliary(3, 2)
    plan = plan_of(of, rows, budget)
    ballots = [plan.weigh(of.poll.encode(np.array(labels))) for labels in product(range(classes), repeat=3)]
    longest = len(of.voters) * max(float(np.linalg.norm(ballot)) for ballot in ballots)
    random = SecureRandom()
    draws = np.array([[plan.mechanism.draw(plan.dimension, random) for _ in PARTIES] for _ in range(2_000)])
    share = draws.sum(axis=1).std() / longest
    assert plan.noise_share(len(of.voters)) == pytest.approx(share, rel=0.12)
    assert plan.noise_share(1) == pytest.approx(plan.noise_share(5) * 5)


def test_invalid_and_missing_voters_do_not_count_and_m_is_who_does() -> None:
    of, rows = election(5, 2), auxiliary(5)
    ballots = all_votes(of)
    ballots["v2"] = ballots["v2"] + 5
    del ballots["v4"]
    found, _ = run(release, silent(plan_of(of, rows)), of, ballots)
    assert (found.counted, list(found.rejected), found.missing) == (("v0", "v1", "v3"), ["v2"], ("v4",))
    assert found.statistic is not None
    assert np.allclose(found.statistic, of.counts(found.counted) @ rows.x / 15, atol=1e-6)
    assert any("M = 3 voters" in note for row in found.guarantee.rows for note in row.assumptions)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_sensitivity_is_that_of_the_integers_that_are_opened(classes: int) -> None:
    """All pairs of a voter's ballots, through the plan's own linear map."""
    of, rows = election(3, classes), auxiliary(3, 2)
    plan = plan_of(of, rows)
    opened = [plan.weigh(of.poll.encode(np.array(labels))) for labels in product(range(classes), repeat=3)]
    worst = max(int(((a - b) ** 2).sum()) for a in opened for b in opened)
    assert plan.l2**2 >= worst
    mean = float(plan.l2) / (3 * 2**plan.whitened.bits)
    assert mean <= (1 if classes == 2 else math.sqrt(2)) * 1.02  # 1/M and sqrt 2 / M, and the trace's excess


def test_noise_is_gamma_norm_or_gaussian_at_the_sensitivity() -> None:
    of, rows = election(3, 3), auxiliary(3)
    plan = plan_of(of, rows, Budget(Fraction(1, 10)))
    assert plan.mechanism == GammaNorm(plan.l2 * 10)
    gaussian = plan_of(of, rows, Budget(Fraction(1), Fraction(1, 10**6)))
    assert isinstance(gaussian.mechanism, DiscreteGaussian)
    assert float(gaussian.mechanism.variance) == pytest.approx((4.2247 * float(plan.l2)) ** 2, rel=1e-3)


@pytest.mark.parametrize("budget", [ONE, Budget(Fraction(1), Fraction(1, 10**6))])
def test_the_guarantee_holds_against_all_but_one_compute_party_and_says_who_is_protected(budget: Budget) -> None:
    of, rows = election(3, 2), auxiliary(3)
    table_ = plan_of(of, rows, budget).guarantee(Cast(PARTIES), 5)
    finite = {str(row.coalition): (row.epsilon, row.delta) for row in table_.rows if row.epsilon != INFINITE}
    assert finite.keys() == {"server", "server + any 1 party", "dealer + server"}
    assert set(finite.values()) == {(Fraction(1), budget.delta or Fraction(0))}
    assert {row.unit for row in table_.rows} == {"party"}


def boundary_cases() -> Iterator[tuple[str, np.ndarray]]:
    votes = {"tie": [0, 1, 0, 1], "unanimous": [1, 1, 1, 1], "class missing": [0, 0, 1, 1]}
    for name, labels in votes.items():
        yield name, np.array(labels)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("name", "labels"), list(boundary_cases()))
def test_ties_unanimity_and_missing_classes_are_just_counts(classes: int, name: str, labels: np.ndarray) -> None:
    """Sample 0 gets the labels of `labels`, one a voter; other samples of no voter have the last class."""
    of, rows = election(2, classes, VOTERS4), auxiliary(2)
    ballots = {v: of.poll.encode(np.array([label, 0])) for v, label in zip(of.voters, labels, strict=True)}
    found, _ = run(release, silent(plan_of(of, rows)), of, ballots)
    assert found.statistic is not None
    expected = np.add.reduce(list(ballots.values())) @ rows.x / 8
    assert np.allclose(found.statistic, expected, atol=1e-6)


VOTERS4 = ("v0", "v1", "v2", "v3")


@pytest.mark.parametrize("classes", [2, 3])
def test_one_voter_and_one_sample(classes: int) -> None:
    of, rows = election(1, classes, ("v0",)), auxiliary(1, 1)
    found, _ = run(release, plan_of(of, rows), of, all_votes(of))
    assert np.isfinite(found.weights).all() and found.predict(rows.x).shape == (1,)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.array([[np.nan, 0.0]]), "1 rows have entries that are not finite"),
        (np.array([[np.inf, 0.0], [0, 0]]), "not finite"),
        (np.array([[1.0, 0.1]]), "1 rows are longer than 1"),
        (np.zeros((0, 2)), "at least one of each"),
        (np.zeros(3), "need .samples, columns."),
    ],
)
def test_unfit_samples_are_refused_in_one_line(x: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Auxiliary.of(x)


def test_rows_never_get_longer_and_carry_an_intercept() -> None:
    long = unit_rows(np.array([[30.0, 40.0], [0.3, 0.4], [0.0, 0.0]]))
    assert np.allclose(np.linalg.norm(long, axis=1) ** 2, [1, (0.25 + 1) / 2, 0.5])
    assert (long[:, -1] == long[0, -1]).all()
    rows = Auxiliary.of(long).rows.astype(object)
    assert max((rows**2).sum(axis=1)) <= 4**BITS
    with pytest.raises(InputError, match="finite"):
        unit_rows(np.array([[np.nan]]))


def test_unfit_plans_are_refused() -> None:
    of = election(3, 2)
    for change, message in (
        ({"auxiliary": auxiliary(4)}, "3 samples, there are 4"),
        ({"regularisation": 0.0}, "regularisation"),
        ({"regularisation": math.nan}, "regularisation"),
        ({"regularisation": True}, "regularisation"),
        ({"budget": Budget(Fraction(1, 10**9))}, "leaves the ring"),
        ({"auxiliary": Auxiliary(np.zeros((3, 2), dtype=np.int64))}, "every auxiliary sample is zero"),
    ):
        with pytest.raises(InputError, match=message):
            replace(plan_of(of, auxiliary(3)), **change)  # type: ignore[arg-type]
    for wrong in (Fraction(0), Fraction(-1), 0.5, math.nan):
        with pytest.raises(InputError):
            Budget(wrong, Fraction(2))  # type: ignore[arg-type]
