"""Typed arrays between named participants, in order, each message tied to the step of the script that sends it.

Every message carries the sender's position (a running hash over the steps taken, and the label of this one), so that
participants that are out of step fail at the first message, both steps named.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import TracebackType

import numpy as np
import numpy.typing as npt

from smpc.cost import CostReport, peak_memory
from smpc.engine.frames import MAX_LABEL, MAX_ROUND, Array, Frame, Kind
from smpc.engine.link import Link
from smpc.engine.recorder import Recorder
from smpc.engine.service import Service
from smpc.errors import PeerError

_LAST_WORDS = 2.0  # seconds to tell peers that are slow to read

Tap = Callable[[str, str, Frame], None]


class Network:
    """Sends typed arrays to named peers and receives them in order. For one thread of the process.

    Every wait fails when any peer is silent for `deadline` seconds (no heartbeat: dead or frozen), or the peer is alive
    without doing what is waited for during `patience` seconds. Any lost peer fails every pending and later operation;
    the others are told who was lost at which step. `tap(direction, peer, frame)` sees every data frame;
    `recorder` their times and sizes, the steps and the waits.
    """

    def __init__(
        self,
        me: str,
        order: Sequence[str],
        links: Mapping[str, Link],
        *,
        deadline: float,
        patience: float,
        tap: Tap | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.me = me
        self.order = tuple(order)
        self.deadline = deadline
        self.patience = patience
        self.round = 0
        self.waited = 0.0
        self.rows = (0, 0)  # done, of: for people who watch
        self.farewell = ""  # why this participant ends, for a peer that still waits for it
        self._links = dict(links)
        self._tap = tap
        self._recorder = recorder
        self._chain = bytes(8)
        self._telling_until = 0.0
        self._service = Service(me, links, deadline, self._arrived)

    def __enter__(self) -> Network:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.finish()
        else:
            self.abort(error)

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(name for name in self.order if name != self.me)

    @property
    def busy(self) -> float:
        """Seconds in TLS and the kernel so far, on all links; none of them is in `waited`."""
        return sum(link.busy for link in self._links.values())

    @property
    def step(self) -> str:
        """What this participant is doing, in errors and for people who watch."""
        return self._service.step

    @step.setter
    def step(self, step: str) -> None:
        self._service.step = step
        if self._recorder is not None:
            self._recorder.step(step)

    def enter(self, step: str, *public: object) -> None:
        """Take a step that all participants of the script take; `public` is what they must agree on."""
        self.step = step
        self._chain = hashlib.sha256(self._chain + repr((step, public)).encode()).digest()[:8]

    def send(self, peer: str, label: str, array: Array, *, round_: int | None = None) -> None:
        """Queue `array` for `peer`; never blocks. `round_` overrides the causal round (streams)."""
        self._check()
        self._post(self._links[peer], Kind.DATA, label, self.round + 1 if round_ is None else round_, array)

    def receive(
        self, peer: str, label: str, dtype: npt.DTypeLike, shape: Sequence[int] | None, *, scripted: bool = True
    ) -> Array:
        """The next array of `peer`, which must be what is expected; `shape` None accepts any.

        `scripted` False: the peer (the dealer) takes no part in the steps, only the label is compared.
        """
        return self._checked(peer, self._next(peer, label), label, dtype, shape, scripted)

    def _checked(
        self,
        peer: str,
        frame: Frame,
        label: str,
        dtype: npt.DTypeLike,
        shape: Sequence[int] | None,
        scripted: bool = True,
    ) -> Array:
        payload, expected_type = frame.payload, np.dtype(dtype)
        wrong_step = frame.label != label or (scripted and frame.chain != self._chain)
        wrong_type = payload.dtype != expected_type or (shape is not None and payload.shape != tuple(shape))
        if wrong_step or wrong_type:
            expected = f"{label} {expected_type} {'' if shape is None else tuple(shape)}"
            raise PeerError(
                f"{peer} is out of step: it sent '{frame.describe()}', {self.me} is at '{self.step}' and expects "
                f"'{expected.strip()}'{'' if wrong_type or frame.label != label else ' after other steps'}"
            )
        if payload.dtype.kind == "f" and not np.isfinite(payload).all():
            raise PeerError(f"{peer}: '{label}' holds NaN or infinite numbers at '{self.step}'")
        self.round = min(max(self.round, frame.round), MAX_ROUND - 1)  # no peer's count makes ours too large to send
        return payload

    def tell(self, peers: Iterable[str], label: str, array: Array) -> None:
        """Queue `array` for all of them, whoever is lost: for what they could hold against us if it did not come.

        An abort leaves it a deadline's time to arrive.
        """
        self._telling_until = time.monotonic() + self.deadline
        for peer in peers:
            self._post(self._links[peer], Kind.DATA, label, self.round + 1, array)

    def hear(self, due: Mapping[str, tuple[str, int]], end: float) -> tuple[str, bytes | PeerError] | None:
        """The next message of any of these peers; None if there is none at `end`, a time of `time.monotonic`.

        due[p] is the label and the number of bytes of what p owes. Instead of a message comes what p did otherwise, on
        its own connection: another message, a goodbye, an end. The loss of others does not end the wait.
        """
        links = [self._links[peer] for peer in due]
        slow = next(iter(due))

        def heard() -> bool:
            return any(link.inbox or link.finished for link in links)

        with self._waiting(slow, due[slow][0]), self._idle():
            if not heard():
                self._service.serve_until(heard, end - time.monotonic())
        for link in links:
            label, size = due[link.peer]
            finished = link.finished  # asked first: behind its last message comes nothing
            if link.inbox:
                try:
                    return link.peer, self._checked(link.peer, link.take(), label, np.uint8, (size,)).tobytes()
                except PeerError as error:
                    return link.peer, error
            if finished:
                return link.peer, link.loss or self._ended(link, label)
        return None

    def flush(self, room: int = 0) -> None:
        """Wait until everything queued is written, but for `room` bytes to each peer. Peers are told for whom."""
        links = self._links.values()
        slow = next((link.peer for link, _ in self._unread(room)), None)
        if slow is not None:
            with self._waiting(slow, "room"):
                self._until(lambda: all(link.waiting <= room for link in links), lambda: self._unread(room))
        self._check()

    def waiting_for(self, peer: str, label: str) -> bool:
        """Wait for a message of `peer`, called `label` in errors: True if there is one, False once it says goodbye."""
        self._await(peer, label)
        self._check()
        return bool(self._links[peer].inbox)

    def sent(self) -> dict[str, int]:
        """Bytes written to each peer's socket so far, TLS records included."""
        return {name: link.sent_bytes for name, link in self._links.items()}

    def sent_on_purpose(self) -> dict[str, int]:
        """The same without heartbeats, whose number depends on the time; all that was queued is written first."""
        self.flush()
        return {name: link.sent_bytes - link.heartbeat_bytes for name, link in self._links.items()}

    def account(self, cost: CostReport) -> None:
        """Enter into a report what this participant has sent and waited since the report's handshake."""
        cost.bytes_sent = {name: count - cost.handshake_bytes[name] for name, count in self.sent().items()}
        cost.messages_sent = {name: link.sent_frames for name, link in self._links.items()}
        cost.rounds = self.round
        cost.waited, cost.sockets = self.waited, self.busy
        cost.peak_memory = peak_memory()

    def finish(self) -> None:
        """Say goodbye, wait for everybody else's, close."""
        self.step = "goodbye"
        self._service.leaving = True
        links = self._links.values()
        for link in links:
            self._post(link, Kind.BYE, self.farewell, 0, None)
        try:
            self._until(
                lambda: (
                    any(link.inbox for link in links) or all(link.finished and not link.wants_write for link in links)
                ),
                lambda: chain(((link, "say goodbye") for link in links if not link.finished), self._unread()),
            )
            self._check()
            unread = next((link for link in links if link.inbox), None)
            if unread is not None:
                what = unread.inbox[0].describe()
                raise PeerError(f"{unread.peer} sent '{what}', which no step of {self.me} waits for")
        except PeerError as error:
            self.abort(error)
            raise
        self._service.close()

    def abort(self, error: BaseException) -> None:
        """Tell the others, in one line that holds no data, and close."""
        line = str(error) if isinstance(error, PeerError) else f"{self.me} stopped at '{self.step}'"
        line = line if len(line) <= MAX_LABEL else f"{line[: MAX_LABEL - 3]}..."
        for link in self._links.values():
            self._post(link, Kind.ABORT, line.encode("ascii", "replace").decode(), 0, None)
        seconds = max(min(_LAST_WORDS, self.deadline), self._telling_until - time.monotonic())
        self.step = f"leaving, within {seconds:.0f} s"
        self._service.hang_up(seconds)
        self._service.close()

    def _post(self, link: Link, kind: Kind, label: str, round_: int, payload: Array | None) -> None:
        if self._tap is not None and payload is not None:
            self._tap("sent", link.peer, Frame(kind, label, round_, self._chain, payload.copy()))
        if self._recorder is not None and payload is not None:
            self._recorder.sent(link.peer, label, payload)
        link.post(kind, label, round_, self._chain, payload)
        if link.wants_write:
            self._service.wake()

    def _arrived(self, link: Link, frame: Frame) -> None:
        link.inbox.append(frame)
        if self._tap is not None:
            self._tap("received", link.peer, frame)
        if self._recorder is not None:
            self._recorder.received(link.peer, frame.label, frame.payload)

    def _check(self) -> None:
        if self._service.failure is not None:
            raise self._service.failure

    def _until(self, done: Callable[[], bool], undone: Callable[[], Iterable[tuple[Link, str]]]) -> None:
        """Serve until `done` or a loss. PeerError after `patience`: `undone` says which links did not do what."""
        with self._idle():
            finished = self._service.until(done, self.patience)
        if finished:
            return
        self._check()
        for link, what in undone():
            others = [name for name in self.order if name not in (self.me, link.peer)]
            excuse = f"; it says that it waits for {link.waits_for}" if link.waits_for in others else ""
            raise PeerError(f"{link.peer} did not {what} within {self.patience:g} s at '{self.step}'{excuse}")

    def _unread(self, room: int = 0) -> Iterator[tuple[Link, str]]:
        """The links whose peers do not read what is sent to them."""
        return ((link, f"take what {self.me} sent it") for link in self._links.values() if link.waiting > room)

    @contextmanager
    def _idle(self) -> Iterator[None]:
        start, busy = time.monotonic(), self.busy
        try:
            yield
        finally:
            self.waited += time.monotonic() - start - (self.busy - busy)

    @contextmanager
    def _waiting(self, peer: str, what: str) -> Iterator[None]:
        """Inside, the others are told that this one waits for `peer`."""
        start = time.monotonic()
        self._service.waits_for = peer
        try:
            yield
        finally:
            self._service.waits_for = ""
            if self._recorder is not None:
                self._recorder.waited(peer, what, time.monotonic() - start)

    def _await(self, peer: str, label: str) -> None:
        """Wait until `peer` has sent something, or its goodbye."""
        link = self._links[peer]
        with self._waiting(peer, label):
            self._until(lambda: bool(link.inbox) or link.finished, lambda: [(link, f"send '{label}'")])

    def _next(self, peer: str, label: str) -> Frame:
        link = self._links[peer]
        self._await(peer, label)
        if not link.inbox:
            self._check()
            raise self._ended(link, label)
        return link.take()

    def _ended(self, link: Link, label: str) -> PeerError:
        why = f" ({link.farewell})" if link.farewell else ""
        return PeerError(f"{link.peer} ended its job{why} while {self.me} waits for '{label}': it ran another script")
