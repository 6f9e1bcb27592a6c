"""Waiting for several peers at once: each is judged by its own connection, whoever else is lost meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from tests.harness import Participants, cast_of

DUE = {"p1": ("x", 3), "p2": ("x", 3)}
Step = Callable[[Network], Any]


def heard(listener: Step, **others: Step) -> Any:
    """What p0 returns; the others do their step and live until p0 is done."""
    done = threading.Event()

    def first(network: Network, _: Agreement) -> Any:
        try:
            return listener(network)
        finally:
            done.set()

    def another(step: Step) -> Callable[[Network, Agreement], None]:
        def work(network: Network, _: Agreement) -> None:
            step(network)
            done.wait(20)

        return work

    everyone = Participants(cast_of(3, dealer=False))
    steps = {name: another(others.get(name, lambda network: None)) for name in ("p1", "p2", "server")}
    outcome = everyone.outcomes({"p0": first, **steps})["p0"]
    everyone.close(RuntimeError())
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def says(*words: bytes) -> Step:
    return lambda network: [network.send("p0", "x", np.frombuffer(word, np.uint8)) for word in words]


def leaves(network: Network) -> None:
    network.abort(PeerError("p2 is silent"))


def soon() -> float:
    return time.monotonic() + 15


def test_the_loss_of_one_does_not_end_the_wait_for_another() -> None:
    lost = threading.Event()

    def late(network: Network) -> None:
        lost.wait(20)
        network.tell(["p0"], "x", np.frombuffer(b"abc", np.uint8))

    def listener(network: Network) -> Any:
        name, error = network.hear(DUE, soon())
        lost.set()
        assert (name, str(error)) == ("p1", "p1 reports: p2 is silent") and isinstance(error, PeerError)
        assert network.hear({"p2": ("x", 3)}, soon()) == ("p2", b"abc")
        with pytest.raises(PeerError, match="p1 reports"):  # all else ends, as ever
            network.receive("p2", "x", np.uint8, (3,))

    heard(listener, p1=leaves, p2=late)


def test_what_came_before_the_end_counts_before_the_end() -> None:
    def last_words(network: Network) -> None:
        says(b"abc")(network)
        leaves(network)

    def listener(network: Network) -> Any:
        assert network._service.serve_until(lambda: network._links["p1"].finished, 15) is None
        due = {"p1": ("x", 3)}
        assert network.hear(due, soon()) == ("p1", b"abc")
        return network.hear(due, soon())

    name, error = heard(listener, p1=last_words)
    assert name == "p1" and isinstance(error, PeerError)


@pytest.mark.parametrize("message", [b"ab", b"abcd", b""])
def test_another_message_is_what_it_did_instead(message: bytes) -> None:
    name, error = heard(lambda network: network.hear(DUE, soon()), p2=says(message))
    assert name == "p2" and "p2 is out of step" in str(error)


def test_a_goodbye_is_one_too() -> None:
    def listener(network: Network) -> Any:
        return network.hear({"server": ("x", 3)}, soon())

    def bye(network: Network) -> None:
        network.patience = 0.1
        network.farewell = "enough"
        with pytest.raises(PeerError):  # nobody else says it
            network.finish()

    name, error = heard(listener, server=bye)
    assert name == "server" and str(error).startswith("server ended its job (enough) while p0 waits for 'x'")


def test_nothing_at_the_end() -> None:
    start = time.monotonic()
    assert heard(lambda network: network.hear(DUE, time.monotonic() + 0.3)) is None
    assert 0.3 <= time.monotonic() - start < 10


def test_what_arrived_while_this_process_was_stopped_is_not_late() -> None:
    sent = threading.Event()

    def speak(network: Network) -> None:
        says(b"abc")(network)
        network.flush()
        sent.set()

    def stopped(network: Network) -> Any:
        with network._service._turn:  # as SIGSTOP does
            sent.wait(20)
            time.sleep(0.1)
            network._service._wanted = True
        return network.hear(DUE, time.monotonic() - 5)

    assert heard(stopped, p2=speak) == ("p2", b"abc")


def test_all_are_told_whoever_is_lost() -> None:
    def listener(network: Network) -> Any:
        network._service.serve_until(lambda: network._links["p1"].finished, 15)
        message = np.frombuffer(b"abc", np.uint8)
        with pytest.raises(PeerError):
            network.send("p2", "x", message)
        network.tell(["p1", "p2"], "x", message)
        return network.hear({"p2": ("x", 3)}, soon())

    def echo(network: Network) -> None:
        assert network.hear({"p0": ("x", 3)}, soon()) == ("p0", b"abc")
        network.tell(["p0"], "x", np.frombuffer(b"abc", np.uint8))

    assert heard(listener, p1=leaves, p2=echo) == ("p2", b"abc")
