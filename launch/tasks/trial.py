"""A job's protocol at one size, on made-up data: what `smpc profile` measures. Nothing in it is a secret."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from launch.backend import Backend
from smpc.cast import Cast
from smpc.forecast import Forecast
from smpc.session import Session

Text = Callable[[Session], object]
CRYPTEN, BGN, CLEAR = "crypten", "bgn", "clear"


@dataclass(frozen=True)
class Size:
    """What a profile can vary: the values if none are given, the least and the largest."""

    default: tuple[int, ...]
    low: int
    high: int


ROWS = Size((10_000, 100_000, 1_000_000), 2, 10**9)


class Trial(ABC):
    """Public values, which every participant's process gets."""

    @property
    def backend(self) -> Backend:
        """What runs it, if it is not run in the clear."""
        return Backend()

    @property
    @abstractmethod
    def cast(self) -> Cast:
        """Who takes part: p1, p2, .. with a server and a dealer where the job has them."""

    def material(self) -> Any:
        """What all participants are given, made once."""
        return None

    @abstractmethod
    def forecast(self) -> Forecast:
        """What will be sent."""

    @abstractmethod
    def text(self, me: str | None, material: Any) -> AbstractContextManager[Text]:
        """The protocol's text, with a fresh start of participant `me`; None: of all of them in one process."""


def party_names(count: int) -> tuple[str, ...]:
    return tuple(f"p{number}" for number in range(1, 1 + count))
