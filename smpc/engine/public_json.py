"""Public values as JSON text between participants: bounded in length and depth, every number finite, none huge."""

from __future__ import annotations

import json
import math
import re

import numpy as np

from smpc.engine.frames import Array
from smpc.engine.network import Network
from smpc.errors import InputError, PeerError

MAX_BYTES = 1 << 20
_DEEPEST = 64  # brackets inside brackets
_PIECE = re.compile(r'\\.|["\[\]{}]', re.DOTALL)  # an escaped character, a quote, a bracket


def encode(value: object, *, what: str) -> Array:
    """The bytes of a value's text, its whole numbers within 64 bits. Raises InputError if a peer would not read it all.

    `what` names it in the error.
    """
    text = json.dumps(value, sort_keys=True).encode()
    if len(text) > MAX_BYTES:
        raise InputError(f"'{what}' takes {len(text)} bytes, at most {MAX_BYTES}; use fewer or shorter column names")
    return np.frombuffer(text, dtype=np.uint8)


def decode(data: Array) -> object:
    """The value that a peer sent. Raises ValueError for anything else than what `encode` makes of finite numbers."""
    if data.nbytes > MAX_BYTES:
        raise ValueError
    return read(data.tobytes())


def read(data: bytes) -> object:
    """The value of a text, a file's say, of any length. Raises ValueError like `decode`."""
    text = data.decode()
    # the parser recurses; a library that raises the interpreter's limit would let it overflow the stack
    if _depth(text) > _DEEPEST:
        raise ValueError
    try:
        value: object = json.loads(text, parse_float=_finite, parse_constant=_finite, parse_int=_whole)
    except RecursionError:
        raise ValueError from None
    return value


def send(network: Network, peer: str, label: str, value: object) -> None:
    """Queue a public value. Raises InputError if its text is longer than a peer would read."""
    network.send(peer, label, encode(value, what=label))


def receive(network: Network, peer: str, label: str, *, scripted: bool = True) -> object:
    """A public value sent as JSON; PeerError if it is none."""
    data = network.receive(peer, label, np.uint8, None, scripted=scripted)
    try:
        return decode(data)
    except ValueError:
        raise PeerError(
            f"{peer}: '{label}' ({data.nbytes} bytes) is no JSON text of at most {MAX_BYTES} bytes"
        ) from None


def receive_facts(network: Network, peer: str, label: str, *, scripted: bool = True) -> dict[str, object]:
    """A JSON object of public facts; PeerError if it is none."""
    message = receive(network, peer, label, scripted=scripted)
    if not isinstance(message, dict):
        raise PeerError(f"{peer}: '{label}' is not a JSON object")
    return message


def _depth(text: str) -> int:
    """How many brackets stand inside each other, those in strings not counted."""
    depth = deepest = 0
    quoted = False
    for piece in _PIECE.findall(text):
        if piece == '"':
            quoted = not quoted
        elif not quoted and piece in "[]{}":
            depth += 1 if piece in "[{" else -1
            deepest = max(deepest, depth)
    return deepest


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _whole(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return value
