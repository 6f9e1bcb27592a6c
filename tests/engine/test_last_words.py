"""Why a participant left reaches the others, whatever is under way between them; and it does not wait for long."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from smpc.engine import network as module
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from tests.harness import Participants, cast_of

COUNT, SIZE = 12, 1 << 14  # 1.5 MB: it waits in the sockets, not in the sender's queue


def test_they_arrive_at_a_peer_that_is_slow_to_read_and_still_sends() -> None:
    """A connection closed on unread data is reset: what had not arrived yet would be lost."""
    leaves = threading.Event()

    def leaver(network: Network, _: Agreement) -> None:
        network.enter("gram")
        for _ in range(COUNT):
            network.send("p1", "x", np.zeros(SIZE))
        leaves.set()
        raise ValueError("no more")

    def slow(network: Network, _: Agreement) -> Any:
        with network._service._turn:  # it reads nothing
            leaves.wait(20)
            for _ in range(100):
                network.send("p0", "y", np.zeros(1000))
                time.sleep(0.003)
        network.enter("gram")
        for _ in range(COUNT):
            network.receive("p0", "x", np.float64, (SIZE,))
        return network.receive("p0", "x", np.float64, (SIZE,))

    everyone = Participants(cast_of(2, dealer=False))
    outcomes = everyone.outcomes({"p0": leaver, "p1": slow})
    everyone.close(RuntimeError())
    assert str(outcomes["p1"]) == "p0 stopped at 'gram'"


def test_a_peer_at_work_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its network thread hears them and closes its end, however long its computation takes."""
    monkeypatch.setattr(module, "_LAST_WORDS", 15.0)
    gone = threading.Event()

    def leaver(network: Network, _: Agreement) -> float:
        start = time.monotonic()
        network.abort(ValueError("no more"))
        gone.set()
        return time.monotonic() - start

    everyone = Participants(cast_of(2, dealer=False))
    work = {name: lambda network, _: gone.wait(20) for name in ("p1", "server")} | {"p0": leaver}
    assert everyone.outcomes(work)["p0"] < 8
    everyone.close(RuntimeError())


def test_a_peer_that_does_not_leave_is_not_waited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LAST_WORDS", 0.2)

    def leaver(network: Network, _: Agreement) -> float:
        start = time.monotonic()
        network.abort(ValueError("no more"))
        return time.monotonic() - start

    def frozen(network: Network, _: Agreement) -> None:
        with network._service._turn:
            time.sleep(0.6)

    everyone = Participants(cast_of(1, dealer=False))
    took = everyone.outcomes({"p0": leaver, "server": frozen})["p0"]
    everyone.close(RuntimeError())
    assert 0.15 < took < 10


def test_what_could_be_held_against_the_leaver_has_a_deadline_to_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed before, the connection would be reset by what the slow peer sends, and the opening lost with it."""
    monkeypatch.setattr(module, "_LAST_WORDS", 0.2)

    def leaver(network: Network, _: Agreement) -> None:
        for _ in range(COUNT):
            network.tell(["p1"], "x", np.zeros(8 * SIZE, dtype=np.uint8))
        raise ValueError("no more")

    def slow(network: Network, _: Agreement) -> Any:
        with network._service._turn:  # it reads nothing, and sends now and then
            for _ in range(10):
                network.send("p0", "y", np.zeros(1000))
                time.sleep(0.1)
        return [network.hear({"p0": ("x", 8 * SIZE)}, time.monotonic() + 5) for _ in range(COUNT)]

    everyone = Participants(cast_of(2, dealer=False))
    outcomes = everyone.outcomes({"p0": leaver, "p1": slow})
    everyone.close(RuntimeError())
    assert all(name == "p0" and isinstance(message, bytes) for name, message in outcomes["p1"])
