"""Coin tossing among honest parties, and with one that lies."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from petlib.ec import EcPt

from mechanisms.randomness import SecureRandom
from smpc import commitments
from smpc.coin_tossing import CoinTossError
from smpc.commitments import POINT_BYTES, commit
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import COMMITMENT, ECHO, OPENING
from tests.harness import Sessions
from tests.smpc.cheats import ORDER, PARTIES, RANDOM, SESSION, Cheat, cheating, honest, lie, opening_of, play, together


def test_all_get_the_exclusive_or_of_the_values() -> None:
    drawn = {name: bytes([number] * 31) + bytes([0x80]) for number, name in enumerate(PARTIES, 5)}
    results = play({name: lambda n, s: honest(n, s, drawn[n.me]) for name in PARTIES})
    assert set(results.values()) == {bytes([5 ^ 6 ^ 7] * 31) + bytes([0x80])}


@pytest.mark.parametrize("fair", PARTIES)
def test_one_uniform_value_makes_the_seed_uniform(fair: str) -> None:
    """Two colluders with fixed values: two tosses differ, and differ by exactly what the fair one drew."""
    drawn = [RANDOM.words(4).tobytes() for _ in range(2)]
    seeds = []
    for value in drawn:
        plays = {name: (lambda n, s: honest(n, s, bytes(32))) for name in PARTIES}
        plays[fair] = lambda n, s, value=value: honest(n, s, value)  # type: ignore[misc]
        seeds.append(set(play(plays).values()))
    assert seeds == [{drawn[0]}, {drawn[1]}]


def test_sessions_toss_a_new_seed_each_time_and_tell_the_server_nothing() -> None:
    def task(s: Any) -> Any:
        seeds = [s.toss() for _ in range(2)]
        own = [seed[s.me]._value if s.me in seed else None for seed in seeds]
        assert all(seed[p]._value is None for seed in seeds for p in s.cast.parties if p != s.me)
        return own, s.transcript.steps(), s.network.round

    with Sessions(3, record=True) as sessions:
        results = sessions.run(task)
        frames = list(sessions.frames["server"])
    first, second = results["p0"][0]
    assert first != second and len(first) == len(second) == 32
    assert all(results[p][0] == [first, second] for p in sessions.cast.parties)
    assert results["server"][0] == [None, None]
    assert [m for _, m in results["server"][1]] == ["commitment", "echo", "opening"] * 2
    assert not [f for _, peer, f in frames if f.label in ("commitment", ECHO, OPENING)]


# lies


def another_value(cheat: Cheat, step: str, message: bytes) -> bytes:
    """Waits for the others' openings, then opens what would suit it."""
    if step != OPENING:
        return message
    cheat.wait_for(OPENING)
    return b"z" * 32 + message[32:]


def copy(cheat: Cheat, step: str, message: bytes) -> bytes:
    if step != COMMITMENT:
        return message
    return cheat.wait_for(COMMITMENT)["p0"][:POINT_BYTES] + message[POINT_BYTES:]


def altered_echo(cheat: Cheat, step: str, message: bytes) -> bytes:
    """Says that p0 had committed to something else."""
    if step != ECHO:
        return message
    return commit(b"x" * 32, 3, session=SESSION, party="p0") + message[POINT_BYTES:-1] + bytes([message[-1] ^ 1])


def another_ones_key(cheat: Cheat, step: str, message: bytes) -> bytes:
    if step != COMMITMENT:
        return message
    return message[:POINT_BYTES] + cheat.wait_for(COMMITMENT)["p0"][POINT_BYTES:]


def wrong_signature(cheat: Cheat, step: str, message: bytes) -> bytes:
    return message[:-1] + bytes([message[-1] ^ 1]) if step == ECHO else message


def test_who_opens_another_value_is_named_by_all() -> None:
    results = play({"p2": lie(another_value)})
    for name in ("p0", "p1"):
        assert results[name].at_fault == ("p2",) and "p2 opened another value" in str(results[name])


def test_a_copy_is_refused_by_the_one_who_is_copied() -> None:
    results = play({"p2": lie(copy)})
    assert results["p0"].at_fault == ("p2",) and "p2 repeats the commitment of p0" in str(results["p0"])
    assert isinstance(results["p1"], PeerError) and getattr(results["p1"], "at_fault", ()) in ((), ("p2",))


def test_an_opening_of_anothers_commitment_does_not_fit() -> None:
    """A copy re-blinded so that it looks new, opened with p0's own value: the name inside does not fit."""

    class Replay(Cheat):
        def _commit(self, own: bytes) -> None:
            group, second = commitments._generators()
            theirs = self.wait_for(COMMITMENT)["p0"]
            point = EcPt.from_binary(theirs[:POINT_BYTES], group) + second
            super()._commit(point.export() + own[POINT_BYTES:])

        def _send(self, step: str, message: bytes) -> float:
            if step == OPENING:
                theirs = self.wait_for(OPENING)["p0"]
                blinding = (int.from_bytes(theirs[32:64], "big") + 1) % ORDER
                message = opening_of(theirs[:32], blinding) + message[64:]
            self.post(step, message)
            return time.monotonic()

    def replay(network: Network, session: bytes) -> Any:
        return Replay(network, session, lambda *_: None).run(bytes(32), SecureRandom())

    results = play({"p2": replay})
    for name in ("p0", "p1"):
        assert results[name].at_fault == ("p2",) and "p2 opened another value" in str(results[name])


def test_two_commitments_for_two_parties_are_found_before_anything_is_opened() -> None:
    def two_faces(cheat: Cheat, step: str, message: bytes) -> None:
        """Commits to two values: one told p0, the other p1."""
        if step != COMMITMENT:
            cheat.post(step, message)
            return
        other = commit(b"x" * 32, 5, session=SESSION, party="p2") + message[POINT_BYTES:]
        cheat.post(step, message, to=["p0"])
        cheat.post(step, other, to=["p1"])

    results = play({"p2": cheating(two_faces)}, deadline=1.0)
    for name, other in (("p0", "p1"), ("p1", "p0")):
        assert isinstance(results[name], PeerError)
        if isinstance(results[name], CoinTossError) and not results[name].at_fault:
            assert f"p2 or {other} alters a commitment" in str(results[name])  # a third cannot tell which of the two
        assert getattr(results[name], "at_fault", ()) in ((), ("p2",))
    assert isinstance(results["p2"], PeerError)  # it got no opening


def check_lie(cheat: Callable[[Cheat, str, bytes], bytes], said: str) -> None:
    def do(of: Cheat, step: str, message: bytes) -> None:
        if step != OPENING:
            of.post(step, cheat(of, step, message))

    results = play({"p2": cheating(do)}, deadline=1.0)
    assert results["p0"].at_fault == ("p2",) and said in str(results["p0"])
    assert isinstance(results["p1"], PeerError) and getattr(results["p1"], "at_fault", ()) in ((), ("p2",))
    assert isinstance(results["p2"], PeerError)


def test_who_lies_in_its_echo_gets_no_opening() -> None:
    lies = (
        (altered_echo, "p2 alters the commitment of p0"),
        (another_ones_key, "p2 alters the commitment of p2"),
        (wrong_signature, "p2 does not sign its echo"),
    )
    together(check_lie, lies)


def test_a_loss_before_the_echoes_names_the_party_and_convicts_nobody() -> None:
    def stops(network: Network, session: bytes) -> None:
        raise PeerError("p2 stopped")

    results = play({"p2": stops})
    for name in ("p0", "p1"):
        assert isinstance(results[name], PeerError) and not isinstance(results[name], CoinTossError)
        assert "p2" in str(results[name])
