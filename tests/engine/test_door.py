"""The door stays open whatever callers do and whatever the system is short of, with one thread and bounded work."""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smpc.engine import door
from smpc.engine.connect import connect_all
from smpc.engine.door import MAX_PENDING, Door
from smpc.engine.tls import Address, Contexts, Identity, listen
from smpc.errors import PeerError
from tests.harness import keys

NAMES = ("p0", "p1")
PINNED: dict[str, Path] = {name: keys(name)[1] for name in NAMES}
HALF_A_HELLO = b"\x16\x03\x01\x02\x00\x01"  # a TLS record of 512 bytes, of which one has come


def contexts(name: str) -> Contexts:
    return Contexts(Identity(name, *keys(name)), PINNED)


class Visited:
    """A door of p0's, and who came through it."""

    def __init__(self) -> None:
        listener = listen(("127.0.0.1", 0))
        self.address: Address = listener.getsockname()
        self.arrived: list[ssl.SSLSocket] = []
        self.refused: list[OSError] = []
        self.door = Door(listener, contexts("p0").server, self.arrived.append, self.refused.append)
        self.threads = threading.active_count()
        self._callers: list[socket.socket] = []

    def call(self, data: bytes = b"") -> socket.socket:
        """A caller that says this and stays."""
        caller = socket.create_connection(self.address, timeout=10)
        self._callers.append(caller)
        caller.sendall(data)
        return caller

    def visit(self) -> None:
        """An honest participant comes through, at once."""
        known, start = len(self.arrived), time.monotonic()
        self._callers.append(contexts("p1").client.wrap_socket(self.call()))
        until(lambda: len(self.arrived) > known)
        assert time.monotonic() - start < 5
        assert contexts("p0").peer(self.arrived[-1]) == "p1"

    def close(self) -> None:
        self.door.close()
        for connection in (*self._callers, *self.arrived):
            connection.close()


def until(done: Any) -> None:
    end = time.monotonic() + 10
    while not done():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


@pytest.fixture
def visited() -> Iterator[Visited]:
    found = Visited()
    yield found
    found.close()


@pytest.mark.parametrize("data", [b"", HALF_A_HELLO])
def test_any_number_of_callers_that_never_finish_hold_nobody_up(visited: Visited, data: bytes) -> None:
    for _ in range(3 * MAX_PENDING):
        visited.call(data)
    until(lambda: len(visited.door._pending) == MAX_PENDING)
    visited.visit()
    assert threading.active_count() <= visited.threads, "no thread a caller"
    assert len(visited.door._pending) <= MAX_PENDING


def test_the_oldest_gives_way(visited: Visited) -> None:
    first = visited.call(HALF_A_HELLO)
    until(lambda: len(visited.door._pending) == 1)
    for _ in range(MAX_PENDING):
        visited.call()
    wait_until_closed(first)
    visited.visit()


def test_a_handshake_byte_by_byte_has_an_end(visited: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HANDSHAKE_SECONDS", 0.2)
    caller = visited.call(HALF_A_HELLO)
    start = time.monotonic()
    while time.monotonic() - start < 5:
        try:
            caller.sendall(b"x")
        except OSError:
            break
        time.sleep(0.02)
    assert time.monotonic() - start < 5
    visited.visit()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", bytes(1000), b"\x16\x03\x01\x00\x05hello"])
def test_what_is_no_tls_is_refused(visited: Visited, data: bytes) -> None:
    wait_until_closed(visited.call(data))
    until(lambda: len(visited.refused) == 1)
    visited.visit()


def test_callers_that_are_gone_again_at_once(visited: Visited) -> None:
    for _ in range(20):
        caller = visited.call()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        caller.close()
    visited.visit()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ECONNABORTED, errno.EPROTO])
def test_what_fails_at_the_door_does_not_close_it(
    visited: Visited, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.socket.accept
    failures: list[int] = []

    def accept(listener: socket.socket) -> Any:
        if len(failures) < 3:
            failures.append(number)
            raise OSError(number, "no")
        return real(listener)

    monkeypatch.setattr(socket.socket, "accept", accept)
    visited.visit()
    assert failures == [number] * 3


def test_a_shortage_of_files_frees_those_of_unfinished_callers(
    visited: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = visited.call()
    until(lambda: len(visited.door._pending) == 1)
    real = socket.socket.accept

    def accept(listener: socket.socket) -> Any:
        if visited.door._pending:
            raise OSError(errno.EMFILE, "too many open files")
        return real(listener)

    monkeypatch.setattr(socket.socket, "accept", accept)
    visited.visit()
    wait_until_closed(idle)


def test_who_comes_when_all_are_found_or_time_is_up_is_turned_away() -> None:
    listener = listen(("127.0.0.1", 0))
    address = listener.getsockname()
    with pytest.raises(PeerError, match=r"^p1 .* did not connect"):
        connect_all(contexts("p0"), NAMES, "p0", {"p1": ("127.0.0.1", 1)}, listener, 0.05)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)


def wait_until_closed(caller: socket.socket) -> None:
    """TimeoutError if the other end stays."""
    with contextlib.suppress(ConnectionError):
        while caller.recv(1000):  # an alert
            pass
