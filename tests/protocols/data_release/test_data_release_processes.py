"""Data releases over real processes: the same integers as in the clear; who cheats is named, nobody releases."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from launch.pool import TaskFailed
from protocols.data_release.plan import ReleasePlan
from protocols.data_release.protocol import release
from smpc import Cast, ClearSession, PeerError, coin_tossing
from smpc.values import value_of
from tests.support import held, schema, tables, words_of

pytestmark = pytest.mark.mpc
PARTIES = ("p0", "p1", "p2")


def plan_of(of: Any, method: str) -> ReleasePlan:
    return ReleasePlan.make(of, epsilon=Fraction(1), delta=Fraction(1, 10**5), method=method)


def release_task(s: Any, of: Any, values: Mapping[str, Any], method: str) -> Any:
    s._own_random = words_of(s.me)
    done = release(s, held(s, values), plan_of(of, method), "r")
    mine = done.data.get(s.me)
    return done.model.values, value_of(mine).values, s.transcript.steps()


@pytest.mark.parametrize("method", ["rmgm", "dgm"])
def test_equal_words_give_equal_releases_and_transcripts(pools: Any, method: str) -> None:
    of = schema(3000, {"p0": 2, "p1": 1, "p2": 3}, "p1")
    values = tables(of)
    cast = Cast(PARTIES)
    clear = ClearSession(cast, random={name: words_of(name) for name in cast.everyone})
    expected = release(clear, held(clear, values), plan_of(of, method), "r")
    found = pools.run(3, release_task, of=of, values=values, method=method)
    assert set(found) == {*PARTIES, "server"}
    for name, (weights, numbers, steps) in found.items():
        assert np.array_equal(weights, expected.model.values)
        assert np.array_equal(numbers, value_of(expected.data[name]).values)
        wanted = clear.transcript.steps()
        assert steps[-len(wanted) :] == wanted  # the pool's session goes on


def lying_task(s: Any, of: Any, values: Mapping[str, Any]) -> Any:
    """p2 commits to one value and opens another, once it has seen the others'."""
    if s.me == "p2":
        honest = coin_tossing.commit

        def other(value: bytes, blinding: int, **names: Any) -> bytes:
            return honest(bytes(32) if names["party"] == "p2" else value, blinding, **names)

        coin_tossing.commit = other
    return release(s, held(s, values), plan_of(of, "rmgm"), "r").model.values


def test_who_opens_another_value_is_named_and_nobody_releases(pools: Any) -> None:
    of = schema(300, {"p0": 2, "p1": 1, "p2": 3}, "p1")
    with pytest.raises(TaskFailed) as caught:
        pools.run(3, lying_task, of=of, values=tables(of))
    told = str(caught.value)
    assert "p2 opened another value than it had committed to: nothing is released; leave p2 out" in told
    assert "server:" in told  # nobody came to an end


def stopping_task(s: Any, of: Any, values: Mapping[str, Any]) -> Any:
    """p2 reads the others' openings and leaves with a line that blames p0. The others: whom they saw at fault."""
    if s.me == "p2":

        def leave(toss: coin_tossing._Toss, own: bytes) -> Any:
            toss._listen("opening", time.monotonic(), 3)
            assert len(toss._heard["opening"]) == 2
            raise PeerError("p0 is silent for 5 s at 'coin toss: opening'")

        coin_tossing._Toss._open = leave
    try:
        return release(s, held(s, values), plan_of(of, "rmgm"), "r").model.values
    except coin_tossing.CoinTossError as error:
        raise PeerError(f"at fault: {error.at_fault}") from None


def test_who_reads_the_openings_and_leaves_is_at_fault_whomever_it_blames(pools: Any) -> None:
    of = schema(300, {"p0": 2, "p1": 1, "p2": 3}, "p1")
    with pytest.raises(TaskFailed) as caught:
        pools.run(3, stopping_task, of=of, values=tables(of))
    told = str(caught.value)
    assert told.count("at fault: ('p2',)") >= 2 and "at fault: ('p0'" not in told and "at fault: ('p1'" not in told
