"""A door for ballots against strangers who hold it up, send nonsense, or never stop."""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smpc.ballots import door as door_module
from smpc.ballots import receiver
from smpc.ballots.box import Box
from smpc.ballots.door import Door, hand_in, open_doors
from smpc.ballots.envelope import Reason
from smpc.ballots.wire import GREETING, RECEIPT, ballot_bytes, exactly
from smpc.errors import PeerError
from tests.ballots.doors import ELECTION, VOTERS, Doors, opened, strangers, tls
from tests.harness import keys


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[Doors]:
    with opened(ELECTION.boxes(tmp_path)) as made:
        yield made


def envelope_of(voter: str, party: str = "ann") -> Any:
    return ELECTION.ballot(voter, ELECTION.votes(voter))[party]


def greeted(doors: Doors) -> Any:
    connection = tls(doors.addresses["ann"])
    assert exactly(connection, GREETING.size) == ELECTION.poll.job + ELECTION.poll.run + b"\0"
    return connection


def receipt(connection: Any) -> tuple[bool, str]:
    kept, length = RECEIPT.unpack(exactly(connection, RECEIPT.size))
    return bool(kept), exactly(connection, length).decode()


def vote(doors: Doors, voter: str) -> list[str]:
    ways = open_doors(doors.addresses, doors.certificates, seconds=60)
    try:
        return hand_in(ELECTION.ballot(voter, ELECTION.votes(voter)), ways)
    finally:
        for way in ways:
            way.close()


def seconds_until_dropped(connection: Any, drip: bytes, pause: float = 0.1) -> float:
    start = time.monotonic()
    try:
        while time.monotonic() < start + 20:
            connection.sendall(drip)
            time.sleep(pause)
    except OSError:
        pass
    return time.monotonic() - start


@pytest.mark.parametrize("places", [64, 3])
def test_many_voters_at_once_get_their_receipts(doors: Doors, places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "_PLACES", places)
    with ThreadPoolExecutor(16) as pool:
        receipts = list(pool.map(lambda voter: vote(doors, voter), VOTERS))
    assert receipts[7] == [f"{party}: the ballot of v7 is in the box" for party in ("ann", "bob")]
    for box in doors.boxes.values():
        assert set(box.next_batch(40, 1)[1:]) == set(range(40)) and not box.refused


def test_strangers_that_drip_do_not_keep_voters_out(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "_NEW_SECONDS", 0.3)
    with strangers(doors.addresses["ann"], 2 * receiver._PLACES, "127.0.0.1") as came:
        wait_for(lambda: came[0] > 2 * receiver._PLACES)  # some were shown out, and came again
        start = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda voter: vote(doors, voter), VOTERS[:12]))
        assert time.monotonic() - start < 30
    assert len(set(doors.boxes["ann"].next_batch(40, 0)[1:])) == 13  # and NOBODY


def test_who_fills_the_door_stands_in_its_own_way_only(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """Voters with another address wait for nothing, however long a stranger may stay."""
    monkeypatch.setattr(receiver, "_NEW_SECONDS", 1e6)
    with strangers(doors.addresses["ann"], 2 * receiver._PLACES, "127.0.0.2"):
        time.sleep(1.5)
        for voter in VOTERS[:5]:
            assert vote(doors, voter)[0] == f"ann: the ballot of {voter} is in the box"
    callers = [caller.address for caller in doors.receivers["ann"]._callers]
    assert len(callers) <= receiver._PLACES


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%lo", "fe80::2%lo", True),
    ],
)
def test_addresses_that_one_host_can_have_count_together(one: str, other: str, alike: bool) -> None:
    assert (receiver._place(one) == receiver._place(other)) == alike


def test_strangers_from_many_addresses_do_not_push_each_other_out(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "_PLACES", 3)
    monkeypatch.setattr(receiver, "_NEW_SECONDS", 1e6)
    early = [tls(doors.addresses["ann"], f"127.0.0.{place}") for place in (2, 3, 4)]
    with pytest.raises(OSError, match=r"EOF|reset|closed"):
        tls(doors.addresses["ann"], "127.0.0.5").recv(1)
    monkeypatch.setattr(receiver, "_NEW_SECONDS", 0.0)
    vote(doors, "v6")
    assert exactly(early[2], GREETING.size)
    for one in early:
        one.close()


@pytest.mark.parametrize(
    "what", ["handshake", "cover", "share of a registered voter", "refused ballots", "one ballot again and again"]
)
def test_a_message_has_a_total_time(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "_MESSAGE_SECONDS", 2.0)
    with opened(ELECTION.boxes(tmp_path)) as doors:
        if what == "handshake":
            caller, drip = socket.create_connection(doors.addresses["ann"]), b"\x16"
            caller.sendall(b"\x16\x03\x01\x02\x00\x01")
        else:
            caller, drip = greeted(doors), b"x"
            cover, sealed = (lambda e: (e.cover(), e.sealed))(envelope_of("v1"))
            piece = struct.pack("<I", len(cover)) + cover + struct.pack("<I", len(sealed))
            if what == "cover":
                caller.sendall(piece[:90])
            elif what == "refused ballots":
                drip = struct.pack("<I", 4) + b"none" + struct.pack("<I", 4) + b"none"
            elif what == "one ballot again and again":
                drip = ballot_bytes(envelope_of("v1"))
            else:
                caller.sendall(piece)
        assert seconds_until_dropped(caller, drip) < 10


