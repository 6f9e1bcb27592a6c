"""Ctrl-C in the middle of a send: nothing that follows on that connection may be garbage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smpc.engine.frames import FrameReader, Kind
from smpc.engine.link import Link


class Interrupted:
    """A connection whose send is struck by Ctrl-C after `count` bytes went out."""

    def __init__(self, count: int) -> None:
        self.wire = b""
        self._count = count

    def setblocking(self, _: bool) -> None: ...

    def setsockopt(self, *_: object) -> None: ...

    def send(self, view: memoryview) -> int:
        self.wire += bytes(view[: self._count])
        raise KeyboardInterrupt


@pytest.mark.parametrize("count", [0, 7, 50])
def test_what_was_being_sent_is_not_sent_again(count: int) -> None:
    connection: Any = Interrupted(count)
    link = Link("p1", connection)
    with pytest.raises(KeyboardInterrupt):
        link.post(Kind.DATA, "masked columns", 1, bytes(8), np.arange(100))
    sent = connection.wire
    link.post(Kind.ABORT, "p2 stopped", 0, bytes(8), None)
    link.write()
    assert connection.wire == sent and not link.wants_write
    reader = FrameReader("p2")
    for byte in sent:
        reader.buffer()[0] = byte
        assert reader.filled(1) is None  # the peer has no whole frame, and sees the connection end
