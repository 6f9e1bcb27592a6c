"""When a participant took which step, sent and received what size, and waited: times and names, no payload."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from smpc.cost import frame_bytes
from smpc.engine.frames import Array

MOST_MESSAGES = 100_000  # of each direction; later ones are counted, not kept
SHORTEST_WAIT = 1e-4  # seconds
_TRIES = 5


@dataclass(frozen=True)
class Passed:
    """A message at one end. `number` counts the messages of its direction and peer: the same at both ends."""

    at: int  # nanoseconds since 1970
    peer: str
    label: str
    number: int
    bytes: int  # on the wire


@dataclass
class Recorder:
    """One participant's times, for a trace. Its clock is the host's when it starts, and never jumps after that."""

    me: str
    steps: list[tuple[int, str]] = field(default_factory=list)
    sendings: list[Passed] = field(default_factory=list)
    arrivals: list[Passed] = field(default_factory=list)
    waits: list[tuple[int, int, str, str]] = field(default_factory=list)  # from, until, for whom, for what
    left_out: int = 0

    def __post_init__(self) -> None:
        self._anchor = min(map(_clocks, range(_TRIES)))[1]
        self._numbers: dict[tuple[bool, str], int] = {}
        self.step("start")

    def now(self) -> int:
        """Nanoseconds since 1970."""
        return self._anchor + time.perf_counter_ns()

    def step(self, name: str) -> None:
        self.steps.append((self.now(), name))

    def sent(self, peer: str, label: str, payload: Array) -> None:
        self._keep(self.sendings, peer, label, payload)

    def received(self, peer: str, label: str, payload: Array) -> None:
        self._keep(self.arrivals, peer, label, payload)

    def waited(self, peer: str, label: str, seconds: float) -> None:
        """`seconds` until now."""
        if seconds >= SHORTEST_WAIT and len(self.waits) < MOST_MESSAGES:
            end = self.now()
            self.waits.append((end - int(seconds * 1e9), end, peer, label))

    def _keep(self, messages: list[Passed], peer: str, label: str, payload: Array) -> None:
        key = messages is self.sendings, peer
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        if len(messages) < MOST_MESSAGES:
            size = frame_bytes(label, payload.ndim, payload.nbytes)
            messages.append(Passed(self.now(), peer, label, number, size))
        else:
            self.left_out += 1


def _clocks(_: int) -> tuple[int, int]:
    """How long it took to read both clocks, and their difference: the shortest reading is the most exact."""
    before, wall, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
    return after - before, wall - (before + after) // 2