def test_a_voter_has_one_connection_and_keeps_its_place(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "_PLACES", 2)
    monkeypatch.setattr(receiver, "_NEW_SECONDS", 0.0)
    data = ballot_bytes(envelope_of("v1"))
    slow, again = greeted(doors), greeted(doors)
    slow.sendall(data[:-1])
    wait_for(lambda: [caller.voter for caller in doors.receivers["ann"]._callers] == ["v1", None])
    others = [greeted(doors) for _ in range(3)]  # each in the place of the stranger before it
    assert next(caller.voter for caller in doors.receivers["ann"]._callers) == "v1"
    slow.sendall(data[-1:])
    assert receipt(slow) == (True, "the ballot of v1 is in the box")
    first, second = ballot_bytes(envelope_of("v2")), ballot_bytes(envelope_of("v2"))
    slow.sendall(first[:-1])
    wait_for(lambda: "v2" in [caller.voter for caller in doors.receivers["ann"]._callers])
    others[-1].sendall(second)
    assert receipt(others[-1])[0]
    with contextlib.suppress(ConnectionError):
        assert slow.recv(1) == b""
    for one in (slow, again, *others):
        one.close()


def test_of_a_strangers_share_nothing_is_kept(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is as long as a ballot may be, and refused by its cover."""
    taken: list[int] = []
    put = Box.put
    monkeypatch.setattr(Box, "put", lambda box, data: (taken.append(len(data)), put(box, data))[1])
    caller, own = greeted(doors), envelope_of("v2")
    unsigned = replace(own, signature=bytes(64))
    for envelope, kept in ((unsigned, len(own.cover())), (own, len(own.to_bytes()))):
        caller.sendall(ballot_bytes(envelope))
        assert receipt(caller)[0] == (envelope is own) and taken.pop() == kept
    caller.close()


def test_a_party_that_drips_does_not_hold_a_voter(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_ANSWER_SECONDS", 0.5)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key, certificate = keys("ann")
    context.load_cert_chain(certificate, key)
    done = threading.Event()

    def drip(listener: socket.socket) -> None:
        with contextlib.suppress(OSError), context.wrap_socket(listener.accept()[0], server_side=True) as slow:
            while not done.wait(0.2):
                slow.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        threads.submit(drip, listener)
        start = time.monotonic()
        with pytest.raises(PeerError, match=r"ann .* takes no ballots \(too slow\)"):
            Door("ann", listener.getsockname(), doors.certificates["ann"], seconds=0)
        done.set()
    assert time.monotonic() - start < 8, "65 bytes at this pace are 13 s"


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_shortage_of_files_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []
    accept = socket.socket.accept

    def short(listener: socket.socket) -> Any:
        tries.append(time.monotonic())
        if tries[-1] < tries[0] + 0.5:
            raise OSError(errno.EMFILE, "too many open files")
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", short)
    with opened(ELECTION.boxes(tmp_path)) as doors:
        vote(doors, "v1")
    assert len(tries) < 100


def test_strangers_hurt_themselves_only(doors: Doors) -> None:
    with socket.create_connection(doors.addresses["ann"]) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
    long = greeted(doors)
    long.sendall(struct.pack("<I", 2**32 - 1))
    assert receipt(long) == (False, "ballot refused: wrong length")
    long.close()
    half = greeted(doors)
    half.sendall(struct.pack("<I", 300) + bytes(10))
    half.close()
    vote(doors, "v3")
    assert doors.boxes["ann"].next_batch(1, 5)[1] == 3


def test_truncated_ballots_are_named_and_the_connection_goes_on(doors: Doors) -> None:
    connection = greeted(doors)
    envelope = envelope_of("v4")
    for cover, sealed, message in (
        (envelope.cover(), envelope.sealed[:-5], "ballot of v4 refused: malformed or truncated"),
        (envelope.cover()[:-5], envelope.sealed, "ballot of somebody refused: malformed or truncated"),
        (replace(envelope, signature=bytes(64)).cover(), envelope.sealed, "signature is not the voter's"),
        (envelope.cover(), envelope.sealed, "v4 is in the box"),
    ):
        connection.sendall(b"".join(struct.pack("<I", len(piece)) + piece for piece in (cover, sealed)))
        assert message in receipt(connection)[1]
    assert doors.boxes["ann"].refused == {Reason.MALFORMED: 2, Reason.SIGNATURE: 1}
    connection.close()


def test_a_voter_who_was_shown_out_connects_again(doors: Doors) -> None:
    door = Door("ann", doors.addresses["ann"], doors.certificates["ann"], seconds=5)
    for caller in doors.receivers["ann"]._callers:
        caller.drop()
    wait_for(lambda: not doors.receivers["ann"]._callers)
    assert "v5 is in the box" in door.put(envelope_of("v5"))
    door.close()


def test_a_door_that_is_closed_says_so(doors: Doors) -> None:
    doors.boxes["ann"].close()
    door = Door("ann", doors.addresses["ann"], doors.certificates["ann"], seconds=5)
    assert door.closed and door.run == ELECTION.poll.run
    door.close()
