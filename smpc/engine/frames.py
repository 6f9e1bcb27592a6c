"""Typed frames: what one participant writes to another. No pickle, every size checked.

A frame is a fixed header, the dimensions, the name of the step that sent it, and the raw bytes of one array.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from smpc.errors import PeerError, printable

Array = npt.NDArray[np.generic]

# kind, dtype, dimensions, label bytes, causal round, chain, payload bytes
HEADER = struct.Struct("<BBBBI8sQ")
MAX_DIMENSIONS = 8
MAX_LABEL = 255
MAX_ROUND = 1 << 31
MAX_PAYLOAD = 1 << 28  # what a peer can make us allocate at once


class Kind(IntEnum):
    DATA = 1
    HEARTBEAT = 2
    ABORT = 3  # the label carries one line for people
    BYE = 4


DTYPES = (np.dtype(np.uint8), np.dtype("<i8"), np.dtype("<f8"), np.dtype("<f4"))


@dataclass(frozen=True)
class Frame:
    """One received message. `chain` is the sender's running hash of the steps it has taken."""

    kind: Kind
    label: str
    round: int
    chain: bytes
    payload: Array

    def describe(self) -> str:
        return f"{self.label} {self.payload.dtype} {self.payload.shape}"


def head(kind: Kind, label: str, round_: int, chain: bytes, payload: Array | None) -> bytes:
    """The bytes of a frame before its payload."""
    name = label.encode()
    if len(name) > MAX_LABEL:
        raise ValueError(f"{label[:40]}...: a step's name has {len(name)} bytes, at most {MAX_LABEL} fit into a frame")
    if payload is None:
        return HEADER.pack(kind, 0, 1, len(name), round_, chain, 0) + struct.pack("<Q", 0) + name
    dtype = DTYPES.index(payload.dtype)
    if payload.ndim > MAX_DIMENSIONS or payload.nbytes > MAX_PAYLOAD:
        raise ValueError(f"{label}: an array of shape {payload.shape} does not fit into one frame")
    dimensions = struct.pack(f"<{payload.ndim}Q", *payload.shape)
    return HEADER.pack(kind, dtype, payload.ndim, len(name), round_, chain, payload.nbytes) + dimensions + name


class FrameReader:
    """Reassembles frames from a byte stream: ask for `buffer()`, fill part of it, call `filled(count)`."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._start()

    def _start(self) -> None:
        self._fixed = bytearray(HEADER.size)
        self._rest: bytearray | None = None
        self._payload: Array | None = None
        self._expect(memoryview(self._fixed))

    def _expect(self, view: memoryview) -> None:
        self._view = view
        self._done = 0

    def buffer(self) -> memoryview:
        """The free part of the piece being read; never empty."""
        return self._view[self._done :]

    def filled(self, count: int) -> Frame | None:
        """Take note of `count` new bytes; the frame, if it is complete now."""
        self._done += count
        if self._done < len(self._view):
            return None
        if self._rest is None:
            self._rest = bytearray(self._check_header())
            if self._rest:
                self._expect(memoryview(self._rest))
                return None
        if self._payload is None:
            self._payload = self._allocate()
            if self._payload.nbytes:
                self._expect(self._payload.data.cast("B"))
                return None
        frame = self._finish(self._payload)
        self._start()
        return frame

    def _check_header(self) -> int:
        """The bytes between the header and the payload."""
        kind, dtype, dimensions, name, round_, _, size = HEADER.unpack(self._fixed)
        if kind not in tuple(Kind):
            raise PeerError(f"{self._peer} sent a frame of unknown kind {kind}")
        if dtype >= len(DTYPES):
            raise PeerError(f"{self._peer} sent a frame of unknown type {dtype}")
        if dimensions > MAX_DIMENSIONS:
            raise PeerError(f"{self._peer} sent a frame with {dimensions} dimensions, at most {MAX_DIMENSIONS}")
        if round_ > MAX_ROUND:
            raise PeerError(f"{self._peer} sent a frame of round {round_}, at most {MAX_ROUND}")
        if size and kind != Kind.DATA:
            raise PeerError(f"{self._peer} sent a frame of kind {kind} with {size} bytes, only data has any")
        return int(8 * dimensions + name)

    def _allocate(self) -> Array:
        _, dtype, dimensions, _, _, _, size = HEADER.unpack(self._fixed)
        shape = struct.unpack(f"<{dimensions}Q", bytes(self._rest or b"")[: 8 * dimensions])
        if size > MAX_PAYLOAD or math.prod(shape) * DTYPES[dtype].itemsize != size:
            raise PeerError(f"{self._peer} sent a frame of shape {shape} with {size} bytes")
        try:
            return np.empty(shape, dtype=DTYPES[dtype])
        except ValueError:  # no bytes, but dimensions that no array can have
            raise PeerError(f"{self._peer} sent a frame of shape {shape}") from None

    def _finish(self, payload: Array) -> Frame:
        kind, _, dimensions, _, round_, chain, _ = HEADER.unpack(self._fixed)
        label = printable(bytes(self._rest or b"")[8 * dimensions :].decode(errors="replace"))
        return Frame(Kind(kind), label, round_, chain, payload)
