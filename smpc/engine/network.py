"""All links of one participant, served by one thread: heartbeats, deadlines, order of steps, counters.

Every message carries the sender's position (a running hash over the steps taken and the label of this one), so that
participants that are out of step fail at the first message, both steps named.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import numpy as np
import numpy.typing as npt

from smpc.engine.frames import Array, Frame, Kind
from smpc.engine.link import Link
from smpc.errors import PeerError

Tap = Callable[[str, str, Frame], None]


class Network:
    """Sends typed arrays to named peers and receives them in order.

    A receive fails when the peer is silent for `deadline` seconds (no heartbeat: dead or frozen) or alive without
    sending what is waited for during `patience` seconds. Any lost peer fails every pending and later operation; the
    others are told who was lost at which step.
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
    ) -> None:
        self.me = me
        self.order = tuple(order)
        self.deadline = deadline
        self.patience = patience
        self.step = "start"
        self.round = 0
        self.waited = 0.0
        self.rows = (0, 0)  # done, of: for people who watch
        self._links = dict(links)
        self._tap = tap
        self._chain = bytes(8)
        self._failure: PeerError | None = None
        self._leaving = False
        self._closing = False
        self._change = threading.Condition()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread = threading.Thread(target=self._run, name="network", daemon=True)
        self._thread.start()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            self.finish()
        else:
            self.abort(error)

    # what the protocol code calls

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(name for name in self.order if name != self.me)

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
        frame = self._next(peer, label)
        wrong_step = frame.label != label or (scripted and frame.chain != self._chain)
        wrong_type = frame.payload.dtype != np.dtype(dtype) or (
            shape is not None and frame.payload.shape != tuple(shape)
        )
        if wrong_step or wrong_type:
            expected = f"{label} {np.dtype(dtype)} {'' if shape is None else tuple(shape)}"
            raise PeerError(
                f"{peer} is out of step: it sent '{frame.describe()}', {self.me} is at '{self.step}' and expects "
                f"'{expected.strip()}'{'' if wrong_type or frame.label != label else ' after other steps'}"
            )
        self.round = max(self.round, frame.round)
        return frame.payload

    def flush(self) -> None:
        """Wait until everything queued is written."""
        with self._change:
            while any(link.wants_write for link in self._links.values()):
                self._check()
                self._change.wait(timeout=0.2)

    def waiting_for(self, peer: str) -> bool:
        """Wait, as long as it takes, for a message of `peer`: True if there is one, False once it says goodbye."""
        link = self._links[peer]
        with self._change:
            while not link.inbox and not link.finished:
                self._check()
                self._change.wait(timeout=1.0)
            self._check()
            return bool(link.inbox)

    def send_json(self, peer: str, label: str, message: Mapping[str, object]) -> None:
        self.send(peer, label, np.frombuffer(json.dumps(message, sort_keys=True).encode(), dtype=np.uint8))

    def receive_json(self, peer: str, label: str, *, scripted: bool = True) -> dict[str, object]:
        """A message of public facts; PeerError if it is no JSON object."""
        data = self.receive(peer, label, np.uint8, None, scripted=scripted)
        try:
            message = json.loads(data.tobytes())
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise PeerError(f"{peer}: '{label}' is not a JSON object")
        return message

    def sent(self) -> dict[str, int]:
        """Bytes written to each peer's socket so far, TLS records included."""
        return {name: link.sent_bytes for name, link in self._links.items()}

    def sent_frames(self) -> dict[str, int]:
        return {name: link.sent_frames for name, link in self._links.items()}

    def finish(self) -> None:
        """Say goodbye, wait for everybody else's, close."""
        self.step = "goodbye"
        self._leaving = True
        for link in self._links.values():
            self._post(link, Kind.BYE, "goodbye", 0, None)
        with self._change:
            while self._failure is None and not all(
                link.finished and not link.wants_write for link in self._links.values()
            ):
                self._change.wait(timeout=0.2)
            failure = self._failure
            unread = [link for link in self._links.values() if link.inbox]
        self._close()
        if failure is None and unread:
            failure = PeerError(f"{unread[0].peer} sent '{unread[0].inbox[0].describe()}', which no step waits for")
        if failure is not None:
            raise failure

    def abort(self, error: BaseException) -> None:
        """Tell the others, in one line that holds no data, and close."""
        culprit = str(error) if isinstance(error, PeerError) else f"{self.me} stopped at '{self.step}'"
        for link in self._links.values():
            self._post(link, Kind.ABORT, culprit[:255].encode("ascii", "replace").decode(), 0, None)
        end = time.monotonic() + min(1.0, self.deadline)
        while any(link.wants_write for link in self._links.values()) and time.monotonic() < end:
            time.sleep(0.01)
        self._close()

    # inside

    def _post(self, link: Link, kind: Kind, label: str, round_: int, payload: Array | None) -> None:
        if self._tap is not None and payload is not None:
            self._tap("sent", link.peer, Frame(kind, label, round_, self._chain, payload.copy()))
        link.post(kind, label, round_, self._chain, payload)
        if link.wants_write:
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes the thread just as well
            os.write(self._wake_write, b"w")

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _next(self, peer: str, label: str) -> Frame:
        link = self._links[peer]
        start = time.monotonic()
        with self._change:
            while not link.inbox:
                self._check()
                if link.finished:
                    raise PeerError(f"{peer} ended its job while {self.me} waits for '{label}': it ran another script")
                if time.monotonic() - start > self.patience:
                    raise PeerError(f"{peer} did not send '{label}' within {self.patience:g} s at '{self.step}'")
                self._change.wait(timeout=min(1.0, self.deadline))
            resume = not link.wants_read
            frame = link.take()
        self.waited += time.monotonic() - start
        if resume:
            self._wake()
        return frame

    def _fail(self, error: PeerError) -> None:
        with self._change:
            if self._failure is None:
                self._failure = error
            self._change.notify_all()

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:  # whatever ends this thread must not leave the main thread waiting
            self._fail(PeerError(f"{self.me}: the network thread ended ({error}) at '{self.step}'"))

    def _serve(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self._wake_read, selectors.EVENT_READ)
        interests: dict[str, int] = {}
        beat = time.monotonic()
        interval = self.deadline / 6
        while not self._closing:
            for link in self._links.values():
                reads = link.wants_read and not link.finished  # behind a goodbye comes only the closed connection
                wanted = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if link.wants_write else 0)
                if wanted != interests.get(link.peer, 0):
                    if link.peer in interests:
                        selector.unregister(link)
                        del interests[link.peer]
                    if wanted:
                        selector.register(link, wanted, link)
                        interests[link.peer] = wanted
            before = time.monotonic()
            events = selector.select(timeout=min(interval, 0.5))
            now = time.monotonic()
            if now - before > self.deadline / 2:  # this process itself was frozen: blame nobody for it
                for link in self._links.values():
                    link.heard = now
            for key, mask in events:
                if key.data is None:
                    os.read(self._wake_read, 4096)
                    continue
                if mask & selectors.EVENT_WRITE:
                    key.data.write()
                    if not key.data.wants_write:
                        self._notify()
                if mask & selectors.EVENT_READ:
                    self._read(key.data)
            if now - beat > interval:
                beat = now
                self._check_silence(now)
        selector.close()

    def _notify(self) -> None:
        with self._change:
            self._change.notify_all()

    def _read(self, link: Link) -> None:
        try:
            while not link.finished:
                frames = link.read()
                with self._change:
                    for frame in frames:
                        self._arrive(link, frame)
                    self._change.notify_all()
                if not (link.pending and link.wants_read):
                    return
        except PeerError as error:
            link.finished = True
            self._fail(PeerError(f"{error} at '{self.step}'"))

    def _arrive(self, link: Link, frame: Frame) -> None:
        if frame.kind is Kind.DATA:
            link.inbox.append(frame)
            if self._tap is not None:
                self._tap("received", link.peer, frame)
        elif frame.kind is Kind.BYE:
            link.finished = True
        elif frame.kind is Kind.ABORT:
            link.finished = True
            if self._failure is None:
                told = frame.label if frame.label.startswith(f"{link.peer} ") else f"{link.peer} reports: {frame.label}"
                self._failure = PeerError(told)

    def _check_silence(self, now: float) -> None:
        for link in self._links.values():
            if link.finished:
                continue
            if not self._leaving:  # a heartbeat behind our goodbye could meet a closed socket
                link.post(Kind.HEARTBEAT, "", 0, self._chain, None)
            if link.wants_read and now - link.heard > self.deadline:
                self._fail(PeerError(f"{link.peer} is silent for {self.deadline:g} s at '{self.step}'"))

    def _close(self) -> None:
        self._closing = True
        self._wake()
        self._thread.join(timeout=5)
        for link in self._links.values():
            link.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
