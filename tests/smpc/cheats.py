"""Parties of a coin toss that do not follow it, on real connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from mechanisms.randomness import SecureRandom
from smpc import commitments
from smpc.coin_tossing import _Toss, message_sizes, toss
from smpc.engine.handshake import Agreement
from smpc.engine.link import Link
from smpc.engine.network import Network
from smpc.errors import PeerError
from tests.harness import Participants, cast_of, keys

SESSION = bytes(range(40))
RANDOM = SecureRandom()
ORDER = int(str(commitments._generators()[0].order()))


def opening_of(value: bytes, blinding: int) -> bytes:
    return value + blinding.to_bytes(32, "big")


Play = Callable[[Network, bytes], Any]
FOUR = ("p0", "p1", "p2", "p3")
PARTIES = FOUR[:3]
SIZES = message_sizes(3)


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


class Cheat(_Toss):
    """A party that sends what `do(cheat, step, message)` says; it says nothing more about a toss that fails."""

    def __init__(self, network: Network, session: bytes, do: Callable[[Cheat, str, bytes], Any]) -> None:
        super().__init__(network, PARTIES, session)
        self.do = do
        self.sent: dict[str, bytes] = {}  # or what it would have sent

    def _send(self, step: str, message: bytes) -> float:
        self.sent[step] = message
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


def together(check: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> None:
    """All at once: they wait most of the time."""
    for name in (*FOUR, "server"):
        keys(name)  # once
    with ThreadPoolExecutor(16) as threads:
        for future in [threads.submit(check, *case) for case in cases]:
            future.result()


def lie(do: Callable[[Cheat, str, bytes], bytes]) -> Play:
    return cheating(lambda cheat, step, message: cheat.post(step, do(cheat, step, message)))
