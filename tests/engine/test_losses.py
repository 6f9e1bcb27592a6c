"""A lost, frozen or broken peer ends everybody's job within the deadline; each one's line names it and the step."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smpc.engine.frames import HEADER, Kind
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from tests.harness import Participants, cast_of, cause

LONG = 20.0  # where nobody is silent: a busy machine must not make it seem so


def lines(fault: Callable[[Network], Any]) -> dict[str, str]:
    """What the others say when p1 does `fault` while they wait for it at the step 'gram: masked columns'."""
    told, everybody_is_there = threading.Event(), threading.Barrier(4)

    def victim(network: Network, _: Agreement) -> None:
        everybody_is_there.wait(20)
        fault(network)
        told.wait(20)

    def frozen(network: Network, _: Agreement) -> None:
        with network._service._turn:  # no heartbeat leaves
            everybody_is_there.wait(20)
            told.wait(20)

    def other(network: Network, _: Agreement) -> Any:
        network.enter("gram: masked columns")
        everybody_is_there.wait(20)
        if fault is freeze:
            network._service.until(lambda: False, 0.05)  # what it sent before is read
            network._links["p1"].heard -= LONG
            network._service._beat -= LONG
        return network.receive("p1", "masked columns", np.int64, (2,))

    everyone = Participants(cast_of(3, dealer=False), deadline=LONG)
    start = time.monotonic()
    work = dict.fromkeys(everyone.cast.everyone, other) | {"p1": frozen if fault is freeze else victim}
    running = everyone.start(work)
    said = {name: str(outcome.result(timeout=20)) for name, outcome in running.items() if name != "p1"}
    took = time.monotonic() - start
    told.set()
    running["p1"].result(timeout=20)
    everyone.close(RuntimeError())
    assert took < LONG / 2
    for line in said.values():
        assert re.search(r"\bp1\b", line) and "gram: masked columns" in line and line.isprintable(), line
    return said


def freeze(network: Network) -> None:
    """As SIGSTOP does, and the deadline has passed."""


def cut(network: Network) -> None:
    for link in network._links.values():
        link.connection.shutdown(socket.SHUT_RDWR)


def raw(data: bytes) -> Callable[[Network], None]:
    """Bytes of no frame that we would make, to p0."""

    def do(network: Network) -> None:
        network._links["p0"].connection.send(data)

    return do


def test_a_lost_connection() -> None:
    for line in lines(cut).values():
        assert "connection" in line


def test_the_end_of_a_stream_in_the_middle_of_a_frame() -> None:
    def half(network: Network) -> None:
        raw(HEADER.pack(Kind.DATA, 1, 1, 1, 0, bytes(8), 16) + struct.pack("<Q", 2) + b"x" + bytes(7))(network)
        cut(network)

    lines(half)


@pytest.mark.parametrize(
    "data",
    [
        HEADER.pack(9, 0, 0, 0, 0, bytes(8), 1) + b"x",
        HEADER.pack(Kind.DATA, 1, 2, 0, 0, bytes(8), 0) + struct.pack("<2Q", 2**63, 0),
        HEADER.pack(Kind.DATA, 1, 1, 0, 0, bytes(8), 2**60) + struct.pack("<Q", 2**57),
        b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        bytes(range(256)) * 200,
    ],
    ids=["kind", "dimensions", "oversize", "http", "bytes"],
)
def test_a_malformed_frame(data: bytes) -> None:
    said = lines(raw(data))
    assert "p1 sent a frame" in said["p0"]


def test_bytes_that_are_no_tls_record() -> None:
    def inject(network: Network) -> None:
        with socket.socket(fileno=socket.dup(network._links["p0"].fileno())) as below:
            below.send(b"\x17\x03\x03\x00\x20" + bytes(32))

    assert lines(inject)["p0"].startswith("p1: connection lost")


def test_a_frozen_peer_is_silent() -> None:
    said = lines(freeze)
    assert any(line == "p1 is silent for 20 s at 'gram: masked columns'" for line in said.values())


def test_an_error_of_its_own_is_told_with_its_step_and_without_its_text() -> None:
    def stumble(network: Network) -> None:
        network.enter("gram: masked columns")
        network.abort(ValueError("row 17 has income 123456"))

    for line in lines(stumble).values():
        assert cause(line) == "p1 stopped at 'gram: masked columns'"


def test_who_waits_for_somebody_else_is_told_the_culprit() -> None:
    """Only the connection between p0 and p1 is lost; the others wait for p0."""

    everybody_is_there = threading.Barrier(4)

    def work(network: Network, _: Agreement) -> Any:
        network.enter("reveal: x")
        everybody_is_there.wait(20)
        if network.me == "p1":
            network._links["p0"].connection.shutdown(socket.SHUT_RDWR)
            return network.waiting_for("p0", "nothing")
        return network.receive("p1" if network.me == "p0" else "p0", "share", np.int64, (2,))

    outcomes = Participants(cast_of(3, dealer=False)).outcomes(work)
    for line in map(str, outcomes.values()):
        assert re.search(r"\b(p0|p1): connection (closed|lost) .*at 'reveal: x'", line) and line.isprintable()


def test_nothing_is_sent_after_a_loss() -> None:
    def work(network: Network, _: Agreement) -> Any:
        if network.me == "p1":
            network.abort(RuntimeError())
            return None
        network._service.until(lambda: False, LONG)  # that is, until the loss
        network.send("server", "share", np.zeros(1))
        return None

    everyone = Participants(cast_of(2, dealer=False))
    outcomes = everyone.outcomes({"p0": work, "p1": work})
    everyone.close(RuntimeError())
    assert str(outcomes["p0"]) == "p1 stopped at 'handshake'"


def test_closing_twice_is_closing_once() -> None:
    everyone = Participants(cast_of(1, dealer=False))
    everyone.close()
    for network, _ in everyone.joined.values():
        network.abort(RuntimeError())
