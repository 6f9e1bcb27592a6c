"""Jobs on the bgn backend for tests of real processes, and participants of them that break one message."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smpc.bgn.curve import GT
from smpc.bgn.decrypt import Partial
from smpc.engine.network import Network
from tests.launch.processes import job_of
from tests.vectors.make_bgn import PATH

ROOT = str(Path(__file__).parent.parent.parent)
Change = Callable[[Any], Any]


def bgn_job_of(tables: Mapping[str, Path], *, epsilon: Any = 1, job: Mapping[str, Any], **network: float) -> Any:
    """The job over `write_tables`' files without a dealer; `job` are further keys of [job]."""
    result = job_of(tables, epsilon=epsilon, **network)
    del result["dealer"]
    result["job"] |= {"backend": "bgn", **job}
    return result


def faulty(fault: str) -> list[str]:
    """A program like `smpc` that breaks the first message with one label as `FAULTS` says."""
    start = f"import sys; sys.path.insert(0, {ROOT!r}); from tests.launch.bgn_jobs import install; install({fault!r}); "
    return [sys.executable, "-c", f"{start}from launch.cli import main; sys.exit(main())"]


def install(fault: str) -> None:
    """Make this process break the message."""
    label, change = FAULTS[fault]
    honest, done = Network.send, []

    def send(self: Network, peer: str, name: str, array: Any, **words: Any) -> None:
        if name == label and not done:
            done.append(True)
            array = np.ascontiguousarray(change(np.array(array)))
        honest(self, peer, name, array, **words)

    Network.send = send


def _malformed(group: str, why: str) -> Change:
    """The first element is replaced by a malformed one of the known-answer vectors."""

    def change(message: Any) -> Any:
        cases = json.loads(PATH.read_text())["malformed"]
        bad = next(case["bytes"] for case in cases if (case["group"], case["why"]) == (group, why))
        element = np.frombuffer(bytes.fromhex(bad), np.uint8)
        flat = message.reshape(-1)
        flat[: len(element)] = element
        return flat.reshape(message.shape)

    return change


def _swapped_elements(message: Any) -> Any:
    """The first two elements of GT change places."""
    first, second = message[: GT.size].copy(), message[GT.size : 2 * GT.size].copy()
    message[: GT.size], message[GT.size : 2 * GT.size] = second, first
    return message


def _swapped_partial(message: Any) -> Any:
    """Two ciphertexts change places behind their proof."""
    count = (len(message) - 64) // (6 * GT.size)
    partial = Partial.decode(message, count, what="test")
    return Partial(partial.ciphertexts[::-1], partial.u, partial.v, partial.proof).encode()


def _halves_swapped(message: Any) -> Any:
    """S and T of every uploaded ciphertext change places: well formed, under nobody's key."""
    return message[:, ::-1]


def _one_row_less(message: Any) -> Any:
    return message[:, :, :-1]


def _shorter(message: Any) -> Any:
    return message[:-1]


def _last_bit(message: Any) -> Any:
    message.reshape(-1)[-1] ^= 1
    return message


FAULTS: dict[str, tuple[str, Change]] = {
    "upload off the curve": ("encrypted columns", _malformed("G1", "off the curve")),
    "upload of wrong order": ("encrypted columns", _malformed("G1", "on the curve, wrong order")),
    "upload of wrong order in G2": ("encrypted columns", _malformed("G2", "on the curve, wrong order")),
    "upload truncated": ("encrypted columns", _one_row_less),
    "upload swapped": ("encrypted columns", _halves_swapped),
    "sums of wrong order": ("encrypted sums", _malformed("GT", "wrong order")),
    "noisy sums of wrong order": ("noisy sums", _malformed("GT", "wrong order")),
    "noisy sums off the curve": ("noisy sums", _malformed("G1", "off the curve")),
    "noisy sums truncated": ("noisy sums", _shorter),
    "final sums of wrong order": ("final sums", _malformed("GT", "wrong order")),
    "partial of wrong order": ("partial decryption", _malformed("GT", "wrong order")),
    "partial truncated": ("partial decryption", _shorter),
    "partial swapped": ("partial decryption", _swapped_partial),
    "answer swapped": ("partial decryption", _swapped_elements),
    "last answer swapped": ("last decryption", _swapped_elements),
    "combined of wrong order": ("combined decryption", _malformed("GT", "wrong order")),
    "key changed": ("keys", _last_bit),
    "key truncated": ("keys", _shorter),
    "material changed": ("key material", _last_bit),
    "share changed": ("key share", _last_bit),
    "digest changed": ("joint keys", _last_bit),
}
