"""What the server and one compute party can tell apart: claim against evidence, and mistakes that must be caught."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.audit import epsilon_lower_bound, events
from mechanisms.gamma_norm import GammaNorm
from protocols.ensemble import statistic
from protocols.ensemble.auxiliary import Auxiliary
from protocols.ensemble.budget import Budget
from protocols.ensemble.statistic import StatisticPlan
from smpc import Cast, ClearSession
from smpc.ballots.counting import Tally
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, Noise, Shared, value_of
from tests.ballots.support import Election
from tests.protocols.ensemble.support import PARTIES

EPSILON = Fraction(2)
TRIALS = 4000
ROWS = Auxiliary(np.array([[3], [6], [-3]]), bits=4)
WORST = np.array([1, 1, -1])  # votes that a replaced voter turns round: the change is the sum of all lengths


class _Opened(Exception):
    """The view is complete; what follows is post-processing."""


class _Watching(ClearSession):
    """Keeps what ann, who colludes with the server, knows: her draw and the opening."""

    def draw_noise(self, mechanism, contributors):  # type: ignore[no-untyped-def]
        self.noise: Noise = super().draw_noise(mechanism, contributors)
        return self.noise

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        self.view = shared.share - value_of(self.noise.draws["ann"])
        raise _Opened


def view(plan: StatisticPlan) -> Integers:
    s = _Watching(Cast(PARTIES))
    with contextlib.suppress(_Opened):
        statistic.release(s, {}, plan)
    return s.view


def audited(plan: StatisticPlan, monkeypatch: pytest.MonkeyPatch) -> float:
    """The bound shown on the neighbours, by the likelihood ratio of the noise that ann does not know."""
    width = plan.poll.width
    first = np.zeros((width, 3), dtype=np.int64)
    second = first.copy()
    if width == 1:
        first[0], second[0] = WORST > 0, WORST < 0
    else:
        first[0], first[1], second[0], second[1] = WORST > 0, WORST < 0, WORST < 0, WORST > 0
    exact = [plan.weigh(counts) for counts in (first, second)]
    outcomes = []
    for counts in (first, second):

        def counted(s: Session, boxes: object, poll: object, counts: Integers = counts) -> Tally:
            return Tally(s.share(Held("ann", counts), counts.shape), ("v0",), {}, ())

        monkeypatch.setattr(statistic, "tally", counted)
        views = np.array([view(plan) for _ in range(TRIALS)])
        lengths = [np.linalg.norm(views - centre, axis=1) for centre in exact]
        outcomes.append(np.rint(16 * (lengths[1] - lengths[0])).astype(np.int64))
    return epsilon_lower_bound(*outcomes, events(0, 16 * float(plan.l2) / 4), alpha=1e-9).value


def plan_of(classes: int) -> StatisticPlan:
    of = Election(PARTIES, ("v0",), 3, classes)
    return StatisticPlan(ROWS, of.poll, Budget(EPSILON))


@pytest.mark.parametrize("classes", [2, 3])
def test_the_claim_survives(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = audited(plan_of(classes), monkeypatch)
    assert (1.3 if classes == 2 else 0.3) < bound <= float(EPSILON)


class _NoNoise(GammaNorm):
    def draw(self, count: int, random: object) -> Integers:
        return np.zeros(count, dtype=np.int64)


def half(plan: StatisticPlan) -> None:
    plan.__dict__["mechanism"] = GammaNorm(plan.l2 / EPSILON / 2)


def half_a_scale_each(plan: StatisticPlan) -> None:
    """As if nobody colluded: K draws of 1/K of the scale."""
    plan.__dict__["mechanism"] = GammaNorm(plan.l2 / EPSILON / len(PARTIES))


def none(plan: StatisticPlan) -> None:
    plan.__dict__["mechanism"] = _NoNoise(Fraction(1))


def one_row_for_all(plan: StatisticPlan) -> None:
    """The sensitivity of one sample, where a voter votes on all."""
    plan.__dict__["mechanism"] = GammaNorm(Fraction(int(np.abs(plan.whitened.rows).max())) / EPSILON)


@pytest.mark.long
@pytest.mark.parametrize("mistake", [half, half_a_scale_each, none, one_row_for_all])
def test_mistakes_are_caught(mistake: Callable[[StatisticPlan], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(2)
    mistake(plan)
    assert audited(plan, monkeypatch) > float(EPSILON)
