"""What every secure session does over the network: local steps, plain messages, common seeds, costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import RandomWords, SecureRandom
from smpc.cast import Cast
from smpc.cost import CostReport
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.session import Session
from smpc.values import Held, Posted, exactly, unwrap, value_of

T = TypeVar("T")


class NetworkSession(Session):
    """One participant's part of a job. How values are shared, multiplied and opened is left to the backends."""

    def __init__(
        self, cast: Cast, network: Network, agreement: Agreement, *, random: RandomWords | None = None
    ) -> None:
        super().__init__(cast)
        self.network = network
        self.me = network.me
        self.is_party = self.me in cast.parties
        self.cost = CostReport(self.me, handshake_bytes=network.sent())
        self._agreement = agreement
        self._own_random = random or SecureRandom()
        self._tosses = 0
        # Bytes, not arrays: these would lie between large freed ones, which the C heap could not use again.
        self._published: list[tuple[tuple[int, ...], bytes]] = []

    @property
    def published(self) -> list[npt.NDArray[np.float64]]:
        """All public values so far, in order; a text branches on nothing else."""
        return [np.frombuffer(data).reshape(shape) for shape, data in self._published]

    def report(self) -> CostReport:
        """The costs so far; handshake bytes are counted apart."""
        self.network.account(self.cost)
        self.cost.seconds = dict(self.seconds)
        return self.cost

    @contextmanager
    def counted(self, operation: str, predicted: int, receivers: Sequence[str]) -> Iterator[None]:
        """Set what goes to `receivers` inside the block, counted at the sockets, beside the formula's bytes."""
        before = self.network.sent_on_purpose()
        yield
        after = self.network.sent_on_purpose()
        self.cost.compare(operation, predicted, sum(after[name] - before[name] for name in receivers))

    def _enter(self, step: str, shape: tuple[int, ...]) -> None:
        self.network.enter(step, shape)

    def _at(self, party: str, f: Callable[..., T], args: tuple[Any, ...]) -> Held[T]:
        if party != self.me:
            return Held(party)
        return Held(party, f(*(unwrap(argument) for argument in args)))

    def _random(self, party: str) -> Held[RandomWords]:
        return Held(party, self._own_random if party == self.me else None)

    def _toss(self) -> dict[str, Held[bytes]]:
        from smpc.coin_tossing import toss

        self._tosses += 1
        seed = None
        if self.is_party:
            session = self._agreement.nonce + self._tosses.to_bytes(8, "big")
            value = self._own_random.words(4).tobytes()
            seed = toss(self.network, self.cast.parties, session, value, SecureRandom())
        return {party: Held(party, seed if party == self.me else None) for party in self.cast.parties}

    def _send(self, held: Held[Any], to: str, shape: tuple[int, ...], message: str) -> Held[Any]:
        if held.holder == to:
            return held
        if held.holder == self.me:
            self.network.send(to, message, exactly(value_of(held), np.int64, shape, message))
        if to != self.me:
            return Held(to)
        return Held(to, self.network.receive(held.holder, message, np.int64, shape))

    def _post(self, posted: Posted) -> None:
        if posted.held.holder == self.me:
            value = exactly(value_of(posted.held), posted.dtype, posted.shape, posted.message)
            self.network.send(posted.to, posted.message, value)

    def _collect(self, posted: Posted) -> Held[Any]:
        if posted.to != self.me:
            return Held(posted.to)
        sender, message = posted.held.holder, posted.message
        return Held(self.me, self.network.receive(sender, message, posted.dtype, posted.shape, scripted=False))

    def _publish(self, held: Held[Any], shape: tuple[int, ...], message: str) -> npt.NDArray[np.float64]:
        if held.holder == self.me:
            value = exactly(value_of(held), np.float64, shape, message)
            for name in filter(None, (*self.cast.parties, self.cast.server)):
                if name != self.me:
                    self.network.send(name, message, value)
        else:
            value = self.network.receive(held.holder, message, np.float64, shape)
        self._published.append((shape, value.tobytes()))
        return np.array(value, dtype=np.float64)
