"""The handshake: public facts compared with both sides shown, one nonce, keys that two participants alone have."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

from smpc.engine import public_json
from smpc.engine.handshake import Agreement, derive
from smpc.engine.network import Network
from smpc.errors import PeerError
from tests.harness import Participants, cast_of, cause

CAST = cast_of(3)


@pytest.fixture(scope="module")
def agreements() -> list[dict[str, Agreement]]:
    """Of two jobs of the same participants."""
    jobs = []
    for _ in range(2):
        with Participants(CAST) as everyone:
            jobs.append(everyone.run(lambda _, agreement: agreement))
    return jobs


def test_a_job_has_one_nonce_of_its_own(agreements: list[dict[str, Agreement]]) -> None:
    nonces = [{agreement.nonce for agreement in job.values()} for job in agreements]
    assert [len(found) for found in nonces] == [1, 1]
    assert nonces[0] != nonces[1]


def test_every_pair_has_one_key_and_no_key_occurs_twice(agreements: list[dict[str, Agreement]]) -> None:
    keys = []
    for job in agreements:
        for one, other in combinations(CAST.everyone, 2):
            assert job[one].key(other, "zero") == job[other].key(one, "zero")
            keys += [job[one].keys[other], *(job[one].key(other, purpose) for purpose in ("zero", "dealer"))]
    assert len(set(keys)) == len(keys) == 2 * 10 * 3
    assert all(len(key) == 32 for key in keys)


def test_a_participant_knows_keys_with_itself_only(agreements: list[dict[str, Agreement]]) -> None:
    for me, other in permutations(CAST.everyone, 2):
        theirs = {key for name, key in agreements[0][other].keys.items() if name != me}
        assert not theirs & set(agreements[0][me].keys.values())


@pytest.mark.parametrize(
    "purposes", [(("a", "b"), ("ab",)), (("mask", 1, 11), ("mask", 11, 1)), ((1,), ("1",)), ((), ("",))]
)
def test_purposes_do_not_run_into_each_other(purposes: tuple[tuple[Any, ...], tuple[Any, ...]]) -> None:
    one, other = purposes
    assert derive(bytes(32), *one) != derive(bytes(32), *other)


def test_facts_that_differ_are_shown_with_both_sides_to_everybody() -> None:
    facts = {"p0": {"rows": "20190", "job": "a1"}, "p1": {"rows": "20189"}, "server": {"job": "a1"}}
    lines = told(refused(facts))
    assert set(lines) == {"the participants do not run the same job: rows: p0 has 20190, p1 has 20189"}
    assert len(lines) == len(CAST.everyone)


def test_many_differences_are_one_line() -> None:
    many = {str(number): "x" for number in range(10)}
    lines = told(refused({"p0": many, "dealer": dict.fromkeys(many, "y" * 5000)}))
    assert any(line.endswith("(and 7 more)") for line in lines)
    assert all(len(line) < 1500 for line in lines)


def told(errors: dict[str, PeerError]) -> list[str]:
    """Each one's line; who was told before it compared for itself says by whom."""
    return [cause(str(error)) for error in errors.values()]


def test_a_fact_cannot_steer_a_terminal() -> None:
    errors = refused({"p0": {"rows": "1"}, "p1": {"rows": "\x1b[31m2\n"}})
    assert all(str(error).isprintable() for error in errors.values())


def test_long_facts_that_are_equal_are_equal() -> None:
    long = {name: {"k" * 200: "v\n" * 1000} for name in CAST.everyone}
    with Participants(CAST, facts=long) as everyone:
        assert len(everyone.joined) == len(CAST.everyone)


@pytest.mark.parametrize("common", ["v" * 300, "", "v" * 299 + "\n"])
def test_long_facts_are_compared_to_their_end(common: str) -> None:
    lines = told(refused({"p0": {"columns": common + "x"}, "p2": {"columns": common + "y"}}))
    assert all(line.startswith("the participants do not run the same job: columns: ") for line in lines)
    assert len(lines) == len(CAST.everyone)


def test_facts_that_only_some_state_reach_all() -> None:
    with Participants(CAST, facts={"p0": {"rows": "7"}, "p1": {"plan": "b"}}) as everyone:
        found = everyone.run(lambda _, agreement: dict(agreement.facts))
    assert all(facts == {"rows": "7", "plan": "b"} for facts in found.values())


def refused(facts: dict[str, dict[str, str]]) -> dict[str, PeerError]:
    with pytest.raises(JoinFailed) as caught:
        Everybody(CAST, facts=facts)
    return caught.value.errors


class JoinFailed(Exception):
    def __init__(self, errors: dict[str, Any]) -> None:
        self.errors = errors


class Everybody(Participants):
    """Participants whose start tells every one's error."""

    def _all(self, calls: Any) -> Any:
        futures = {name: self._threads[name].submit(f, *arguments) for name, (f, arguments) in calls.items()}
        errors = {name: future.exception(timeout=30) for name, future in futures.items()}
        raise JoinFailed({name: error for name, error in errors.items() if isinstance(error, PeerError)})


@pytest.mark.parametrize(
    "hello", [{}, {"half": "00", "nonce": "00", "facts": {}}, {"half": "zz" * 32, "nonce": 5, "facts": []}]
)
def test_a_malformed_hello_is_refused(hello: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    real = public_json.send

    def send(network: Network, peer: str, label: str, message: Any) -> None:
        real(network, peer, label, hello if (network.me, label) == ("p1", "hello") else message)

    monkeypatch.setattr(public_json, "send", send)
    errors = refused({})
    assert {"p0", "p2", "server", "dealer"} <= errors.keys()
    assert all("p1: its hello is malformed" in str(error) for error in errors.values())


def test_somebody_who_tells_two_nonces_is_out_of_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it could choose the job's nonce for one victim."""
    real = public_json.send

    def send(network: Network, peer: str, label: str, message: Any) -> None:
        two = (network.me, peer) == ("p1", "p0") and label == "hello"
        real(network, peer, label, {**message, "nonce": "00" * 32} if two else message)

    monkeypatch.setattr(public_json, "send", send)

    def work(network: Network, _: Agreement) -> Any:
        for name in network.peers:
            network.send(name, "x", np.zeros(1))
        return [network.receive(name, "x", np.float64, (1,)) for name in network.peers]

    outcomes = Participants(CAST).outcomes(work)
    assert all(isinstance(outcome, PeerError) for outcome in outcomes.values())
