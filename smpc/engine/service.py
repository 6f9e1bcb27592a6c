"""Moves bytes on all links of one process: by whoever waits for a message, else by a background thread.

A protocol that waits serves its links itself, so that a message costs no switch between threads; while it computes, the
background thread keeps heartbeats, queued sends and arrivals going.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
import time
from collections.abc import Callable, Mapping

from smpc.engine.frames import Frame, Kind
from smpc.engine.link import Link
from smpc.engine.reports import told
from smpc.errors import PeerError

_GRACE = 0.002  # the background thread stays away this long after the protocol served: it will soon again
_SELECT_SECONDS = 0.2


class Service:
    """The links' event loop. `arrived(link, frame)` is called for data frames; `failure` is the first loss."""

    def __init__(
        self, me: str, links: Mapping[str, Link], deadline: float, arrived: Callable[[Link, Frame], None]
    ) -> None:
        self.failure: PeerError | None = None
        self.step = "start"
        self.leaving = False
        self.waits_for = ""  # told in heartbeats: who waits too long for us learns who holds us up
        self._me = me
        self._links = tuple(links.values())
        self._deadline = deadline
        self._arrived = arrived
        self._closing = False
        self._deaf = False
        self._wanted = False
        self._turn = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._interests: dict[str, int] = {}
        self._held_back: set[Link] = set()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        self._beat = self._last = self._served = time.monotonic()
        self._thread = threading.Thread(target=self._background, name="network", daemon=True)
        self._thread.start()

    def until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Serve until `done` or a failure or `seconds` have passed; what `done` says then."""
        if not done():
            self.serve_until(lambda: done() or self.failure is not None, seconds)
        return done()

    def hang_up(self, seconds: float) -> None:
        """Write what is queued, and wait until all peers have closed their ends, or so many seconds.

        Meanwhile what they send is read and dropped: a connection closed on unread data is reset, and what the peer has
        not received of ours yet would be lost.
        """
        if self._closing:
            return
        self.leaving = self._deaf = True
        for link in self._links:
            while link.inbox:
                link.take()

        def gone() -> bool:
            for link in self._links:
                link.end()
            return all(link.finished and not link.wants_write for link in self._links)

        self.serve_until(gone, seconds)

    def serve_until(self, done: Callable[[], bool], seconds: float | None) -> None:
        """Serve until `done` or so many seconds have passed, whoever is lost meanwhile.

        At least one turn: what arrived while this process was stopped is not late.
        """
        end = None if seconds is None else time.monotonic() + seconds
        self._wanted = True  # from now on the background thread stays away
        if not self._turn.acquire(blocking=False):
            self.wake()
            self._turn.acquire()
        try:
            while not done():
                left = _SELECT_SECONDS if end is None else end - time.monotonic()
                self._serve(max(0.0, min(_SELECT_SECONDS, left)))
                if left <= 0:
                    break
        finally:
            self._served = time.monotonic()
            self._wanted = False
            self._turn.release()

    def wake(self) -> None:
        """Have the background thread look at the links again."""
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes it just as well
            os.write(self._wake_write, b"w")

    def fail(self, error: PeerError) -> None:
        if self.failure is None:
            self.failure = error

    def _lose(self, link: Link, error: PeerError) -> None:
        """Nobody waits for this peer any more."""
        link.loss, link.finished = error, True
        self.fail(error)

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self.wake()
        self._thread.join(timeout=5)
        for link in self._links:
            link.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _background(self) -> None:
        while not self._closing:
            rest = _GRACE - (time.monotonic() - self._served)
            if self._wanted or rest > 0:
                time.sleep(_GRACE)
                continue
            try:
                with self._turn:
                    self._serve(_SELECT_SECONDS)
            except Exception as error:  # whatever ends this thread must not leave the protocol waiting
                self.fail(PeerError(f"{self._me}: the network thread ended ({error}) at '{self.step}'"))
                return

    def _serve(self, timeout: float) -> None:
        """One turn: wait for events, write, read, look for silence. The caller holds the turn."""
        for link in [link for link in self._held_back if link.wants_read]:
            self._held_back.discard(link)
            self._read(link)
            timeout = 0.0
        for link in self._links:
            reads = link.wants_read and not link.finished  # behind a goodbye comes only the closed connection
            wanted = (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if link.wants_write else 0)
            if wanted != self._interests.get(link.peer, 0):
                self._listen(link, wanted)
        for key, mask in self._selector.select(min(timeout, self._deadline / 6)):
            if key.data is None:
                os.read(self._wake_read, 4096)
                continue
            if mask & selectors.EVENT_WRITE:
                key.data.write()
            if mask & selectors.EVENT_READ:
                self._read(key.data)
        now = time.monotonic()
        if now - self._last > self._deadline / 2:  # this process itself was frozen: blame nobody for it
            for link in self._links:
                link.heard = now
        self._last = now
        if now - self._beat > self._deadline / 6:
            self._beat = now
            self._check_silence(now)

    def _listen(self, link: Link, wanted: int) -> None:
        known = self._interests.pop(link.peer, 0)
        if known and wanted:
            self._selector.modify(link, wanted, link)
        elif wanted:
            self._selector.register(link, wanted, link)
        else:
            self._selector.unregister(link)
        if wanted:
            self._interests[link.peer] = wanted

    def _read(self, link: Link) -> None:
        if link.finished:
            return  # behind a goodbye nothing counts
        try:
            for frame in link.read():
                self._take(link, frame)
            if link.pending and not link.finished:
                self._held_back.add(link)  # decrypted already, no selector sees the rest; other links come first
        except PeerError as error:
            self._lose(link, PeerError(f"{error} at '{self.step}'"))

    def _take(self, link: Link, frame: Frame) -> None:
        if link.finished:
            return  # behind a goodbye nothing counts
        if frame.kind is Kind.DATA and self._deaf:
            link.drop(frame)
        elif frame.kind is Kind.DATA:
            self._arrived(link, frame)
        elif frame.kind is Kind.HEARTBEAT:
            link.waits_for = frame.label
        elif frame.kind is Kind.BYE:
            link.finished, link.farewell = True, frame.label
        elif frame.kind is Kind.ABORT:
            link.shut()  # it waits for that: it has nothing more to say, and nothing more is for it
            everybody = (self._me, *(link.peer for link in self._links))
            self._lose(link, PeerError(told(everybody, link.peer, frame.label)))

    def _check_silence(self, now: float) -> None:
        for link in self._links:
            if link.finished:
                continue
            if not self.leaving:  # a heartbeat behind our goodbye could meet a closed socket
                link.post(Kind.HEARTBEAT, self.waits_for, 0, bytes(8), None)
            if not link.wants_read:
                link.heard = now  # its heartbeats stand behind what we have not taken yet
            if now - link.heard > self._deadline:
                self._lose(link, PeerError(f"{link.peer} is silent for {self._deadline:g} s at '{self.step}'"))
