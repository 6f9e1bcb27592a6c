"""A voter's ballot at all compute parties or, after failures, sent again: who has it and who has not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smpc.ballots import door as door_module
from smpc.ballots.box import NOBODY, Box
from smpc.ballots.door import Door, hand_in, open_doors
from smpc.ballots.envelope import Envelope
from smpc.engine.tls import listen
from smpc.errors import InputError, PeerError
from tests.ballots.doors import ELECTION, Doors, opened
from tests.harness import keys

THREE = replace(ELECTION, parties=("ann", "bob", "cid"))


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[Doors]:
    with opened(THREE.boxes(tmp_path)) as made:
        yield made


def ways(doors: Doors, seconds: float = 5) -> list[Door]:
    return open_doors(doors.addresses, doors.certificates, seconds=seconds)


def test_receipts_come_in_the_polls_order_and_again_for_the_same_ballot(doors: Doors) -> None:
    ballot = THREE.ballot("v1", THREE.votes("v1"))
    for _ in range(2):
        assert hand_in(ballot, ways(doors)) == [f"{party}: the ballot of v1 is in the box" for party in THREE.parties]
    assert [box.next_batch(2, 0).tolist() for box in doors.boxes.values()] == [[1, 1, NOBODY]] * 3


def test_a_refusal_is_one_line_that_says_who_has_the_ballot(doors: Doors) -> None:
    hand_in(THREE.ballot("v1", THREE.votes("v1")), ways(doors))
    with pytest.raises(InputError) as caught:
        hand_in(THREE.ballot("v1", THREE.votes("v1")), ways(doors))
    assert str(caught.value) == "bob: ballot of v1 refused: a second ballot; the first one counts"
    doors.boxes["ann"].close()
    with pytest.raises(InputError, match=r"so far: bob and cid; ann: ballot of v2 refused: after the close$"):
        hand_in(THREE.ballot("v2", THREE.votes("v2")), ways(doors))


def test_of_two_ballots_of_one_voter_the_first_at_the_first_door_wins_everywhere(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hosts with one key, the second one as fast as can be: never one ballot here and the other one there."""
    put, ballots = Door.put, [THREE.ballot("v1", THREE.votes("v1")) for _ in range(2)]

    def overtaken(door: Door, envelope: Envelope) -> str:
        if door.party == "cid":
            monkeypatch.undo()
            with pytest.raises(InputError, match=r"^bob: ballot of v1 refused: a second ballot"):
                hand_in(ballots[1], ways(doors))
        return put(door, envelope)

    monkeypatch.setattr(Door, "put", overtaken)
    assert len(hand_in(ballots[0], ways(doors))) == 3
    first = doors.boxes["ann"].digests(np.array([1]))
    assert all(doors.boxes[party].has(np.array([1]), first).tolist() == [1] for party in ("bob", "cid"))


def test_after_a_failure_the_same_ballot_is_sent_again_and_counts(doors: Doors, tmp_path: Path) -> None:
    """The first party, which counts, does not get a ballot that another has not: it would be lost for good."""
    ballot = THREE.ballot("v1", THREE.votes("v1"))
    broken = ways(doors, seconds=0)
    doors.receivers["cid"].__exit__(None, None, None)
    doors.boxes["cid"]._closed = False
    with pytest.raises(PeerError) as caught:
        hand_in(ballot, broken)
    line = str(caught.value)
    assert line.startswith("the ballot counts when all have it; receipts so far: bob; cid ")
    assert line.endswith("; run the same command again: in the same run it sends the same ballot")
    assert "\n" not in line and not doors.boxes["ann"]._waiting
    with opened({"cid": doors.boxes["cid"]}) as again:
        mended = replace(doors, addresses={**doors.addresses, **again.addresses})
        assert len(hand_in(ballot, ways(mended))) == 3
    first = doors.boxes["ann"].digests(np.array([1]))
    assert all(doors.boxes[party].has(np.array([1]), first).tolist() == [1] for party in ("bob", "cid"))


def test_a_large_ballot_has_the_time_that_its_line_needs(doors: Doors, monkeypatch: Any) -> None:
    put = Box.put

    def slow(box: Box, data: bytes) -> str:
        time.sleep(0.6)
        return put(box, data)

    monkeypatch.setattr(Box, "put", slow)
    monkeypatch.setattr(door_module, "_ANSWER_SECONDS", 0.3)
    ballot = THREE.ballot("v1", THREE.votes("v1"))
    for pace, kept in ((1e9, False), (200, True)):  # the longest share is 1,200 bytes
        monkeypatch.setattr(door_module, "SLOWEST", pace)
        if kept:
            assert len(hand_in(ballot, ways(doors, seconds=0))) == 3
        else:
            with pytest.raises(PeerError, match="bob gave no receipt before the connection was lost"):
                hand_in(ballot, ways(doors, seconds=0))


def test_a_lost_receipt_is_no_word_that_the_ballot_does_not_count(doors: Doors, monkeypatch: Any) -> None:
    put = Box.put

    def kept_and_gone(box: Box, data: bytes) -> str:
        put(box, data)
        if box.me == "ann":
            raise OSError("before the receipt")
        return "v1"

    monkeypatch.setattr(Box, "put", kept_and_gone)
    with pytest.raises(PeerError, match="ann gave no receipt") as caught:
        hand_in(THREE.ballot("v1", THREE.votes("v1")), ways(doors, seconds=0))
    assert doors.boxes["ann"].next_batch(1, 0)[1] == 1
    assert "receipts so far: bob and cid;" in str(caught.value) and "not counted" not in str(caught.value)


def test_nothing_is_sent_unless_all_doors_are_open_in_one_run(doors: Doors, tmp_path: Path) -> None:
    with listen(("127.0.0.1", 0)) as listener:
        nowhere = listener.getsockname()
    shut = replace(doors, addresses={**doors.addresses, "bob": nowhere})
    with pytest.raises(PeerError, match=r"^bob \(127.0.0.1 port \d+\) takes no ballots .*; nothing was sent: vote"):
        ways(shut, seconds=0)
    with opened(THREE.another_run().boxes(tmp_path / "other")) as later:
        mixed = replace(doors, addresses={**doors.addresses, "cid": later.addresses["cid"]})
        with pytest.raises(PeerError, match="ann and bob and cid are in different runs of the job; nothing was sent"):
            ways(mixed)


def test_a_door_of_another_run_gets_nothing(doors: Doors, tmp_path: Path) -> None:
    door = Door("ann", doors.addresses["ann"], doors.certificates["ann"], seconds=5)
    door.close()
    with opened(THREE.another_run().boxes(tmp_path / "other")) as later:
        door._address = later.addresses["ann"]
        with pytest.raises(PeerError, match="ann has begun another run, which needs another ballot"):
            door.put(THREE.ballot("v1", THREE.votes("v1"))["ann"])
        assert not later.boxes["ann"].refused


def test_only_the_pinned_certificate_gets_a_ballot(doors: Doors) -> None:
    with pytest.raises(PeerError, match="ann shows another certificate than the job lists"):
        Door("ann", doors.addresses["ann"], keys("bob")[1], seconds=5)
