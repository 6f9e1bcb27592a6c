"""The reference session: one process, nothing hidden, the same checks and the same integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mechanisms.joint_laplace import JointLaplace
from mechanisms.randomness import RandomWords, SecureRandom
from smpc.cast import Cast
from smpc.ring import Integers, inner
from smpc.session import Session
from smpc.values import Held, Noise, Posted, Shared, exactly, unwrap, value_of

T = TypeVar("T")


class _Together:
    """The words that several sources make together: their exclusive or."""

    def __init__(self, sources: Sequence[RandomWords]) -> None:
        self._sources = sources

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        total = np.zeros(count, dtype=np.uint64)
        for source in self._sources:
            total ^= source.words(count)
        return total


class ClearSession(Session):
    """Computes in the clear what the secure sessions compute on shares: for tests and simulations, never for a job."""

    def __init__(self, cast: Cast, *, random: Mapping[str, RandomWords] | None = None) -> None:
        super().__init__(cast)
        self._words: Mapping[str, RandomWords] = random or {name: SecureRandom() for name in cast.everyone}

    def _enter(self, step: str, shape: tuple[int, ...]) -> None:
        """One process is always in step with itself."""

    def _at(self, party: str, f: Callable[..., T], args: tuple[Any, ...]) -> Held[T]:
        return Held(party, f(*(unwrap(argument) for argument in args)))

    def _random(self, party: str) -> Held[RandomWords]:
        return Held(party, self._words[party])

    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Integers:
        parts = [np.full((1, rows), one, dtype=np.int64), *(value_of(held) for held in columns.values())]
        return np.block([[inner(x, y) for y in parts] for x in parts])

    def _inner(self, x: Held[Integers], y: Held[Integers], rows: int, widths: tuple[int, int], one: int) -> Integers:
        return inner(value_of(x), value_of(y))

    def _share(self, held: Held[Integers], shape: tuple[int, ...]) -> Integers:
        return value_of(held).reshape(shape)

    def _total(self, shares: Sequence[Integers]) -> Integers:
        return np.asarray(np.add.reduce(list(shares)), dtype=np.int64)

    def _take(self, share: Integers, index: tuple[npt.NDArray[np.intp], ...], times: Integers | int) -> Integers:
        return np.asarray(share[index] * times)

    def _adopt(self, shares: Mapping[str, Held[Integers]]) -> Integers:
        return self._total([value_of(held) for held in shares.values()])

    def _linear(
        self, share: Integers, f: Callable[..., Integers], common: Sequence[Mapping[str, Held[Any]]]
    ) -> Integers:
        return f(share, *(value_of(values[self.cast.parties[0]]) for values in common))

    def _square(self, shared: Shared) -> Integers:
        return np.asarray(shared.share * shared.share)

    def _argmax(self, shared: Shared) -> Integers:
        return np.asarray(np.argmax(shared.share, axis=0), dtype=np.int64)

    def _add_noise(self, share: Integers, noise: Noise) -> Integers:
        return self._total([share, *(value_of(draw) for draw in noise.draws.values())])

    def _add_joint_noise(self, shared: Shared, mechanism: JointLaplace) -> Integers:
        coins = _Together([self._words[party] for party in self.cast.parties])
        share: Integers = shared.share
        return self._total([share, mechanism.draw(share.size, coins).reshape(share.shape)])

    def _toss(self) -> dict[str, Held[bytes]]:
        seed = _Together([self._words[party] for party in self.cast.parties]).words(4).tobytes()
        return {party: Held(party, seed) for party in self.cast.parties}

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        return Held(to, np.asarray(shared.share))

    def _check_zero(self, shared: Shared) -> bool:
        return not np.any(shared.share)

    def _send(self, held: Held[Any], to: str, shape: tuple[int, ...], message: str) -> Held[Any]:
        return Held(to, value_of(held) if held.holder == to else exactly(value_of(held), np.int64, shape, message))

    def _post(self, posted: Posted) -> None:
        """One process has it already."""

    def _collect(self, posted: Posted) -> Held[Any]:
        return Held(posted.to, exactly(value_of(posted.held), posted.dtype, posted.shape, posted.message))

    def _publish(self, held: Held[Any], shape: tuple[int, ...], message: str) -> npt.NDArray[np.float64]:
        return exactly(value_of(held), np.float64, shape, message)
