"""No wait lasts for ever: a peer that sends heartbeats and does not do what is due is named, with the step."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smpc.engine import handshake
from smpc.engine.frames import Frame, Kind
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.service import Service
from smpc.engine.start import PATIENCE
from smpc.errors import PeerError
from tests.harness import Participants, cast_of

SHORT = 0.2
Step = Callable[[Network], Any]


def said(step: Step, **others: Step) -> str:
    """What p0, whose patience is short, says at `step`; the others live until it has said it, and then leave."""
    told = threading.Event()

    def impatient(network: Network, _: Agreement) -> Any:
        network.patience = SHORT
        network.deadline = 0.1  # how long it tries to tell the others, of whom some do not read
        network.enter("reveal: x")
        try:
            return step(network)
        finally:
            told.set()

    def idle(other: Step) -> Callable[[Network, Agreement], None]:
        def work(network: Network, _: Agreement) -> None:
            other(network)
            told.wait(20)

        return work

    everyone = Participants(cast_of(2, dealer=False))
    names = ("p1", "server")
    work = {"p0": impatient} | {name: idle(others.get(name, lambda network: None)) for name in names}
    start = time.monotonic()
    outcome = everyone.outcomes(work)["p0"]
    assert time.monotonic() - start < 10
    everyone.close(RuntimeError())
    assert isinstance(outcome, PeerError)
    return str(outcome)


def test_a_message_that_does_not_come() -> None:
    line = said(lambda network: network.receive("p1", "share", np.int64, (3,)))
    assert line == "p1 did not send 'share' within 0.2 s at 'reveal: x'"


def test_a_request_that_does_not_come() -> None:
    line = said(lambda network: network.waiting_for("p1", "request"))
    assert line == "p1 did not send 'request' within 0.2 s at 'reveal: x'"


def test_a_goodbye_that_does_not_come() -> None:
    def bye(network: Network) -> None:
        for link in network._links.values():
            network._post(link, Kind.BYE, "goodbye", 0, None)

    line = said(lambda network: network.finish(), server=bye)
    assert line == "p1 did not say goodbye within 0.2 s at 'goodbye'"


def deaf(network: Network) -> None:
    """Reads nothing from p0, and stays alive: its heartbeats go on."""
    link = network._links["p0"]
    link._backlog = 1 << 62
    network.deadline = 0.1  # nor does it hear the others leave


@pytest.mark.parametrize("leave", ["flush", "finish"])
def test_a_peer_that_does_not_read(leave: str) -> None:
    ready = threading.Barrier(3)

    def send(network: Network) -> None:
        ready.wait(20)
        for _ in range(8):
            network.send("p1", "share", np.zeros(1 << 18))  # 16 MiB: more than the sockets' buffers
        getattr(network, leave)()

    def bye(network: Network) -> None:
        if network.me == "p1":
            deaf(network)
        network._post(network._links["p0"], Kind.BYE, "goodbye", 0, None)
        ready.wait(20)

    step = "goodbye" if leave == "finish" else "reveal: x"
    assert said(send, p1=bye, server=bye) == f"p1 did not take what p0 sent it within 0.2 s at '{step}'"


def test_who_waits_itself_says_for_whom() -> None:
    """p0 waits for the server, which waits for p1: the line names the one that holds both up."""

    def stuck(network: Network) -> None:
        network._service._beat = 0.0  # the next heartbeat is due
        with pytest.raises(PeerError):
            network.receive("p1", "masked columns", np.int64, (3,))

    def step(network: Network) -> Any:
        link = network._links["server"]
        assert network._service.until(lambda: link.waits_for == "p1", 15)  # a heartbeat has come
        return network.receive("server", "model", np.float64, (3,))

    line = said(step, server=stuck)
    assert line == "server did not send 'model' within 0.2 s at 'reveal: x'; it says that it waits for p1"


def test_what_a_peer_says_of_others_is_a_participants_name_or_nothing() -> None:
    def lie(network: Network) -> None:
        network._service.waits_for = "nobody at all"
        network._service._beat = 0.0

    def step(network: Network) -> Any:
        assert network._service.until(lambda: network._links["p1"].waits_for != "", 15)
        return network.receive("p1", "share", np.int64, (3,))

    assert said(step, p1=lie) == "p1 did not send 'share' within 0.2 s at 'reveal: x'"


def test_a_hello_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit is the job's deadline: who sends heartbeats has found everybody."""
    told, limits = threading.Event(), []

    def shake_hands(network: Network, facts: Any) -> Agreement:
        limits.append(network.patience)
        if network.me == "p1":
            told.wait(20)
            raise RuntimeError
        network.patience = SHORT if network.me == "p0" else 20
        try:
            return handshake.shake_hands(network, facts)
        finally:
            told.set()

    monkeypatch.setattr("smpc.engine.start.shake_hands", shake_hands)
    with pytest.raises(PeerError, match=r"^p1 did not send 'hello' within 0.2 s at 'start'$"):
        Participants(cast_of(2, dealer=False), deadline=19.0)
    assert limits == [19.0] * 3


def test_a_job_that_has_begun_is_patient() -> None:
    with Participants(cast_of(1, dealer=False), deadline=19.0) as everyone:
        assert {network.patience for network, _ in everyone.joined.values()} == {PATIENCE}


class Chatterbox:
    """A link that never runs out of heartbeats."""

    peer, finished, wants_read, wants_write, pending, waits_for = "p1", False, True, False, True, ""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair()
        self._there.send(b"x")
        self.heard = 0.0

    def fileno(self) -> int:
        return self._here.fileno()

    def read(self) -> list[Frame]:
        self.heard = time.monotonic()
        return [Frame(Kind.HEARTBEAT, "", 0, bytes(8), np.zeros(0, np.uint8))]

    def post(self, *_: Any) -> None:
        """Nobody reads them."""

    def close(self) -> None:
        self._here.close()
        self._there.close()


def test_a_peer_that_never_stops_talking_does_not_hold_the_others_up() -> None:
    quiet, loud = Chatterbox(), Chatterbox()
    quiet.peer, quiet.pending = "p2", False
    links: Any = {"p1": loud, "p2": quiet}
    service = Service("p0", links, 20.0, lambda link, frame: None)
    ended: list[bool] = []
    waiting = threading.Thread(target=lambda: ended.append(service.until(lambda: False, SHORT)), daemon=True)
    waiting.start()
    waiting.join(10)
    assert ended == [False] and quiet.heard > 0
    service.close()
