"""What is kept from one honest party, or comes late, makes it fail; it must not look guilty to another."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from mechanisms.randomness import SecureRandom
from smpc.coin_tossing import _Toss, toss
from smpc.engine.frames import Kind
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import COMMITMENT, ECHO, OPENING
from tests.harness import Participants, cast_of
from tests.smpc.cheats import FOUR, SIZES, Cheat, cheating, play, together


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
