"""A vote's bytes at the sockets are those of the formulas: any course of it, all releases, 2 and 3 compute parties."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.backend import Backend
from launch.tasks.counted import counted_run
from protocols.ensemble import paper, statistic
from protocols.ensemble.auxiliary import Auxiliary, unit_rows
from protocols.ensemble.budget import Budget
from protocols.ensemble.paper import LABELS, PaperPlan
from protocols.ensemble.statistic import StatisticPlan
from smpc import Cast, ClearSession, Held
from smpc.ballots import counting
from smpc.ballots.counting import full_vote
from smpc.forecast import Forecast
from smpc.session import Session
from tests.ballots.support import Election
from tests.conftest import Pools

SAMPLES, CLASSES = 40, 3
VOTERS = tuple(f"v{i}" for i in range(7))
RELEASES = ("statistic", *LABELS)


def plan_of(election: Election, release: str) -> Any:
    x = np.random.default_rng(1).uniform(-1, 1, (SAMPLES, 2))
    auxiliary = Auxiliary.of(unit_rows(x))
    budget = Budget(Fraction(1), None)
    if release == "statistic":
        return StatisticPlan(auxiliary, election.poll, budget)
    return PaperPlan(auxiliary, election.poll, budget, release)


def text_of(plan: Any, boxes: Any) -> Any:
    module = statistic if isinstance(plan, StatisticPlan) else paper
    return lambda s: module.release(s, boxes, plan)  # type: ignore[attr-defined]


def forecast(cast: Cast, plan: Any, published: Any) -> Forecast:
    session = Forecast(cast, published)
    text_of(plan, {party: Held(party) for party in cast.parties})(session)
    return session


def ballots(election: Election, wrong: tuple[str, ...] = ()) -> dict[str, list[bytes]]:
    made = {}
    for voter in election.voters:
        votes = election.votes(voter)
        votes[0, 0] += 2 * (voter in wrong)
        made[voter] = election.ballot(voter, votes)
    return {party: [ballot[party].to_bytes() for ballot in made.values()] for party in election.parties}


def run_task(s: Any, election: Election, release: str, sent: dict[str, list[bytes]], most: int) -> Any:
    """Bytes by formula and at the socket; what was published."""
    batch, counting.BATCH_ENTRIES = counting.BATCH_ENTRIES, most * election.poll.entries
    course = len(s.published)
    plan = plan_of(election, release)
    try:
        with tempfile.TemporaryDirectory() as folder:
            boxes = election.filled(s, Path(folder), sent)
            before = dict(s.cost.predicted), dict(s.cost.counted)
            _, report = counted_run(s, Backend(), text_of(plan, boxes))
    finally:
        counting.BATCH_ENTRIES = batch
    name = "whole protocol"
    predicted, counted = (
        now[name] - was.get(name, 0) for now, was in zip((report.predicted, report.counted), before, strict=True)
    )
    return predicted, counted, s.published[course:], report.warnings()


@pytest.mark.mpc
@pytest.mark.parametrize("parties", [2, 3])
def test_sockets_count_what_is_forecast(pools: Pools, monkeypatch: pytest.MonkeyPatch, parties: int) -> None:
    large = 100
    monkeypatch.setattr(counting, "BATCH_ENTRIES", large * CLASSES * SAMPLES)
    election = Election(tuple(f"p{rank}" for rank in range(parties)), VOTERS, SAMPLES, CLASSES)
    right, wrong = ballots(election), ballots(election, wrong=("v2", "v5"))
    some = {party: sent[1:] if party == "p1" else sent[:-1] for party, sent in wrong.items()}
    for release in RELEASES:
        for sent, most in ((right, large), (some, 3)):
            found = pools.run(parties, run_task, election=replace(election), release=release, sent=sent, most=most)
            for name, (predicted, counted, _, warnings) in found.items():
                room = predicted / 100 + (100 if name == "p0" else 0)  # a pool's requests have longer numbers
                assert warnings == [] and counted > 0 and abs(counted - predicted) <= room, (release, name)
            if sent is right:
                published = found["server"][2]
                plan = plan_of(election, release)
                course = list(full_vote(election.poll))
                assert all(np.array_equal(a, b) for a, b in zip(course, published, strict=False))
                assert len(published) == len(course) + 1  # the model
                assert forecast(Cast(election.parties), plan, course).sent("server") == found["server"][0]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("most", [1, 3, 7, 100])
def test_the_supposed_course_is_that_of_a_full_vote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, most: int
) -> None:
    monkeypatch.setattr(counting, "BATCH_ENTRIES", most * CLASSES * SAMPLES)
    election = Election(("ann", "bob", "cid"), VOTERS, SAMPLES, CLASSES)
    plan, sent = plan_of(election, release), ballots(election)
    boxes = election.boxes(tmp_path)
    for party, box in boxes.items():
        for data in sent[party]:
            box.put(data)
    clear: Session = ClearSession(Cast(election.parties))
    text_of(plan, {party: Held(party, box) for party, box in boxes.items()})(clear)
    supposed = forecast(Cast(election.parties), plan, full_vote(election.poll))
    assert supposed.transcript.messages == clear.transcript.messages


def test_no_message_is_longer_than_the_roster() -> None:
    """It is sent every few seconds while a vote is open."""
    lines = list(full_vote(Election(("ann", "bob"), VOTERS, 1, 2).poll))
    assert len(lines[0]) == 1 + len(VOTERS)


def test_a_course_of_another_text_is_refused() -> None:
    election = Election(("ann", "bob"), VOTERS, SAMPLES, CLASSES)
    plan = plan_of(election, "soft")
    with pytest.raises(ValueError, match="'next ballots' of shape"):
        forecast(Cast(election.parties), plan, [np.zeros(3)])
