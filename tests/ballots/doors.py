"""Receivers of an election in this process, and strangers who hold them up."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smpc.ballots.box import Box
from smpc.ballots.receiver import Receiver
from smpc.engine.tls import Identity, listen
from tests.ballots.support import Election
from tests.harness import keys

VOTERS = tuple(f"v{i}" for i in range(40))
ELECTION = Election(("ann", "bob"), VOTERS, 50, 3)


@dataclass(frozen=True)
class Doors:
    boxes: Mapping[str, Box]
    receivers: Mapping[str, Receiver]
    addresses: Mapping[str, Any]
    certificates: Mapping[str, Path]


@contextmanager
def opened(boxes: Mapping[str, Box]) -> Iterator[Doors]:
    listeners = {party: listen(("127.0.0.1", 0)) for party in boxes}
    addresses = {party: listener.getsockname() for party, listener in listeners.items()}
    with ExitStack() as stack:
        receivers = {
            party: stack.enter_context(Receiver(box, Identity(party, *keys(party)), listeners[party]))
            for party, box in boxes.items()
        }
        yield Doors(boxes, receivers, addresses, {party: keys(party)[1] for party in boxes})


def tls(address: Any, source: str = "127.0.0.1") -> ssl.SSLSocket:
    """A caller who has not read the greeting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(address, timeout=5, source_address=(source, 0)))


@contextmanager
def strangers(address: Any, count: int, source: str) -> Iterator[list[int]]:
    """Half of them never finish a TLS handshake, half a ballot; all send a byte now and then and always come back.

    How often they had to come, as the only entry of a list.
    """
    done, came = threading.Event(), [0]
    hello = b"\x16\x03\x01\x02\x00\x01" + bytes(506)  # the start of a client's hello

    def call(place: int) -> socket.socket:
        came[0] += 1
        if place % 2:
            return socket.create_connection(address, timeout=5, source_address=(source, 0))
        connection = tls(address, source)
        connection.sendall(b"\x00\x01\x00\x00")  # 256 bytes will follow
        return connection

    def drip() -> None:
        held: list[socket.socket | None] = [None] * count
        sent = [0] * count
        while not done.is_set():
            for place, one in enumerate(held):
                try:
                    held[place] = one = one or call(place)
                    one.sendall(hello[sent[place] : sent[place] + 1] if place % 2 else b"x")
                    sent[place] = (sent[place] + 1) % 500
                    one.setblocking(False)
                    with suppress(BlockingIOError, ssl.SSLWantReadError):
                        if not one.recv(64) and place % 2:
                            raise OSError
                    one.setblocking(True)
                except OSError:
                    if one is not None:
                        one.close()
                    held[place], sent[place] = None, 0
            time.sleep(0.05)
        for one in held:
            if one is not None:
                one.close()

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield came
    finally:
        done.set()
        thread.join()
