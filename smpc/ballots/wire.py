"""How ballots travel: TLS 1.3 from the voter to each compute party, whose certificate the job pins.

Ballots are sealed and signed already; TLS authenticates the party and hides from strangers who votes when. A voter
shows no certificate: its signature is what counts. The party greets with the job and run that it takes ballots for and
whether the vote is closed. A ballot is its cover, then its sealed share, each behind its length; a receipt is a byte, 1
if the ballot is in the box, and a line of text.
"""

from __future__ import annotations

import math
import socket
import ssl
import struct
import time

from smpc.ballots import shares
from smpc.ballots.envelope import DIGEST_BYTES, Envelope
from smpc.ballots.poll import MAX_VOTER_BYTES, Poll

GREETING = struct.Struct("<32s32s?")  # job, run, whether the vote is closed
RECEIPT = struct.Struct("<BH")
SLOWEST = 20_000  # bytes a second that both ends allow a ballot's line, on top of a fixed time
_LENGTH = struct.Struct("<I")
_SKIPPED = 1 << 14  # bytes at once
_SLACK = 512  # head and signature, or what sealing adds


class TooLong(Exception):
    """A piece of a message is longer than any of this poll."""


def longest_cover(poll: Poll) -> int:
    """In bytes; no cover of this poll is longer."""
    return MAX_VOTER_BYTES + DIGEST_BYTES * len(poll.parties) + _SLACK


def longest_share(poll: Poll) -> int:
    """In bytes; no sealed share of this poll is longer."""
    return max(shares.content_bytes(poll.entries, first=first) for first in (True, False)) + _SLACK


def ballot_bytes(envelope: Envelope) -> bytes:
    """What a voter sends."""
    return b"".join(_LENGTH.pack(len(piece)) + piece for piece in (envelope.cover(), envelope.sealed))


def read_piece(connection: ssl.SSLSocket, most: int) -> bytes:
    """A cover or a sealed share of up to `most` bytes. Raises TooLong, EOFError, OSError."""
    return exactly(connection, _length(connection, most))


def skip_piece(connection: ssl.SSLSocket, most: int) -> bytes:
    """Read as `read_piece` does and keep nothing."""
    length = _length(connection, most)
    while length:
        length -= len(exactly(connection, min(length, _SKIPPED)))
    return b""


def _length(connection: ssl.SSLSocket, most: int) -> int:
    (length,) = _LENGTH.unpack(exactly(connection, _LENGTH.size))
    if length > most:
        raise TooLong
    return int(length)


def exactly(connection: ssl.SSLSocket, count: int, end: float = math.inf) -> bytes:
    """Raises EOFError where the other end stops before, and TimeoutError at `end`, a time of `time.monotonic`."""
    buffer = bytearray(count)
    view = memoryview(buffer)
    while view:
        if time.monotonic() > end:
            raise TimeoutError("too slow")
        got = connection.recv_into(view)
        if not got:
            raise EOFError
        view = view[got:]
    return bytes(buffer)


def send_at_once(raw: socket.socket) -> None:
    """Without this the end of a message waits 40 ms for the acknowledgement of its beginning."""
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
