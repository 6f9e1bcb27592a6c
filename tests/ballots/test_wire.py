"""Ballots over TLS: receipts, refusals by name, strangers, many voters at once."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from smpc.ballots import wire
from smpc.ballots.box import Box
from smpc.ballots.envelope import Reason
from smpc.engine.tls import Identity, listen
from smpc.errors import InputError, PeerError
from tests.ballots.support import Election
from tests.harness import keys

VOTERS = tuple(f"v{i}" for i in range(40))
ELECTION = Election(("ann", "bob"), VOTERS, 50, 3)


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[tuple[dict[str, Box], dict[str, Any], dict[str, Path]]]:
    boxes = ELECTION.boxes(tmp_path)
    listeners = {party: listen(("127.0.0.1", 0)) for party in boxes}
    addresses = {party: listener.getsockname() for party, listener in listeners.items()}
    certificates = {party: keys(party)[1] for party in boxes}
    with ExitStack() as stack:
        for party, box in boxes.items():
            stack.enter_context(wire.Receiver(box, Identity(party, *keys(party)), listeners[party]))
        yield boxes, addresses, certificates


def test_many_voters_at_once_get_their_receipts(doors: Any) -> None:
    boxes, addresses, certificates = doors

    def vote(voter: str) -> list[str]:
        ballot = ELECTION.ballot(voter, ELECTION.votes(voter))
        return wire.hand_in(ballot, addresses, certificates, seconds=20)

    with ThreadPoolExecutor(16) as pool:
        receipts = list(pool.map(vote, VOTERS))
    assert receipts[7] == [f"{party}: the ballot of v7 is in the box" for party in ("ann", "bob")]
    for box in boxes.values():
        assert set(box.next_batch(40, 1)[1:]) == set(range(40)) and not box.refused


def test_a_refusal_reaches_the_voter_in_one_line(doors: Any) -> None:
    boxes, addresses, certificates = doors
    ballot = ELECTION.ballot("v1", ELECTION.votes("v1"))
    wire.hand_in(ballot, addresses, certificates, seconds=5)
    with pytest.raises(InputError, match=r"^ann: ballot of v1 refused: a second ballot$"):
        wire.hand_in(ballot, addresses, certificates, seconds=5)
    boxes["ann"].close()
    with pytest.raises(InputError, match="ann: ballot of v2 refused: after the close"):
        wire.hand_in(ELECTION.ballot("v2", ELECTION.votes("v2")), addresses, certificates, seconds=5)


def test_strangers_hurt_themselves_only(doors: Any) -> None:
    boxes, addresses, certificates = doors
    with socket.create_connection(addresses["ann"]) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
    door = wire.Door("ann", addresses["ann"], certificates["ann"], seconds=5)
    door._connection.sendall(struct.pack("<I", 2**32 - 1))
    kept, length = struct.unpack("<BH", wire._exactly(door._connection, 3))
    assert not kept and wire._exactly(door._connection, length) == b"ballot refused: wrong length"
    door._connection.close()
    half = wire.Door("ann", addresses["ann"], certificates["ann"], seconds=5)
    half._connection.sendall(struct.pack("<I", 1000) + bytes(10))
    half.close()
    wire.hand_in(ELECTION.ballot("v3", ELECTION.votes("v3")), addresses, certificates, seconds=5)
    assert boxes["ann"].next_batch(1, 5)[1] == 3


def test_truncated_ballots_are_named_and_the_connection_goes_on(doors: Any) -> None:
    boxes, addresses, certificates = doors
    door = wire.Door("ann", addresses["ann"], certificates["ann"], seconds=5)
    data = ELECTION.ballot("v4", ELECTION.votes("v4"))["ann"].to_bytes()[:-5]
    door._connection.sendall(struct.pack("<I", len(data)) + data)
    kept, length = struct.unpack("<BH", wire._exactly(door._connection, 3))
    assert not kept and b"truncated" in wire._exactly(door._connection, length)
    assert "v4 is in the box" in door.put(ELECTION.ballot("v4", ELECTION.votes("v4"))["ann"])
    assert boxes["ann"].refused == {Reason.MALFORMED: 1}
    door.close()


def test_only_the_pinned_certificate_gets_a_ballot(doors: Any) -> None:
    _, addresses, certificates = doors
    with pytest.raises(PeerError, match="ann: shows another certificate than the job lists"):
        wire.Door("ann", addresses["ann"], certificates["bob"], seconds=5)


def test_nobody_listens() -> None:
    with listen(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    with pytest.raises(PeerError, match=r"ann \(127.0.0.1 port \d+\) takes no ballots .*; vote while the job runs"):
        wire.Door("ann", address, keys("ann")[1], seconds=0)
