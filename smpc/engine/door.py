"""Accepts connections and brings many TLS handshakes on at once, in one thread: no caller holds up another."""

from __future__ import annotations

import errno
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable

MAX_PENDING = 64  # handshakes at once: beyond that the oldest gives way; an honest one needs a few round trips
HANDSHAKE_SECONDS = 10.0
_TURN_SECONDS = 0.05
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Door:
    """Listens until `close`, whatever callers do and whatever the system is short of.

    `arrived(connection)` gets every finished handshake, `refused(error)` why one failed; both in the door's thread.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        arrived: Callable[[ssl.SSLSocket], None],
        refused: Callable[[OSError], None],
    ) -> None:
        self._listener = listener
        self._context = context
        self._arrived = arrived
        self._refused = refused
        self._pending: dict[ssl.SSLSocket, float] = {}  # since when, oldest first
        self._closed = threading.Event()
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._loop, name="door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and drop unfinished handshakes."""
        self._closed.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._closed.is_set():
            self._serve()
        for connection in list(self._pending):
            self._drop(connection)
        self._selector.close()
        self._listener.close()

    def _serve(self) -> None:
        """One turn: a step of every handshake that can take one, one new caller, an end to those that take too long."""
        for key, _ in self._selector.select(_TURN_SECONDS):
            if key.data is None:
                self._accept()
            elif key.data in self._pending:  # else it gave way in this turn
                self._shake(key.data)
        late = time.monotonic() - HANDSHAKE_SECONDS
        for connection in [connection for connection, since in self._pending.items() if since < late]:
            self._drop(connection)

    def _accept(self) -> None:
        try:
            raw, _ = self._listener.accept()
        except OSError as error:
            if error.errno in _EXHAUSTED:
                self._drop_oldest()
                time.sleep(_TURN_SECONDS)
            return  # or the caller has gone already
        raw.setblocking(False)
        if len(self._pending) >= MAX_PENDING:
            self._drop_oldest()
        try:
            connection = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        except OSError:
            raw.close()
            return
        self._pending[connection] = time.monotonic()
        self._selector.register(connection, selectors.EVENT_READ, connection)

    def _shake(self, connection: ssl.SSLSocket) -> None:
        try:
            connection.do_handshake()
        except ssl.SSLWantReadError:
            self._selector.modify(connection, selectors.EVENT_READ, connection)
        except ssl.SSLWantWriteError:
            self._selector.modify(connection, selectors.EVENT_WRITE, connection)
        except OSError as error:
            self._drop(connection)
            self._refused(error)
        else:
            self._forget(connection)
            self._arrived(connection)

    def _drop_oldest(self) -> None:
        for connection in list(self._pending)[:1]:
            self._drop(connection)

    def _drop(self, connection: ssl.SSLSocket) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: ssl.SSLSocket) -> None:
        self._selector.unregister(connection)
        del self._pending[connection]
