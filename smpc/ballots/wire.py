"""How ballots travel: TLS 1.3 from the voter to each compute party, whose certificate the job pins, and a receipt back.

Ballots are sealed and signed already; TLS authenticates the receipt and hides who votes when. A voter shows no
certificate: its signature is what counts. A message is its length in 4 bytes and an envelope; a receipt is a byte, 1 if
the ballot was kept, and a line of text.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from smpc.ballots import shares
from smpc.ballots.box import Box
from smpc.ballots.envelope import DIGEST_BYTES, BallotError, Envelope, Reason
from smpc.ballots.poll import MAX_VOTER_BYTES, Poll
from smpc.engine.tls import Address, Identity, certificate_der
from smpc.errors import InputError, PeerError

_LENGTH = struct.Struct("<I")
_RECEIPT = struct.Struct("<BH")
_SLACK = 512  # head, signature, seal
_MOST_CONNECTIONS = 64
_IDLE_SECONDS = 30.0
_RETRY_SECONDS = 0.2


def longest(poll: Poll) -> int:
    """No envelope of this poll is longer."""
    content = max(shares.content_bytes(poll.entries, first=first) for first in (True, False))
    return content + MAX_VOTER_BYTES + DIGEST_BYTES * len(poll.parties) + _SLACK


class Receiver:
    """A compute party's door for ballots, open inside a `with`."""

    def __init__(self, box: Box, identity: Identity, listener: socket.socket) -> None:
        """`listener` is taken over."""
        self._box = box
        self._listener = listener
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.num_tickets = 0
        self._context.load_cert_chain(identity.certificate, identity.key)
        self._free = threading.Semaphore(_MOST_CONNECTIONS)
        self._longest = longest(box.poll)
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

    def _accept(self) -> None:
        self._listener.settimeout(_RETRY_SECONDS)
        while not self._done.is_set():
            if not self._free.acquire(timeout=_RETRY_SECONDS):
                continue
            try:
                raw, _ = self._listener.accept()
            except OSError:
                self._free.release()
                continue
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        """One voter's connection; what a stranger does to it ends it and nothing else."""
        raw.settimeout(_IDLE_SECONDS)
        _send_at_once(raw)
        try:
            with contextlib.suppress(OSError, EOFError), self._context.wrap_socket(raw, server_side=True) as connection:
                while not self._done.is_set():
                    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
                    if length > self._longest:
                        _reply(connection, False, f"ballot refused: {Reason.LENGTH.value}")
                        return
                    try:
                        voter = self._box.put(_exactly(connection, length))
                        _reply(connection, True, f"the ballot of {voter} is in the box")
                    except BallotError as error:
                        _reply(connection, False, str(error))
        finally:
            raw.close()
            self._free.release()


class Door:
    """A voter's connection to one compute party. Raises PeerError with one line where it cannot be had."""

    def __init__(self, party: str, address: Address, certificate: Path, *, seconds: float) -> None:
        self.party = party
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate itself is pinned, not a host name
        pinned = certificate_der(certificate)
        context.load_verify_locations(cadata=pinned)
        self._connection = self._connect(context, address, time.monotonic() + seconds)
        if self._connection.getpeercert(binary_form=True) != pinned:
            self.close()
            raise PeerError(f"{party}: shows another certificate than the job lists; correct the job file")

    def _connect(self, context: ssl.SSLContext, address: Address, end: float) -> ssl.SSLSocket:
        while True:
            try:
                raw = socket.create_connection(address, timeout=_IDLE_SECONDS)
                _send_at_once(raw)
                return context.wrap_socket(raw)
            except ssl.SSLCertVerificationError:
                raise PeerError(
                    f"{self.party}: shows another certificate than the job lists; correct the job file"
                ) from None
            except OSError as error:  # it may not be listening yet, or be full
                if time.monotonic() > end:
                    raise PeerError(
                        f"{self.party} ({address[0]} port {address[1]}) takes no ballots ({error.strerror or error}); "
                        "vote while the job runs"
                    ) from None
                time.sleep(_RETRY_SECONDS)

    def put(self, envelope: Envelope) -> str:
        """Hand in a ballot; the receipt. Raises InputError with the party's reason where it is refused."""
        data = envelope.to_bytes()
        try:
            self._connection.sendall(_LENGTH.pack(len(data)) + data)
            kept, length = _RECEIPT.unpack(_exactly(self._connection, _RECEIPT.size))
            text = _exactly(self._connection, length).decode(errors="replace")
        except (OSError, EOFError):
            raise PeerError(f"{self.party}: the connection was lost before a receipt; vote again") from None
        line = "".join(c if c.isprintable() else "?" for c in text)
        if not kept:
            raise InputError(f"{self.party}: {line}")
        return f"{self.party}: {line}"

    def close(self) -> None:
        self._connection.close()


def hand_in(
    ballot: Mapping[str, Envelope],
    addresses: Mapping[str, Address],
    certificates: Mapping[str, Path],
    *,
    seconds: float,
) -> list[str]:
    """One voter's ballot to all compute parties; their receipts. All doors are opened before anything is sent."""
    doors: list[Door] = []
    try:
        doors = [Door(p, addresses[p], certificates[p], seconds=seconds) for p in ballot]
        return [door.put(ballot[door.party]) for door in doors]
    finally:
        for door in doors:
            door.close()


def _exactly(connection: ssl.SSLSocket, count: int) -> bytes:
    buffer = bytearray(count)
    view = memoryview(buffer)
    while view:
        got = connection.recv_into(view)
        if not got:
            raise EOFError
        view = view[got:]
    return bytes(buffer)


def _send_at_once(raw: socket.socket) -> None:
    """Without this the end of a message waits 40 ms for the acknowledgement of its beginning."""
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _reply(connection: ssl.SSLSocket, kept: bool, text: str) -> None:
    line = text.encode()[:1000]
    connection.sendall(_RECEIPT.pack(kept, len(line)) + line)
