"""Values in a protocol: each is held by one participant, secret-shared by all parties, or on its way to a receiver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from smpc.errors import HolderError
from smpc.ring import Integers

T = TypeVar("T")


class Held(Generic[T]):
    """A value of one holder. Other participants have the handle, not the value."""

    __slots__ = ("_value", "holder")

    def __init__(self, holder: str, value: T | None = None) -> None:
        self.holder = holder
        self._value = value

    def __bool__(self) -> bool:
        raise HolderError(f"a branch on a value that {self.holder} holds: the others cannot take it; publish it first")

    def __repr__(self) -> str:
        return f"Held(by {self.holder})"


@dataclass(frozen=True)
class Shared:
    """A secret-shared array of ring integers: value * 2^fraction_bits. `noise` names who added noise, or "joint"."""

    shape: tuple[int, ...]
    fraction_bits: int
    share: Any = field(repr=False)
    noise: tuple[str, ...] = ()


@dataclass(frozen=True)
class Posted:
    """A message under way to `to`; `held` is what was posted, as this participant has it."""

    held: Held[npt.NDArray[Any]]
    to: str
    message: str
    shape: tuple[int, ...]
    dtype: type[np.generic]


@dataclass(frozen=True)
class Noise:
    """Drawn noise: for each contributor a vector with a draw at its own coordinates and zero elsewhere."""

    size: int
    draws: Mapping[str, Held[Integers]]


def value_of(held: Held[T]) -> T:
    """The value, in a backend's own process of the holder. Protocols never call this."""
    if held._value is None:
        raise HolderError(f"only {held.holder} has this value")
    return held._value


def unwrap(argument: Any) -> Any:
    """An argument of `at` with every Held in it replaced by its value."""
    if isinstance(argument, Held):
        return value_of(argument)
    if isinstance(argument, Mapping):
        return {key: unwrap(item) for key, item in argument.items()}
    if isinstance(argument, list | tuple):
        return type(argument)(unwrap(item) for item in argument)
    return argument


def check_holder(party: str, argument: Any) -> None:
    """Raise HolderError for an argument of `at` that holds what `party` may not read."""
    if isinstance(argument, Held):
        if argument.holder != party:
            raise HolderError(f"{party} cannot read a value that {argument.holder} holds; send or reveal it first")
    elif isinstance(argument, Mapping):
        for item in argument.values():
            check_holder(party, item)
    elif isinstance(argument, list | tuple):
        for item in argument:
            check_holder(party, item)
    elif isinstance(argument, Shared):
        raise HolderError(f"{party} cannot read a shared value; reveal it first")


def exactly(value: Any, dtype: Any, shape: tuple[int, ...], message: str) -> npt.NDArray[Any]:
    """A copy of a message's array: it may wait in a queue while the script changes its own.

    Raises TypeError where it is not what the script says.
    """
    array = np.array(value, order="C")
    if array.dtype != dtype or array.shape != shape:
        raise TypeError(f"'{message}' is {array.dtype} {array.shape}, the script says {np.dtype(dtype)} {shape}")
    return array
