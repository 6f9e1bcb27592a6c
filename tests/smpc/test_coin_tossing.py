"""Coin tossing: who commits to what, hiding and binding, every way to cheat or to fall silent, on real connections."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from petlib.bn import Bn
from petlib.ec import EcGroup, EcPt

from mechanisms.randomness import SecureRandom
from smpc import coin_tossing
from smpc.coin_tossing import POINT_BYTES, CoinTossError, _Toss, commit, message_sizes, opens, toss
from smpc.engine.frames import Kind
from smpc.engine.handshake import Agreement
from smpc.engine.link import Link
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import COMMITMENT, ECHO, OPENING
from tests.harness import Participants, Sessions, cast_of, keys

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
FOUR = ("p0", "p1", "p2", "p3")
PARTIES = FOUR[:3]


def honest(network: Network, session: bytes, value: bytes | None = None) -> bytes:
    own = SecureRandom()
    return toss(network, PARTIES, session, value or own.words(4).tobytes(), own)


def play(plays: Mapping[str, Play], deadline: float = 5.0, silence: float = 20.0) -> dict[str, Any]:
    """What each of three parties returns or raises; those without a play of their own are honest."""

    def work(name: str) -> Any:
        def do(network: Network, agreement: Agreement) -> Any:
            network.deadline, network._service._deadline = deadline, silence
            return plays.get(name, honest)(network, agreement.nonce)

        return do

    everyone = Participants(cast_of(3, dealer=False))
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


class Cheat(_Toss):
    """A party that sends what `do(cheat, step, message)` says; it says nothing more about a toss that fails."""

    def __init__(self, network: Network, session: bytes, do: Callable[[Cheat, str, bytes], Any]) -> None:
        super().__init__(network, PARTIES, session)
        self.do = do

    def _send(self, step: str, message: bytes) -> float:
        self.do(self, step, message)
        return time.monotonic()

    def post(self, step: str, message: bytes, to: Sequence[str] | None = None) -> None:
        self._network.tell(self._others if to is None else to, step, np.frombuffer(message, np.uint8))

    def wait_for(self, step: str) -> dict[str, bytes]:
        """What the others send in a step, before this party does."""
        self._listen(step, time.monotonic(), 5)
        return self._heard[step]

    def links(self) -> list[Link]:
        return [*self._network._links.values()]


def cheating(do: Callable[[Cheat, str, bytes], Any]) -> Play:
    def do_play(network: Network, session: bytes) -> Any:
        try:
            return Cheat(network, session, do).run(SecureRandom().words(4).tobytes(), SecureRandom())
        except PeerError as error:
            return error  # its connections stay

    return do_play


# the ways to stop once the others' openings are read


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
        cheat.post(step, cheat.sent[step])  # type: ignore[attr-defined]

    return do


SIZES = message_sizes(3)
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


def together(check: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> None:
    """All at once: they wait most of the time."""
    for name in (*FOUR, "server"):
        keys(name)  # once
    with ThreadPoolExecutor(16) as threads:
        for future in [threads.submit(check, *case) for case in cases]:
            future.result()


def check_stop(way: str, stop: Callable[[Cheat], None], said: str) -> None:

    def do(cheat: Cheat, step: str, message: bytes) -> None:
        cheat.sent = {**getattr(cheat, "sent", {}), step: message}  # type: ignore[attr-defined]
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


# lies


def lie(do: Callable[[Cheat, str, bytes], bytes]) -> Play:
    return cheating(lambda cheat, step, message: cheat.post(step, do(cheat, step, message)))


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
            group, second = coin_tossing._generators()
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


# framing: what is kept from one honest party, or comes late, makes it fail; it must not look guilty to another


def check_kept(how: str, opens_to: tuple[str, ...]) -> None:
    def do(cheat: Cheat, step: str, message: bytes) -> None:
        if step == ECHO:
            cheat.post(step, message, to=["p0"])
            link = cheat._network._links["p1"]
            if how == "aborts":
                cheat._network._post(link, Kind.ABORT, "p0 is silent for 1 s", 0, None)
            if how == "wrong":
                cheat.post(step, bytes(len(message)), to=["p1"])
        elif step == OPENING:
            cheat.post(step, message, to=opens_to)
        else:
            cheat.post(step, message)

    results = play({"p2": cheating(do)}, deadline=1.0)
    assert results["p1"].at_fault == ("p2",) and "p2 kept the echo" in str(results["p1"]), (how, opens_to, results)
    assert getattr(results["p0"], "at_fault", ()) == (() if opens_to else ("p2",)), (how, opens_to, results)


def test_an_echo_kept_from_one_party_convicts_who_keeps_it() -> None:
    together(check_kept, product(("silent", "aborts", "wrong"), ((), ("p0",), ("p0", "p1"))))


def test_signatures_that_somebody_makes_up_convict_nobody() -> None:
    """p1 gets no commitment of p2 and stops; p2 tells p0 that all have signed."""

    def do(cheat: Cheat, step: str, message: bytes) -> None:
        cheat.post(step, message, to=["p0"])
        if step == COMMITMENT:
            seen = message + cheat.wait_for(COMMITMENT)["p0"]
            cheat.post(ECHO, (seen * 3)[: SIZES[ECHO]], to=["p0"])
            cheat.post(OPENING, bytes(SIZES[OPENING]), to=["p0"])

    results = play({"p2": cheating(do)}, deadline=1.0)
    for name in ("p0", "p1"):
        assert isinstance(results[name], PeerError) and getattr(results[name], "at_fault", ()) in ((), ("p2",)), results


Delays = Mapping[tuple[str, str], float | None]


def check_schedule(delays: Delays, wanted: Mapping[str, tuple[str, ...] | None]) -> None:
    """p2 sends a step's message to one party so much later, or never. wanted: whom who convicts, None: has the seed."""
    timers = []

    def do(cheat: Cheat, step: str, message: bytes) -> None:
        for name in ("p0", "p1"):
            wait = delays.get((step, name), 0.0)
            if wait is not None:
                timers.append(threading.Timer(wait, cheat.post, (step, message, [name])))
                timers[-1].start()

    results = play({"p2": cheating(do)}, deadline=1.0)
    found = {name: getattr(results[name], "at_fault", None) for name in wanted}
    assert found == wanted, (delays, results)
    for timer in timers:
        timer.cancel()


