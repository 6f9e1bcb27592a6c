"""A compute party's door for ballots: anybody may knock, and strangers that hold it up are shown out.

A caller is a stranger until a registered voter's signature has come over its connection, and again after each ballot.
From one ballot that is kept to the next a caller has a total time, TLS handshake, refused and repeated ballots
included, however many bytes arrive meanwhile. When there are more callers than places, the address (the /64 network, in
version 6) with most strangers gives one up: its stranger that has been there longest, or, while that one is too new to
judge, the one that has just come. So who fills the door stands in its own way only. A voter whose connection is ended
connects again (`smpc.ballots.door`).
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import threading
import time
from collections import Counter
from types import TracebackType

from smpc.ballots.box import Box
from smpc.ballots.envelope import BallotError, Reason
from smpc.ballots.wire import (
    GREETING,
    RECEIPT,
    SLOWEST,
    TooLong,
    longest_cover,
    longest_share,
    read_piece,
    send_at_once,
    skip_piece,
)
from smpc.engine.tls import Identity

_PLACES = 64
_NEW_SECONDS = 3.0  # a stranger may need as long to show a signature
_MESSAGE_SECONDS = 30.0
_LOOK_SECONDS = 0.2


class _Caller:
    """One connection. The thread that serves it is the only one that reads and writes."""

    def __init__(self, connection: ssl.SSLSocket, address: str, seconds: float) -> None:
        self.connection = connection
        self.address = _place(address)
        self.voter: str | None = None
        self.since = time.monotonic()
        self._seconds = seconds

    @property
    def late(self) -> bool:
        return time.monotonic() > self.since + self._seconds

    @property
    def new(self) -> bool:
        return time.monotonic() < self.since + _NEW_SECONDS

    def drop(self) -> None:
        """Its thread's next read or write ends. Not SSLSocket.shutdown: that would let the thread read on in plain."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.connection, socket.SHUT_RDWR)


class Receiver:
    """Open inside a `with`."""

    def __init__(self, box: Box, identity: Identity, listener: socket.socket) -> None:
        """`listener` is taken over."""
        self._box = box
        self._listener = listener
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.num_tickets = 0
        self._context.load_cert_chain(identity.certificate, identity.key)
        self._cover, self._share = longest_cover(box.poll), longest_share(box.poll)
        self._seconds = _MESSAGE_SECONDS + self._share / SLOWEST
        self._callers: list[_Caller] = []  # by the time they came
        self._change = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._done.set()
        self._box.close()
        self._thread.join()
        self._listener.close()
        with self._change:
            for caller in self._callers:
                caller.drop()

    def _accept(self) -> None:
        self._listener.settimeout(_LOOK_SECONDS)
        while not self._done.is_set():
            with self._change:
                for caller in self._callers:
                    if caller.late:
                        caller.drop()
            try:
                raw, address = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:  # no files left, say
                self._done.wait(_LOOK_SECONDS)
                continue
            try:
                raw.settimeout(None)  # lateness is looked after here
                send_at_once(raw)
                connection = self._context.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
            except (OSError, ValueError):  # gone already
                raw.close()
                continue
            caller = _Caller(connection, address[0], self._seconds)
            if self._admit(caller):
                threading.Thread(target=self._serve, args=(caller,), daemon=True).start()
            else:
                connection.close()

    def _admit(self, newcomer: _Caller) -> bool:
        with self._change:
            if len(self._callers) >= _PLACES:
                strangers = [caller for caller in self._callers if caller.voter is None]
                crowd = Counter(caller.address for caller in [*strangers, newcomer])
                heaviest = max(crowd.values())
                oldest = next((caller for caller in strangers if crowd[caller.address] == heaviest), newcomer)
                if oldest is newcomer or (oldest.new and crowd[newcomer.address] == heaviest):
                    return False
                oldest.drop()
                self._callers.remove(oldest)
            self._callers.append(newcomer)
            return True

    def _serve(self, caller: _Caller) -> None:
        """What a stranger does to its connection ends it and nothing else."""
        connection = caller.connection
        try:
            with contextlib.suppress(OSError, EOFError, TooLong):
                connection.do_handshake()
                poll = self._box.poll
                connection.sendall(GREETING.pack(poll.job, poll.run, self._box.closed))
                while not self._done.is_set():
                    self._take(caller)
        finally:
            with self._change:
                connection.close()
                if caller in self._callers:
                    self._callers.remove(caller)

    def _take(self, caller: _Caller) -> None:
        """One ballot, and its receipt."""
        connection = caller.connection
        try:
            cover = read_piece(connection, self._cover)
            self._know(caller, cover)
            new = caller.voter is not None and not self._box.holds(caller.voter)
            # of a stranger's share nothing is kept: it is refused by its cover
            share = (read_piece if caller.voter else skip_piece)(connection, self._share)
            voter = self._box.put(cover + share)
        except TooLong:
            _reply(connection, False, f"ballot refused: {Reason.LENGTH.value}")
            raise
        except BallotError as error:
            _reply(connection, False, str(error))
        else:
            _reply(connection, True, f"the ballot of {voter} is in the box")
            if new:
                caller.since = time.monotonic()
        caller.voter = None

    def _know(self, caller: _Caller, cover: bytes) -> None:
        """A voter has one connection at a time."""
        voter = self._box.signer(cover)
        with self._change:
            for other in self._callers:
                if voter is not None and other.voter == voter:
                    other.drop()
            caller.voter = voter


def _place(address: str) -> str:
    """Whose addresses count together: one host can have 2^64 of version 6."""
    found = ipaddress.ip_address(address)
    if found.version == 4 or found.ipv4_mapped is not None:
        return address
    return f"{int(found) >> 64:x}::/64"


def _reply(connection: ssl.SSLSocket, kept: bool, text: str) -> None:
    line = text.encode()[:1000]
    connection.sendall(RECEIPT.pack(kept, len(line)) + line)
