"""Counting over real processes: shares on CrypTen's tensors, the tossed coin, wrong ballots among right ones."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smpc.ballots.counting import tally
from smpc.values import value_of
from tests.ballots.support import Election
from tests.conftest import Pools

pytestmark = pytest.mark.mpc
FAULTS = {"v1": 2, "v4": -1, "v7": 2**63 - 1}


def ballots_of(election: Election) -> dict[str, np.ndarray]:
    ballots = {voter: election.votes(voter) for voter in election.voters}
    for voter, value in FAULTS.items():
        ballots[voter][0, 0] = value
    return ballots


def count_task(s: Any, election: Election, sent: dict[str, list[bytes]]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        boxes = election.filled(s, Path(folder), sent)
        result = tally(s, boxes, election.poll)
        opened = s.reveal(result.counts, to="server", message="counts", unprotected=True)
        counts = value_of(opened) if s.me == "server" else None
        return counts, result.counted, {voter: reason.value for voter, reason in result.rejected.items()}


@pytest.mark.parametrize(("parties", "classes"), [(2, 2), (2, 4), (3, 3)])
def test_counts_equal_the_plain_ones_and_wrong_ballots_are_named(pools: Pools, parties: int, classes: int) -> None:
    names = tuple(f"p{rank}" for rank in range(parties))
    election = Election(names, tuple(f"v{i}" for i in range(10)), 33, classes)
    made = {voter: election.ballot(voter, votes) for voter, votes in ballots_of(election).items()}
    sent = {party: [ballot[party].to_bytes() for ballot in made.values()] for party in names}
    results = pools.run(parties, count_task, election=replace(election), sent=sent)
    honest = tuple(voter for voter in election.voters if voter not in FAULTS)
    assert np.array_equal(results["server"][0], election.counts(honest))
    for _, counted, rejected in results.values():
        assert counted == honest
        assert rejected == dict.fromkeys(FAULTS, "not exactly one vote for every sample")
