"""What one process of our engine sees, and CrypTen's own encoder put back into it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from smpc.engine.frames import Array, Frame

Recorded = Sequence[tuple[str, str, Frame]]  # (direction, peer, frame), as `launch.pool` gives it to tasks


def payloads(frames: Recorded, direction: str, peer: str | None = None, label: str | None = None) -> list[Array]:
    """The arrays "sent" or "received" since this process started, in order; `peer` and `label` select.

    A peer may be ahead of this process, so what belongs to the task that runs is counted from the end.
    """
    return [
        frame.payload
        for way, who, frame in frames
        if way == direction and peer in (None, who) and label in (None, frame.label)
    ]


@contextmanager
def stock_encoder() -> Iterator[None]:
    """In a process of ours, for the time of the context: CrypTen's encode and decode as they come."""
    from crypten.encoder import FixedPointEncoder

    spec = importlib.util.find_spec("crypten.encoder")
    assert spec is not None and spec.loader is not None
    untouched: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(untouched)
    stock = untouched.FixedPointEncoder
    with patch.multiple(FixedPointEncoder, encode=stock.encode, decode=stock.decode):
        yield
