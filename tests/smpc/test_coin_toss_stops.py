"""Every way to stop once the others' openings are read: it is at fault for all others, whatever it says."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smpc.coin_tossing import CoinTossError, _Toss
from smpc.engine.frames import Kind
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import COMMITMENT, ECHO, OPENING
from tests.harness import Participants, cast_of
from tests.smpc.cheats import PARTIES, SIZES, Cheat, cheating, honest, play, together


def abort(line: str) -> Callable[[Cheat], None]:
    def do(cheat: Cheat) -> None:
        for link in cheat.links():
            cheat._network._post(link, Kind.ABORT, line, 0, None)

    return do


def goodbye(cheat: Cheat) -> None:
    for link in cheat.links():
        cheat._network._post(link, Kind.BYE, "p0 said goodbye to it", 0, None)


def close(cheat: Cheat) -> None:
    for link in cheat.links():
        socket.socket.shutdown(link.connection, socket.SHUT_RDWR)


def silence(cheat: Cheat) -> None:
    """No heartbeat either."""
    with cheat._network._service._turn:
        time.sleep(4)


def late(cheat: Cheat) -> None:
    """Its heartbeats go on, and name another one as the culprit."""
    cheat._network._service.waits_for = "p0"


def no_frame(cheat: Cheat) -> None:
    for link in cheat.links():
        link.connection.send(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")


def another_frame(label: str, message: bytes) -> Callable[[Cheat], None]:
    return lambda cheat: cheat.post(label, message)


def again(step: str) -> Callable[[Cheat], None]:
    def do(cheat: Cheat) -> None:
        cheat.post(step, cheat.sent[step])

    return do


WAYS: dict[str, tuple[Callable[[Cheat], None], str]] = {
    "says that p0 is silent": (abort("p0 is silent for 5 s at 'coin toss: opening'"), "p2 reports: p0 is silent"),
    "says that p1 reports": (abort("p1 reports: p0: connection lost"), "p1 reports by way of p2: p0: connection"),
    "says that itself stopped": (abort("p2 stopped"), "p2 stopped"),
    "says nothing": (abort(""), "p2 reports: "),
    "says goodbye": (goodbye, "p2 ended its job"),
    "closes": (close, "p2: connection"),
    "is silent": (silence, "p2 is silent for 2 s"),
    "is late": (late, "p2 did not send 'opening' within 3 s"),
    "sends no frame": (no_frame, "p2 sent a frame"),
    "sends too little": (another_frame(OPENING, bytes(SIZES[OPENING] - 1)), "p2 is out of step"),
    "sends too much": (another_frame(OPENING, bytes(SIZES[OPENING] + 1)), "p2 is out of step"),
    "sends something else": (another_frame("noisy columns", bytes(SIZES[OPENING])), "p2 is out of step"),
    "sends zeros": (another_frame(OPENING, bytes(SIZES[OPENING])), "p2 opened another value"),
    "repeats its commitment": (again(COMMITMENT), "p2 is out of step"),
    "repeats its echo": (again(ECHO), "p2 is out of step"),
}


def check_stop(way: str, stop: Callable[[Cheat], None], said: str) -> None:

    def do(cheat: Cheat, step: str, message: bytes) -> None:
        if step != OPENING:
            cheat.post(step, message)
            return
        assert set(cheat.wait_for(OPENING)) == {"p0", "p1"}  # it knows what the seed would be
        stop(cheat)

    results = play({"p2": cheating(do)}, deadline=1.0, silence=2.0 if stop is silence else 20.0)
    for name in ("p0", "p1"):
        assert isinstance(results[name], CoinTossError), (way, results)
        assert results[name].at_fault == ("p2",), (way, results)
        assert said in str(results[name]) and "leave p2 out" in str(results[name]), (way, results)


def test_whoever_reads_the_openings_and_stops_is_at_fault_for_all_others() -> None:
    together(check_stop, ((way, *what) for way, what in WAYS.items()))


def test_an_opening_sent_twice_is_out_of_step_in_what_follows() -> None:
    def do(cheat: Cheat, step: str, message: bytes) -> None:
        for _ in range(2 if step == OPENING else 1):
            cheat.post(step, message)

    def and_on(network: Network, session: bytes) -> bytes:
        seed = honest(network, session)
        with pytest.raises(PeerError, match="p2 is out of step: it sent 'opening"):
            network.receive("p2", "noisy columns", np.int64, (3,))
        return seed

    results = play({"p2": cheating(do), "p0": and_on, "p1": and_on})
    assert len(set(results.values())) == 1


def test_the_end_of_somebody_who_has_opened_convicts_nobody() -> None:
    """p2 opens to p0 alone. p1 finds it at fault and says so; p0 has the seed and cannot tell who lies."""

    def do(cheat: Cheat, step: str, message: bytes) -> None:
        cheat.post(step, message, to=["p0"] if step == OPENING else None)

    def and_on(network: Network, session: bytes) -> Any:
        honest(network, session)
        return network.receive("p1", "noisy columns", np.int64, (3,))

    results = play({"p2": cheating(do), "p0": and_on}, deadline=1.0)
    assert results["p1"].at_fault == ("p2",)
    assert isinstance(results["p0"], PeerError) and not isinstance(results["p0"], CoinTossError)


def test_the_server_that_stops_keeps_nobody_from_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Barrier(4)
    compare = _Toss._compare

    def after_the_server(toss: _Toss, key: Any) -> list[str]:
        gone.wait(20)
        toss._network._service.serve_until(lambda: toss._network._links["server"].finished, 20)
        return compare(toss, key)

    def server(network: Network, _: Agreement) -> None:
        gone.wait(20)
        network.abort(PeerError("p0 is silent"))

    def party(network: Network, agreement: Agreement) -> Any:
        seed = honest(network, agreement.nonce)
        with pytest.raises(PeerError, match="server reports: p0 is silent"):
            network.send("p1" if network.me == "p0" else "p0", "x", np.zeros(1))
        return seed

    monkeypatch.setattr(_Toss, "_compare", after_the_server)
    everyone = Participants(cast_of(3, dealer=False))
    results = everyone.outcomes({**dict.fromkeys(PARTIES, party), "server": server})
    everyone.close(PeerError("over"))
    assert len({results[name] for name in PARTIES}) == 1 and isinstance(results["p0"], bytes)
