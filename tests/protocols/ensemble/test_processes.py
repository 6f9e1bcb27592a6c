"""The statistic release over real processes: equal to the clear one bit for bit, on two and three parties."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.ensemble import statistic
from protocols.ensemble.budget import Budget
from protocols.ensemble.statistic import StatisticPlan
from tests.ballots.support import Election
from tests.conftest import Pools
from tests.protocols.ensemble.support import all_votes, auxiliary, run
from tests.support import words_of

pytestmark = pytest.mark.mpc
SAMPLES = 40


def plan_of(of: Election, delta: Fraction | None) -> StatisticPlan:
    return StatisticPlan(auxiliary(SAMPLES, 3), of.poll, Budget(Fraction(1), delta))


def release_task(s: Any, of: Election, delta: Fraction | None, sent: dict[str, list[bytes]]) -> Any:
    s._own_random = words_of(s.me)
    with tempfile.TemporaryDirectory() as folder:
        boxes = of.filled(s, Path(folder), sent)
        found = statistic.release(s, boxes, plan_of(of, delta))
    return found.statistic, found.weights, found.counted, found.guarantee.to_json()


@pytest.mark.parametrize("delta", [None, Fraction(1, 10**6)])
@pytest.mark.parametrize(("parties", "classes"), [(2, 2), (2, 4), (3, 3)])
def test_equal_words_give_equal_releases(pools: Pools, parties: int, classes: int, delta: Fraction | None) -> None:
    names = tuple(f"p{rank}" for rank in range(parties))
    of = Election(names, tuple(f"v{i}" for i in range(6)), SAMPLES, classes)
    votes = all_votes(of)
    votes["v3"] = votes["v3"] * 2
    expected, _ = run(statistic.release, plan_of(of, delta), of, votes)
    made = [of.ballot(voter, vote) for voter, vote in votes.items()]
    sent = {party: [ballot[party].to_bytes() for ballot in made] for party in names}
    for found in pools.run(parties, release_task, of=replace(of), delta=delta, sent=sent).values():
        assert np.array_equal(found[0], expected.statistic)
        assert np.array_equal(found[1], expected.weights)
        assert found[2] == expected.counted and found[3] == expected.guarantee.to_json()