def test_who_is_held_up_to_the_end_of_its_time_is_not_at_fault_for_others() -> None:
    first, second, third = (COMMITMENT, "p1"), (ECHO, "p1"), (OPENING, "p1")
    schedules: list[tuple[Delays, dict[str, tuple[str, ...] | None]]] = [
        ({first: 0.9}, {"p0": None, "p1": None}),  # p1's echo comes late
        ({first: 0.9, second: 2.7, third: 1.9}, {"p0": None, "p1": None}),  # so does its opening
        ({first: 0.9, second: None}, {"p0": None, "p1": ("p2",)}),  # which it sends as an answer, even later
        ({first: 0.9, second: 2.7, third: 1.9, (ECHO, "p0"): None}, {"p0": ("p2",), "p1": None}),  # p0 waits for p1
    ]
    together(check_schedule, schedules)


UNIT = 1.0  # the deadline; colluders act at times near its multiples


class Colluder(_Toss):
    """Sends each message to each honest party when it likes, or never; and to its fellow at once."""

    def __init__(self, network: Network, session: bytes, luck: random.Random) -> None:
        super().__init__(network, FOUR, session)
        self.luck = luck
        self.timers: list[threading.Timer] = []

    def _send(self, step: str, message: bytes) -> float:
        for name in self._others:
            wait = 0.0 if name in ("p2", "p3") else self.luck.choice((0, 0, 0.9, 0.97, 1.0, 1.9, 1.97, 3.5, None))
            if wait is None:
                continue
            array = np.frombuffer(message, np.uint8)
            self.timers.append(threading.Timer(wait * UNIT, self._network.tell, ([name], step, array)))
            self.timers[-1].start()
        return time.monotonic()

    def quietly(self) -> None:
        with contextlib.suppress(PeerError):
            self.run(SecureRandom().words(4).tobytes(), SecureRandom())
        for timer in self.timers:
            timer.join()


def four(seed: int) -> tuple[dict[str, Any], dict[str, bool]]:
    """What p0 and p1 end with, and whether they opened, when p2 and p3 delay by the numbers of a seed."""
    everyone = Participants(cast_of(4, dealer=False), record=True)
    over = threading.Barrier(4)

    def work(name: str) -> Any:
        def do(network: Network, agreement: Agreement) -> Any:
            own = SecureRandom()
            network.deadline = UNIT
            if name in ("p0", "p1"):
                try:
                    return toss(network, FOUR, agreement.nonce, own.words(4).tobytes(), own)
                except PeerError as error:
                    network.abort(error)
                    return error
                finally:
                    over.wait(60)
            Colluder(network, agreement.nonce, random.Random(f"{seed} {name}")).quietly()
            return over.wait(60)

        return do

    try:
        results = everyone.outcomes({name: work(name) for name in FOUR})
    finally:
        everyone.close(PeerError("over"))
    opened = {
        name: any(way == "sent" and frame.label == OPENING for way, _, frame in everyone.frames[name])
        for name in ("p0", "p1")
    }
    return {name: results[name] for name in ("p0", "p1")}, opened


def check_four(seed: int) -> None:
    results, opened = four(seed)
    at_fault = [name for result in results.values() for name in getattr(result, "at_fault", ())]
    assert all(isinstance(result, bytes | PeerError) for result in results.values()), (seed, results)
    assert set(at_fault) <= {"p2", "p3"}, (seed, results)
    seeds = {result for result in results.values() if isinstance(result, bytes)}
    assert len(seeds) <= 1, seed
    failed = any(isinstance(result, PeerError) for result in results.values())
    assert not (all(opened.values()) and failed and not at_fault), (seed, results)  # the seed was known to p2 and p3


def test_two_colluders_who_delay_frame_nobody_and_do_not_escape() -> None:
    together(check_four, ((seed,) for seed in range(6)))


@pytest.mark.long
def test_nor_do_they_with_other_delays() -> None:
    start = random.SystemRandom().randrange(10**9)
    together(check_four, ((seed,) for seed in range(start, start + 200)))


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
