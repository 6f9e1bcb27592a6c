"""Frames survive any chunking; whatever else arrives is a frame or a PeerError, at bounded memory."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smpc.engine.frames import (
    DTYPES,
    HEADER,
    MAX_LABEL,
    MAX_PAYLOAD,
    MAX_ROUND,
    Array,
    Frame,
    FrameReader,
    Kind,
    head,
)
from smpc.errors import PeerError

payloads = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0))
)
labels = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=40).filter(str.isprintable)
rounds = st.integers(0, MAX_ROUND)
chains = st.binary(min_size=8, max_size=8)
frames = st.builds(Frame, st.just(Kind.DATA), labels, rounds, chains, payloads) | st.builds(
    Frame, st.sampled_from(Kind), labels, rounds, chains, st.just(np.zeros(0, np.uint8))
)


def written(frame: Frame) -> bytes:
    return head(frame.kind, frame.label, frame.round, frame.chain, frame.payload) + frame.payload.tobytes()


def read(stream: bytes, chunks: list[int]) -> list[Frame]:
    """What a reader makes of a stream that arrives in chunks of these sizes, the last one over and over."""
    reader, found, start, turn = FrameReader("p1"), [], 0, 0
    while start < len(stream):
        free = reader.buffer()
        assert len(free) > 0
        count = min(len(free), len(stream) - start, chunks[min(turn, len(chunks) - 1)])
        free[:count] = stream[start : start + count]
        start, turn = start + count, turn + 1
        frame = reader.filled(count)
        if frame is not None:
            found.append(frame)
    return found


@given(st.lists(frames, max_size=4), st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_any_chunking_gives_the_same_frames(sent: list[Frame], chunks: list[int]) -> None:
    got = read(b"".join(map(written, sent)), chunks)
    assert [(f.kind, f.label, f.round, f.chain) for f in got] == [(f.kind, f.label, f.round, f.chain) for f in sent]
    for one, other in zip(got, sent, strict=True):
        assert one.payload.dtype == other.payload.dtype
        assert one.payload.shape == other.payload.shape
        assert one.payload.tobytes() == other.payload.tobytes()


@given(st.binary(max_size=400), st.integers(1, 40))
def test_garbage_is_a_frame_or_a_peer_error(stream: bytes, chunk: int) -> None:
    try:
        read(stream, [chunk])
    except PeerError as error:
        assert str(error).startswith("p1 sent a frame ")


sizes = st.sampled_from([0, 1, 2, 8, 2**20, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2**61, 2**62, 2**63, 2**64 - 1])


@given(
    kind=st.integers(0, 6),
    dtype=st.integers(0, 5),
    shape=st.lists(sizes, max_size=9),
    size=sizes,
    name=st.binary(max_size=255),
    rest=st.binary(max_size=64),
)
@example(kind=1, dtype=1, shape=[2**63, 0], size=0, name=b"", rest=b"")
@example(kind=1, dtype=1, shape=[2**31, 2**31, 2**31, 0], size=0, name=b"", rest=b"")
def test_forged_headers_are_frames_or_peer_errors(
    kind: int, dtype: int, shape: list[int], size: int, name: bytes, rest: bytes
) -> None:
    fixed = HEADER.pack(kind, dtype, len(shape), len(name), 0, bytes(8), size)
    try:
        found = read(fixed + struct.pack(f"<{len(shape)}Q", *shape) + name + rest, [1000])
    except PeerError as error:
        assert str(error).startswith("p1 sent a frame ")
        assert str(error).isprintable()
        return
    assert all(frame.payload.nbytes <= MAX_PAYLOAD and frame.label.isprintable() for frame in found)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ((7, 1, 1, 0, 0, bytes(8), 8), "unknown kind 7"),
        ((1, 4, 1, 0, 0, bytes(8), 8), "unknown type 4"),
        ((1, 1, 9, 0, 0, bytes(8), 8), "9 dimensions, at most 8"),
        ((1, 1, 1, 0, 0, bytes(8), 16), r"shape \(1,\) with 16 bytes"),
        ((1, 1, 1, 0, MAX_ROUND + 1, bytes(8), 8), f"round {MAX_ROUND + 1}, at most {MAX_ROUND}"),
        ((2, 1, 1, 0, 0, bytes(8), 8), "kind 2 with 8 bytes, only data has any"),
        ((4, 1, 1, 0, 0, bytes(8), MAX_PAYLOAD), "kind 4 with"),
    ],
)
def test_a_malformed_frame_is_named(fields: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(PeerError, match=f"p1 sent a frame.*{complaint}"):
        read(HEADER.pack(*fields) + struct.pack("<9Q", *[1] * 9) + bytes(8), [1000])


def test_an_oversize_frame_is_refused_before_its_memory_is_taken() -> None:
    header = HEADER.pack(Kind.DATA, 0, 1, 0, 0, bytes(8), MAX_PAYLOAD + 1) + struct.pack("<Q", MAX_PAYLOAD + 1)
    with pytest.raises(PeerError, match=str(MAX_PAYLOAD + 1)):
        read(header, [1000])


@pytest.mark.parametrize("payload", [np.zeros((1,) * 9), np.broadcast_to(np.zeros(1), (MAX_PAYLOAD // 8 + 1,))])
def test_an_array_that_fits_no_frame_is_refused_by_its_sender(payload: Array) -> None:
    with pytest.raises(ValueError, match="does not fit into one frame"):
        head(Kind.DATA, "x", 0, bytes(8), payload)


@pytest.mark.parametrize("label", ["x" * (MAX_LABEL + 1), "ü" * 128])
def test_a_label_that_fits_no_frame_is_refused_by_its_sender(label: str) -> None:
    with pytest.raises(ValueError, match=r"has 256 bytes, at most 255"):
        head(Kind.DATA, label, 0, bytes(8), np.zeros(1))
    (frame,) = read(head(Kind.BYE, label[:-1], 0, bytes(8), None), [1000])
    assert frame.label == label[:-1]


def test_a_label_cannot_steer_a_terminal() -> None:
    (frame,) = read(written(Frame(Kind.ABORT, "\x1b[2Jp0 \r\nall is well", 0, bytes(8), np.zeros(0))), [1000])
    assert frame.label == "?[2Jp0 ??all is well"
