"""An authenticated participant that plays its part up to some message, and then does what its seed says."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from smpc.engine.frames import DTYPES, HEADER, MAX_PAYLOAD, MAX_ROUND, Kind, head
from smpc.engine.link import Link
from smpc.engine.network import Network

SECONDS = 20.0  # that a rogue process lives


class Rogue(Exception):
    """What ends its part of the job; also the plan: `posted` is told of each frame that it sends.

    It turns within its first `messages` frames; if that is more than it sends, some never do.
    """

    def __init__(self, seed: int, messages: int) -> None:
        self._random = random.Random(seed)
        self._left = self._random.randint(1, messages)
        self._do = self._random.choice(
            (self._frame, self._frame, self._header, self._noise, self._again, self._flood, self._goodbye, self._report)
        )
        self.then = self._random.choice(("goes on", "goes on", "goes on", "stops", "vanishes", "keeps still"))
        self._everybody = self._random.random() < 0.5
        self._last: tuple[Any, ...] = (Kind.DATA, "hello", 0, np.zeros(0, np.uint8))

    def __str__(self) -> str:
        return f"{self._do.__name__} to {'everybody' if self._everybody else 'one'}, then {self.then}"

    def posted(self, network: Network, link: Link, kind: Kind, label: str, round_: int, payload: Any) -> None:
        self._left -= 1
        if kind is Kind.DATA:
            self._last = (kind, label, round_, payload)
        if self._left or kind is Kind.ABORT:
            return
        links = list(network._links.values()) if self._everybody else [self._random.choice([*network._links.values()])]
        for target in links:
            self._do(network, target)
        if self.then == "vanishes":
            vanish(network)
        if self.then != "goes on":
            raise self

    # what it may do to a link

    def _frame(self, network: Network, link: Link) -> None:
        """A well-formed frame that nobody expects, or nearly what is expected."""
        kind, label, round_, payload = self._last
        if self._random.random() < 0.3:
            kind = self._random.choice(list(Kind))
        if self._random.random() < 0.5:
            label = self._label()
        if self._random.random() < 0.5:
            round_ = self._random.choice((0, 1, MAX_ROUND - 1, MAX_ROUND, 2**32 - 1))
        if self._random.random() < 0.7:
            payload = self._payload()
        chain = network._chain if self._random.random() < 0.5 else self._random.randbytes(8)
        link.post(
            kind, label, round_, chain, None if kind is not Kind.DATA and self._random.random() < 0.9 else payload
        )

    def _header(self, network: Network, link: Link) -> None:
        """Any values in the fields of a frame, and bytes behind it."""
        sizes = (0, 1, 8, 16, 1 << 20, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2**63, 2**64 - 1)
        shape = [self._random.choice(sizes) for _ in range(self._random.randrange(10))]
        name = self._random.randbytes(self._random.randrange(256))
        fields = [self._random.randrange(6), self._random.randrange(6), len(shape), len(name)]
        fixed = HEADER.pack(
            *fields, self._random.getrandbits(32), self._random.randbytes(8), self._random.choice(sizes)
        )
        self._raw(link, fixed + struct.pack(f"<{len(shape)}Q", *shape) + name + self._random.randbytes(40))

    def _noise(self, network: Network, link: Link) -> None:
        self._raw(link, self._random.randbytes(self._random.choice((1, 30, 1000, 100_000))))

    def _again(self, network: Network, link: Link) -> None:
        kind, label, round_, payload = self._last
        link.post(kind, label, round_, network._chain, payload)

    def _flood(self, network: Network, link: Link) -> None:
        name = self._label()
        self._raw(link, head(Kind.HEARTBEAT, name, 0, bytes(8), None) * self._random.choice((1, 100, 10_000)))

    def _goodbye(self, network: Network, link: Link) -> None:
        link.post(Kind.BYE, self._label(), 0, bytes(8), None)

    def _report(self, network: Network, link: Link) -> None:
        link.post(Kind.ABORT, self._label(), 0, bytes(8), None)

    def _label(self) -> str:
        names = (
            "",
            "p0",
            "server reports: ",
            "p0 reports by way of dealer: ",
            "\x1b[2J\n",
            "masked columns",
            "ü" * 100,
        )
        return self._random.choice(names) + self._random.choice(("", " is silent", "x" * 50))

    def _payload(self) -> Any:
        shape = tuple(self._random.randrange(4) for _ in range(self._random.randrange(4)))
        dtype = self._random.choice(DTYPES)
        size = int(np.prod(shape)) * dtype.itemsize
        text = b'{"kind": "square", "number": 0, "sizes": [[1]]}'
        choices = [np.frombuffer(self._random.randbytes(size), dtype=dtype).reshape(shape)]
        return self._random.choice([*choices, np.full(3, np.nan), np.frombuffer(text, np.uint8)])

    def _raw(self, link: Link, data: bytes) -> None:
        with link._lock:
            link._outgoing.append(memoryview(data))
            link.waiting += len(data)
            link._write()


def vanish(network: Network) -> None:
    """As if the process were killed."""
    for link in network._links.values():
        with contextlib.suppress(OSError):
            socket.socket.shutdown(link.connection, socket.SHUT_RDWR)


def take_over(name: str, rogue: Rogue, replace: Callable[[Any, str, Any], None]) -> None:
    """Make the participant `name` of this process one; `replace` is `setattr`, or a test's."""
    post = Network._post

    def _post(self: Network, link: Link, kind: Kind, label: str, round_: int, payload: Any) -> None:
        post(self, link, kind, label, round_, payload)
        if self.me == name:
            rogue.posted(self, link, kind, label, round_, payload)

    replace(Network, "_post", _post)


def main(name: str, seed: int, messages: int) -> None:
    """`smpc` whose participant is a rogue. As a process it has an end: it vanishes."""
    from launch import cli

    rogue = Rogue(seed, messages)
    take_over(name, rogue, setattr)
    end = threading.Timer(SECONDS, os._exit, (3,))
    end.daemon = True
    end.start()
    try:
        cli.main()
    except Rogue:
        if rogue.then == "keeps still":
            end.join()
    os._exit(3)
