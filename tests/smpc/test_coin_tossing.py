"""Coin tossing: who commits to what, hiding and binding, every way to cheat or to fall silent, on real connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from petlib.bn import Bn
from petlib.ec import EcGroup, EcPt

from mechanisms.randomness import SecureRandom
from smpc import coin_tossing
from smpc.coin_tossing import POINT_BYTES, CoinTossError, commit, opens, toss
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import ECHO, OPENING
from tests.harness import Participants, Sessions, cast_of

SESSION = bytes(range(40))
RANDOM = SecureRandom()
ORDER = int(str(coin_tossing._generators()[0].order()))


def opening_of(value: bytes, blinding: int) -> bytes:
    return value + blinding.to_bytes(32, "big")


values = st.binary(min_size=32, max_size=32)
scalars = st.integers(0, ORDER - 1)


@given(values, scalars)
@settings(max_examples=30, deadline=None)
def test_a_commitment_opens_for_its_value_party_and_session_only(value: bytes, blinding: int) -> None:
    made = commit(value, blinding, session=SESSION, party="p0")
    opening = opening_of(value, blinding)
    assert len(made) == POINT_BYTES and opens(made, opening, session=SESSION, party="p0")
    assert not opens(made, opening, session=SESSION, party="p1")
    assert not opens(made, opening, session=SESSION + b"x", party="p0")
    for place in (0, 31, 32, 63):
        changed = bytearray(opening)
        changed[place] ^= 1
        assert not opens(made, bytes(changed), session=SESSION, party="p0")
    assert not opens(made, opening[:-1], session=SESSION, party="p0")
    assert not opens(made, b"", session=SESSION, party="p0")


def test_names_are_encoded_injectively() -> None:
    value = bytes(32)
    assert commit(value, 1, session=b"ab", party="c") != commit(value, 1, session=b"a", party="bc")


def test_perfectly_hiding_whoever_knew_the_generators_relation_could_open_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With H = t G and t known every commitment opens to every value: so it says nothing about the one inside."""
    group = EcGroup(415)
    trapdoor = 123456789
    monkeypatch.setattr(coin_tossing, "_generators", lambda: (group, Bn.from_num(trapdoor) * group.generator()))

    def message(value: bytes) -> int:
        return int.from_bytes(coin_tossing._digest(SESSION, "p0", value), "big") % ORDER

    made = commit(b"a" * 32, 77, session=SESSION, party="p0")
    other = b"b" * 32
    blinding = (77 + (message(b"a" * 32) - message(other)) * pow(trapdoor, -1, ORDER)) % ORDER
    assert opens(made, opening_of(other, blinding), session=SESSION, party="p0")


def test_the_second_generator_is_a_fixed_point_of_unknown_logarithm() -> None:
    group, second = coin_tossing._generators()
    assert group.check_point(second) and not second.is_infinite() and second != group.generator()
    assert second.export().hex() == coin_tossing._generators()[1].export().hex()


Play = Callable[[Network, bytes], Any]
PARTIES = ("p0", "p1", "p2")


def honest(network: Network, session: bytes, value: bytes | None = None) -> bytes:
    own = SecureRandom()
    return toss(network, PARTIES, session, value or own.words(4).tobytes(), own)


def play(plays: Mapping[str, Play], deadline: float = 5.0) -> dict[str, Any]:
    """What each of three parties returns or raises; those without a play of their own are honest."""

    def work(name: str) -> Any:
        def do(network: Network, agreement: Agreement) -> Any:
            return plays.get(name, honest)(network, agreement.nonce)

        return do

    everyone = Participants(cast_of(3, dealer=False), deadline=deadline)
    try:
        return everyone.outcomes({name: work(name) for name in PARTIES})
    finally:
        everyone.close(PeerError("over"))


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


def post(network: Network, label: str, data: bytes) -> None:
    for name in PARTIES:
        if name != network.me:
            network.send(name, label, np.frombuffer(data, np.uint8))


def take(network: Network, label: str, size: int) -> dict[str, bytes]:
    others = [name for name in PARTIES if name != network.me]
    return {name: network.receive(name, label, np.uint8, (size,)).tobytes() for name in others}


def echoed(network: Network, own: bytes, received: Mapping[str, bytes]) -> None:
    post(network, ECHO, b"".join(own if name == network.me else received[name] for name in PARTIES))
    take(network, ECHO, POINT_BYTES * 3)


def another_value(network: Network, session: bytes) -> None:
    """Waits for the others' openings, then opens what would suit it."""
    own = commit(bytes(32), 9, session=session, party=network.me)
    post(network, "commitment", own)
    echoed(network, own, take(network, "commitment", POINT_BYTES))
    take(network, OPENING, 64)
    post(network, OPENING, opening_of(b"z" * 32, 9))


def copy(network: Network, session: bytes) -> None:
    received = take(network, "commitment", POINT_BYTES)
    post(network, "commitment", received["p0"])
    echoed(network, received["p0"], received)


