"""What `smpc profile` varies, as its options spell it."""

from __future__ import annotations

from collections.abc import Sequence

from launch.profile import BACKENDS
from smpc.errors import InputError

DEFAULTS = {"rows": (10_000, 100_000, 1_000_000), "parties": (2, 3)}
_LOW = {"rows": 2, "parties": 2}
_HIGH = {"rows": 10**9, "parties": 64}


def sizes(options: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """`rows=1e4,100000` and `parties=2,3`, each given once or left to its default; whole numbers."""
    found: dict[str, tuple[int, ...]] = {}
    for option in options:
        name, _, text = option.partition("=")
        if name not in DEFAULTS or name in found:
            raise InputError(f"--vary {option}: must be {' or '.join(f'{known}=N,N' for known in DEFAULTS)}, each once")
        found[name] = tuple(dict.fromkeys(_number(option, name, part) for part in text.split(",")))
    return {**DEFAULTS, **found}


def _number(option: str, name: str, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if not (value == int(value) if abs(value) < 2**53 else False) or not _LOW[name] <= value <= _HIGH[name]:
        raise InputError(f"--vary {option}: {text!r} must be a whole number from {_LOW[name]} to {_HIGH[name]}")
    return int(value)


def backends(text: str) -> tuple[str, ...]:
    """`crypten,clear`: each one of BACKENDS, once."""
    names = tuple(dict.fromkeys(text.split(",")))
    if not set(names) <= set(BACKENDS):
        raise InputError(f"--backend {text}: must be some of {','.join(BACKENDS)}")
    return names
