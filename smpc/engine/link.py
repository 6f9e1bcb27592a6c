"""One authenticated connection: a queue of frames out, a queue of frames in, and counters at the socket."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections import deque

import numpy as np

from smpc.cost import SMALL_BYTES, wire_bytes
from smpc.engine.frames import Array, Frame, FrameReader, Kind, head
from smpc.errors import PeerError

BACKLOG = 1 << 26  # stop reading a peer that is this far ahead of us: TCP holds it back then
_FRAME_COST = 1024  # of keeping a frame, however small
_TURN = 64  # records handled before other links get their turn


class Link:
    """A non-blocking TLS connection to one peer. Thread-safe: each use of the TLS object holds its lock."""

    def __init__(self, peer: str, connection: ssl.SSLSocket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages must not wait for others
        self.peer = peer
        self.connection = connection
        self.heard = time.monotonic()
        self.inbox: deque[Frame] = deque()
        self.finished = False  # the peer said goodbye, or is lost
        self.loss: PeerError | None = None  # what became of this connection
        self.farewell = ""  # why, if it said
        self.waits_for = ""  # for whom the peer waits, as it says
        self.sent_bytes = 0
        self.heartbeat_bytes = 0  # of these, once all is written
        self.sent_frames = 0
        self.received_bytes = 0
        self.waiting = 0  # bytes to be written
        self.busy = 0.0  # seconds spent in TLS and the kernel
        self._backlog = 0
        self._torn = False
        self._ended = False
        self._outgoing: deque[memoryview] = deque()
        self._reader = FrameReader(peer)
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self.connection.fileno()

    def post(self, kind: Kind, label: str, round_: int, chain: bytes, payload: Array | None) -> None:
        """Queue a frame and write what the socket takes at once."""
        pieces = [memoryview(head(kind, label, round_, chain, payload))]
        if payload is not None and payload.nbytes:
            body = np.ascontiguousarray(payload).data.cast("B")
            if len(body) <= SMALL_BYTES:  # one record, one system call
                pieces = [memoryview(bytes(pieces[0]) + bytes(body))]
            else:
                pieces.append(body)
        with self._lock:
            self._outgoing.extend(pieces)
            self.waiting += sum(map(len, pieces))
            self.sent_frames += kind is Kind.DATA
            if kind is Kind.HEARTBEAT:
                self.heartbeat_bytes += wire_bytes(len(pieces[0]))
            self._write()

    def _write(self) -> None:
        if self._torn:
            self._discard()
            return
        self._torn = True  # and stays so if Ctrl-C strikes between sending and taking note: more would be garbage
        try:
            for _ in range(_TURN):
                if not self._outgoing:
                    break
                view = self._outgoing[0]
                start = time.perf_counter()
                count = self.connection.send(view)
                self.busy += time.perf_counter() - start
                self.sent_bytes += wire_bytes(count)
                self.waiting -= count
                if count == len(view):
                    self._outgoing.popleft()
                else:
                    self._outgoing[0] = view[count:]
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except (OSError, ssl.SSLError):
            self._discard()  # the reading side reports the loss, after what the peer still had to say
        self._torn = False

    def _discard(self) -> None:
        self._outgoing.clear()
        self.waiting = 0

    def write(self) -> None:
        with self._lock:
            self._write()

    @property
    def wants_write(self) -> bool:
        return self.waiting > 0

    @property
    def wants_read(self) -> bool:
        return self._backlog < BACKLOG

    def read(self) -> list[Frame]:
        """The frames completed by what has arrived. Raises PeerError when the connection is lost or malformed."""
        frames: list[Frame] = []
        for _ in range(_TURN):
            count, lost = self._receive()
            if lost is not None and not frames:
                raise lost
            if not count:  # nothing now; a loss shows again after these frames
                break
            self.received_bytes += count
            self.heard = time.monotonic()
            frame = self._reader.filled(count)
            if frame is not None:
                frames.append(frame)
                if frame.kind is Kind.DATA:
                    self._backlog += frame.payload.nbytes + _FRAME_COST
        return frames

    def _receive(self) -> tuple[int, PeerError | None]:
        with self._lock:
            start = time.perf_counter()
            try:
                count = self.connection.recv_into(self._reader.buffer())
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return 0, None
            except (OSError, ssl.SSLError) as error:
                return 0, PeerError(f"{self.peer}: connection lost ({_reason(error)})")
            self.busy += time.perf_counter() - start
        return count, None if count else PeerError(f"{self.peer}: connection closed before the end of the job")

    def take(self) -> Frame:
        frame = self.inbox.popleft()
        self.drop(frame)
        return frame

    def drop(self, frame: Frame) -> None:
        """Take note that a frame is kept no longer."""
        self._backlog -= frame.payload.nbytes + _FRAME_COST

    @property
    def pending(self) -> bool:
        """Whether decrypted bytes wait inside the TLS object, where no selector sees them."""
        with self._lock:
            try:
                return self.connection.pending() > 0
            except (OSError, ValueError):
                return False

    def end(self) -> None:
        """Tell the peer, once all is written, that nothing more will come."""
        if not self.waiting and not self._ended:
            self._ended = True
            self.shut(socket.SHUT_WR)

    def shut(self, how: int = socket.SHUT_RDWR) -> None:
        with self._lock, contextlib.suppress(OSError):
            socket.socket.shutdown(self.connection, how)  # of the socket below: the TLS object stays for what arrives

    def close(self) -> None:
        self.connection.close()


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "TLS error").lower().replace("_", " ")
    return error.strerror or type(error).__name__
