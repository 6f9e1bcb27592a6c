"""What `smpc profile` varies, as its options spell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launch.tasks.trial import Size
from smpc.errors import InputError


def sizes(options: Sequence[str], known: Mapping[str, Size]) -> dict[str, tuple[int, ...]]:
    """`rows=1e4,100000` and `parties=2,3`, each given once or left to its default; whole numbers."""
    found: dict[str, tuple[int, ...]] = {}
    for option in options:
        name, _, text = option.partition("=")
        if name not in known or name in found:
            choices = " or ".join(f"{name}=N,N" for name in known)
            raise InputError(f"--vary {option}: must be {choices} for this protocol, each once")
        found[name] = tuple(sorted({_number(option, known[name], part) for part in text.split(",")}))
    return {name: found.get(name, size.default) for name, size in known.items()}


def _number(option: str, size: Size, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = 0.5
    if not (value == int(value) if abs(value) < 2**53 else False) or not size.low <= value <= size.high:
        raise InputError(f"--vary {option}: {text!r} must be a whole number from {size.low} to {size.high}")
    return int(value)


def backends(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """`crypten,clear`: each a known one, once."""
    names = tuple(dict.fromkeys(text.split(",")))
    if not set(names) <= set(known):
        raise InputError(f"--backend {text}: must be some of {','.join(known)} for this protocol")
    return names
