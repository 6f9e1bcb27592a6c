"""A peer far ahead of us is held back; that neither stalls a stream nor is taken for silence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smpc.engine import link
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from tests.harness import Participants, cast_of

LONG = 20.0


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not done():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


def both(sender: Any, receiver: Any, *, deadline: float) -> Any:
    with Participants(cast_of(2, dealer=False), deadline=deadline) as everyone:
        return everyone.run({"p0": receiver, "p1": sender})["p0"]


def sends(count: int, size: int, ready: threading.Event) -> Any:
    def work(network: Network, agreement: Agreement) -> None:
        ready.wait(5)
        for number in range(count):
            network.send("p0", "x", np.full(size, number))

    return work


@pytest.mark.parametrize("count", [21, 22, 43])
def test_the_last_messages_do_not_wait_for_a_heartbeat(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "BACKLOG", 5000)
    ready = threading.Event()

    def work(network: Network, agreement: Agreement) -> float:
        with network._service._turn:  # all messages arrive before the first is read
            ready.set()
            time.sleep(0.02)
        start = time.monotonic()
        for number in range(count):
            assert network.receive("p1", "x", np.int64, (100,))[0] == number
        return time.monotonic() - start

    assert both(sends(count, 100, ready), work, deadline=30.0) < 4.0  # the first heartbeat comes after 5


def test_a_slow_reader_does_not_blame_its_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "BACKLOG", 5000)
    monkeypatch.setattr(link, "_TURN", 3)  # one message a turn
    ready = threading.Event()
    ready.set()

    def work(network: Network, agreement: Agreement) -> str:
        peer, service = network._links["p1"], network._service
        until(lambda: not peer.wants_read)
        with service._turn:  # a deadline passes, at work
            peer.heard -= LONG
            service._beat -= LONG
        until(lambda: peer.heard > time.monotonic() - LONG / 2 or service.failure is not None)
        network.receive("p1", "x", np.int64, (1000,))
        network.send("p1", "still here", np.zeros(1))
        for _ in range(9):
            network.receive("p1", "x", np.int64, (1000,))
        return "all read"

    def sender(network: Network, agreement: Agreement) -> None:
        sends(10, 1000, ready)(network, agreement)
        network.receive("p0", "still here", np.float64, (1,))

    assert both(sender, work, deadline=LONG) == "all read"


def test_memory_for_a_peer_that_runs_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "BACKLOG", 1 << 20)
    ready = threading.Event()
    ready.set()

    def work(network: Network, agreement: Agreement) -> int:
        time.sleep(0.3)
        kept = sum(frame.payload.nbytes for frame in network._links["p1"].inbox)
        for _ in range(100):
            network.receive("p1", "x", np.int64, (1 << 14,))
        return kept

    assert both(sends(100, 1 << 14, ready), work, deadline=30.0) < 3 << 20  # of 13 MB sent