def replay_opening(network: Network, session: bytes) -> None:
    """A copy re-blinded so that it looks new, opened with p0's own value: the name inside does not fit."""
    received = take(network, "commitment", POINT_BYTES)
    group, second = coin_tossing._generators()
    point = EcPt.from_binary(received["p0"], group) + second
    post(network, "commitment", point.export())
    echoed(network, point.export(), received)
    theirs = take(network, OPENING, 64)["p0"]
    blinding = (int.from_bytes(theirs[32:], "big") + 1) % ORDER
    post(network, OPENING, opening_of(theirs[:32], blinding))


def two_faces(network: Network, session: bytes) -> None:
    """Commits to two values: one told p0, the other p1."""
    made = {name: commit(bytes([n] * 32), 5, session=session, party=network.me) for n, name in enumerate(("p0", "p1"))}
    for name, commitment in made.items():
        network.send(name, "commitment", np.frombuffer(commitment, np.uint8))
    received = take(network, "commitment", POINT_BYTES)
    for name, commitment in made.items():
        echo = b"".join(commitment if p == network.me else received[p] for p in PARTIES)
        network.send(name, ECHO, np.frombuffer(echo, np.uint8))
    take(network, ECHO, POINT_BYTES * 3)
    take(network, OPENING, 64)


def altered_echo(network: Network, session: bytes) -> None:
    """Says that p0 had committed to something else."""
    own = commit(bytes(32), 9, session=session, party=network.me)
    post(network, "commitment", own)
    received = take(network, "commitment", POINT_BYTES)
    echoed(network, own, {**received, "p0": commit(b"x" * 32, 3, session=session, party="p0")})


def late_before_commitment(network: Network, session: bytes) -> None:
    raise PeerError("p2 stopped")


def no_point(network: Network, session: bytes) -> None:
    own = b"\xff" * POINT_BYTES
    post(network, "commitment", own)
    echoed(network, own, take(network, "commitment", POINT_BYTES))
    post(network, OPENING, bytes(64))


def leaves_before_opening(network: Network, session: bytes) -> None:
    own = commit(bytes(32), 9, session=session, party=network.me)
    post(network, "commitment", own)
    echoed(network, own, take(network, "commitment", POINT_BYTES))
    take(network, OPENING, 64)  # it has seen what the seed would be
    raise PeerError("p2 stopped")


def sleeps_before_opening(network: Network, session: bytes) -> None:
    own = commit(bytes(32), 9, session=session, party=network.me)
    post(network, "commitment", own)
    echoed(network, own, take(network, "commitment", POINT_BYTES))
    take(network, OPENING, 64)
    time.sleep(4)  # alive: heartbeats go on


@pytest.mark.parametrize(
    ("cheat", "said"),
    [
        (another_value, "p2 opened another value"),
        (replay_opening, "p2 opened another value"),
        (no_point, "p2 opened another value"),
        (leaves_before_opening, "p2 stopped"),
    ],
)
def test_who_cheats_is_named_and_nobody_has_a_seed(cheat: Play, said: str) -> None:
    results = play({"p2": cheat})
    assert all(isinstance(results[name], CoinTossError) for name in ("p0", "p1")), results
    told = {str(results[name]) for name in ("p0", "p1")}
    assert any(said in line and "leave p2 out" in line for line in told), told
    assert {results[name].party for name in ("p0", "p1")} <= {"p2", None}  # hearsay convicts nobody
    assert "p2" in {results[name].party for name in ("p0", "p1")}


def test_a_loss_before_the_openings_names_the_party_and_convicts_nobody() -> None:
    results = play({"p2": late_before_commitment})
    for name in ("p0", "p1"):
        assert isinstance(results[name], PeerError) and not isinstance(results[name], CoinTossError)
        assert "p2" in str(results[name])


def test_a_copy_is_refused_by_the_one_who_is_copied() -> None:
    results = play({"p2": copy})
    assert results["p0"].party == "p2" and "p2 repeats the commitment of p0" in str(results["p0"])
    assert isinstance(results["p1"], PeerError)


def test_two_commitments_for_two_parties_are_found_before_anything_is_opened() -> None:
    results = play({"p2": two_faces})
    for name, other in (("p0", "p1"), ("p1", "p0")):
        error = results[name]
        if isinstance(error, CoinTossError):  # whoever is first; the other one may hear of it
            assert f"p2 or {other} alters a commitment" in str(error)
            assert error.party is None  # a third cannot tell which of the two
    assert any(isinstance(results[name], CoinTossError) for name in ("p0", "p1"))
    assert isinstance(results["p2"], PeerError)  # it got no opening


def test_who_alters_another_ones_commitment_is_named_by_its_owner() -> None:
    results = play({"p2": altered_echo})
    assert results["p0"].party == "p2" and "p2 alters the commitment of p0" in str(results["p0"])
    assert isinstance(results["p1"], PeerError)


def test_who_is_late_is_named_though_its_connection_lives() -> None:
    results = play({"p2": sleeps_before_opening}, deadline=1.5)
    assert any("p2 did not send 'opening' within 1.5 s" in str(results[name]) for name in ("p0", "p1"))
    assert "p2" in {results[name].party for name in ("p0", "p1")}


def test_patience_is_as_before_afterwards() -> None:
    def patience(network: Network, session: bytes) -> float:
        before = network.patience
        honest(network, session)
        assert network.patience == before
        return before

    assert play(dict.fromkeys(PARTIES, patience))["p0"] > 100


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
