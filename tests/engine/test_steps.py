"""Participants that are out of step fail at the first message, with both ends' steps named; so do unread messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smpc.engine import public_json
from smpc.engine.frames import MAX_ROUND, Kind
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.values import Shared
from tests.harness import ArraySession, Participants, Sessions, Work, cast_of

Step = Callable[[Network], Any]


def outcomes(**work: Step) -> dict[str, Any]:
    """What p0, p1 and server return or raise; each leaves as a job does."""

    def whole(step: Step) -> Work:
        def do(network: Network, _: Agreement) -> Any:
            result = step(network)
            network.finish()
            return result

        return do

    everyone = Participants(cast_of(2, dealer=False))
    return everyone.outcomes({name: whole(work.get(name, lambda network: None)) for name in everyone.cast.everyone})


def sending(label: str, array: Any, *steps: str) -> Step:
    def do(network: Network) -> None:
        for step in steps:
            network.enter(step)
        network.send("p0", label, array)
        network.step = "after sending"

    return do


def receiving(label: str, dtype: Any, shape: Any, *steps: str) -> Step:
    def do(network: Network) -> Any:
        for step in steps:
            network.enter(step)
        return network.receive("p1", label, dtype, shape)

    return do


NUMBERS = np.arange(3)


def test_what_is_expected_arrives() -> None:
    results = outcomes(p1=sending("share", NUMBERS, "a", "b"), p0=receiving("share", np.int64, (3,), "a", "b"))
    assert results["p0"].tolist() == [0, 1, 2]
    assert results["p1"] is None


@pytest.mark.parametrize(
    ("label", "array", "steps", "said"),
    [
        ("masked columns", NUMBERS, ["a", "b"], "it sent 'masked columns int64 (3,)'"),
        ("share", NUMBERS.astype(float), ["a", "b"], "it sent 'share float64 (3,)'"),
        ("share", np.arange(4), ["a", "b"], "it sent 'share int64 (4,)'"),
        ("share", NUMBERS[None], ["a", "b"], "it sent 'share int64 (1, 3)'"),
        ("share", NUMBERS, ["a", "c"], "it sent 'share int64 (3,)'"),
        ("share", NUMBERS, ["a"], "it sent 'share int64 (3,)'"),
        ("share", NUMBERS, ["b", "a"], "it sent 'share int64 (3,)'"),
    ],
)
def test_any_difference_is_found_at_the_first_message(label: str, array: Any, steps: list[str], said: str) -> None:
    results = outcomes(p1=sending(label, array, *steps), p0=receiving("share", np.int64, (3,), "a", "b"))
    line = str(results["p0"])
    assert isinstance(results["p0"], PeerError)
    assert line.startswith("p1 is out of step") and said in line
    assert "p0 is at 'b' and expects 'share int64 (3,)" in line
    assert "\n" not in line


def test_both_reveals_are_named_when_two_parties_open_different_values() -> None:
    def task(s: ArraySession) -> None:
        message = "votes" if s.me == "p1" else "coefficients"
        s.reveal(Shared((3,), 0, NUMBERS), to="server", message=message, unprotected=True)

    with pytest.raises(PeerError) as caught, Sessions(2) as running:
        running.run(task)
    assert "reveal: votes" in str(caught.value) and "reveal: coefficients" in str(caught.value)


def test_public_facts_of_a_step_are_compared() -> None:
    def step(shape: tuple[int, ...], then: Step) -> Step:
        def do(network: Network) -> Any:
            network.enter("gram", shape)
            return then(network)

        return do

    results = outcomes(p1=step((4, 2), sending("x", NUMBERS)), p0=step((4, 3), receiving("x", np.int64, (3,))))
    assert "p1 is out of step" in str(results["p0"])


def test_a_message_that_nobody_waits_for_is_an_error_at_its_receiver_and_told() -> None:
    results = outcomes(p1=sending("share", NUMBERS))
    assert str(results["p0"]) == "p1 sent 'share int64 (3,)', which no step of p0 waits for"


def test_so_it_is_when_it_fills_the_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smpc.engine.link.BACKLOG", 1000)

    def flood(network: Network) -> None:
        for _ in range(40):
            network.send("p0", "share", np.zeros(1000))

    assert "which no step of p0 waits for" in str(outcomes(p1=flood)["p0"])


def test_a_peer_that_ends_early_is_named() -> None:
    results = outcomes(p0=receiving("share", np.int64, (3,), "reveal: x"))
    assert str(results["p0"]).startswith("p1 ended its job while p0 waits for 'share'")


def test_a_goodbye_said_twice_is_one() -> None:
    def twice(network: Network) -> None:
        network._post(network._links["p0"], Kind.BYE, "goodbye", 0, None)

    assert outcomes(p1=twice) == {"p0": None, "p1": None, "server": None}


def test_nothing_counts_behind_a_goodbye() -> None:
    def late(network: Network) -> None:
        network._post(network._links["p0"], Kind.BYE, "goodbye", 0, None)
        network.send("p0", "share", NUMBERS)

    assert "p1 ended its job" in str(outcomes(p1=late, p0=receiving("share", np.int64, (3,)))["p0"])


def as_bytes(text: bytes) -> Any:
    return np.frombuffer(text, dtype=np.uint8)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000, b'{"rows": NaN}', b" " * (1 << 20) + b"{}"])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    results = outcomes(
        p1=sending("request", as_bytes(data)), p0=lambda network: public_json.receive(network, "p1", "request")
    )
    assert str(results["p0"]) == f"p1: 'request' ({len(data)} bytes) is no JSON text of at most 1048576 bytes"


@pytest.mark.parametrize("data", [b"[1]", b"null", b'"{}"'])
def test_facts_are_an_object(data: bytes) -> None:
    results = outcomes(
        p1=sending("request", as_bytes(data)), p0=lambda network: public_json.receive_facts(network, "p1", "request")
    )
    assert str(results["p0"]) == "p1: 'request' is not a JSON object"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_and_their_sender_named(dtype: Any, bad: float) -> None:
    values = np.array([[0.0, -1.5], [bad, 2.0]], dtype=dtype)
    results = outcomes(p1=sending("model", values, "a"), p0=receiving("model", dtype, (2, 2), "a"))
    assert str(results["p0"]) == "p1: 'model' holds NaN or infinite numbers at 'a'"


def test_a_server_that_publishes_nan_ends_the_job_with_one_line() -> None:
    def task(s: ArraySession) -> None:
        s.publish(s.at("server", lambda: np.array([1.0, np.nan])), shape=(2,), message="model")

    with pytest.raises(PeerError) as caught, Sessions(2) as running:
        running.run(task)
    assert str(caught.value) == "server: 'model' holds NaN or infinite numbers at 'publish: model'"


def test_no_peers_count_of_rounds_keeps_others_from_sending() -> None:
    """p1 claims the largest round there is; what p0 then sends is no larger, and refused by nobody."""

    def claims(network: Network) -> None:
        network.send("p0", "share", NUMBERS, round_=MAX_ROUND)

    def passes_on(network: Network) -> None:
        network.receive("p1", "share", np.int64, (3,))
        network.send("server", "sum", NUMBERS)

    def server(network: Network) -> Any:
        return network.receive("p0", "sum", np.int64, (3,)), network.round

    results = outcomes(p0=passes_on, p1=claims, server=server)
    assert results["p0"] is None and results["server"][1] == MAX_ROUND - 1


def test_a_round_that_is_too_large_is_refused() -> None:
    def claims(network: Network) -> None:
        network.send("p0", "share", NUMBERS, round_=2**32 - 1)

    results = outcomes(p0=receiving("share", np.int64, (3,)), p1=claims)
    assert str(results["p0"]) == f"p1 sent a frame of round {2**32 - 1}, at most {MAX_ROUND} at 'handshake'"
