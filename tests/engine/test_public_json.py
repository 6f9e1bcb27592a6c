"""Public values survive as JSON; whatever else a peer sends is a ValueError, at bounded depth and length."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smpc.engine import public_json
from smpc.engine.public_json import MAX_BYTES, decode, encode
from smpc.errors import InputError

texts = st.text(st.characters(codec="utf-8"), max_size=20)
whole = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    st.none() | st.booleans() | whole | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def sent(text: bytes) -> Any:
    return decode(np.frombuffer(text, dtype=np.uint8))


@given(values)
@example({'age "[18, 65)"': "[" * 1000})
@example(["\\", "\\[", '\\"[', "{" * 99, {"]": "}"}])
def test_what_is_encoded_is_decoded(value: Any) -> None:
    assert decode(encode(value, what="facts")) == value


def test_many_names_with_a_bracket_are_no_depth() -> None:
    facts = {f"column {number}": "age [18, 65)" for number in range(1000)}
    assert decode(encode(facts, what="facts")) == facts


@given(st.binary(max_size=200) | values.map(lambda value: json.dumps(value)[:-1].encode()))
def test_anything_else_is_a_value_error(text: bytes) -> None:
    try:
        expected = json.loads(text.decode())
    except ValueError:
        with pytest.raises(ValueError):
            sent(text)
        return
    if not set(b"NIeE") & set(text):  # NaN, Infinity, 1e999
        assert sent(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"NaN",
        b"[-Infinity]",
        b'{"rows": 1e999}',
        b'{"rows": 9223372036854775808}',
        b"[-9223372036854775809]",
        b"1" * 10_000,
        b"[" * 65 + b"]" * 65,
        b"[" * (1 << 19) + b"]" * (1 << 19),
        b'{"a":' * 100_000,
        b'"' + b'\\"' * 500_000,
        b'"' * (MAX_BYTES - 1),
        b"9" * 10_000,
        '{"rows": 1}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b" " * MAX_BYTES + b"1",
    ],
)
def test_what_is_refused_is_refused_at_once(text: bytes) -> None:
    start = time.monotonic()
    with pytest.raises(ValueError):
        sent(text)
    assert time.monotonic() - start < 5


def test_depth_is_bounded_whatever_the_interpreters_limit() -> None:
    """Else a library that raises it would let a peer overflow the stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        with pytest.raises(ValueError):
            sent(b"[" * 400_000)
    finally:
        sys.setrecursionlimit(limit)
    assert sent(b"[" * 64 + b"]" * 64)


def test_a_text_that_no_peer_would_read_is_refused_by_its_sender() -> None:
    with pytest.raises(InputError, match=r"^'hello' takes 1048577 bytes, at most 1048576; use fewer"):
        encode("x" * (MAX_BYTES - 1), what="hello")
    assert len(sent(encode("x" * (MAX_BYTES - 2), what="hello").tobytes())) == MAX_BYTES - 2


def test_length_is_checked_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_json, "MAX_BYTES", 10)
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(ValueError):
        sent(b"[1, 2, 3, 4]")
