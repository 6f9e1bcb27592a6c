"""What a protocol will send, before anything runs: its own text, run without data on sessions that only count.

The formulas of `smpc.cost` give each message its bytes at the socket; who sends what to whom, in which order, is the
protocol's text itself. After a run the sockets' counters are compared with it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mechanisms.joint_laplace import JointLaplace
from mechanisms.randomness import RandomWords
from smpc import openings
from smpc.cast import Cast
from smpc.coin_tossing import message_sizes
from smpc.cost import message_bytes, product_bytes
from smpc.engine import public_json
from smpc.engine.frames import MAX_PAYLOAD
from smpc.errors import InputError
from smpc.openings import Opening
from smpc.products import ProductPlan
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, Noise, Posted, Shared

T = TypeVar("T")
Route = tuple[str, str]  # from, to


class Forecast(Session):
    """Counts bytes of every pair of participants on the CrypTen backend, handshake and goodbyes apart.

    `published`: what is published, in order, where the text branches on that: supposed before a run, known after it.
    Zeros once these run out.
    """

    def __init__(self, cast: Cast, published: Iterable[npt.NDArray[np.float64]] = ()) -> None:
        super().__init__(cast)
        self._published = iter(published)
        self.bytes: dict[Route, int] = defaultdict(int)
        self._step = ""
        self._requests = 0

    def sent(self, participant: str) -> int:
        """All bytes that `participant` will send."""
        return sum(count for (sender, _), count in self.bytes.items() if sender == participant)

    def _count(self, sender: str, receiver: str, count: int) -> None:
        self.bytes[sender, receiver] += count

    def _message(self, sender: str, receiver: str, shape: Sequence[int], label: str | None = None) -> None:
        name, size = self._step if label is None else label, 8 * math.prod(shape)
        if size > MAX_PAYLOAD:
            raise InputError(
                f"'{name}' of shape {tuple(shape)} takes {size} bytes, at most {MAX_PAYLOAD}: use fewer columns"
            )
        self._count(sender, receiver, message_bytes(name, shape))

    def _ask(self, kind: str, **fields: object) -> None:
        request = {"kind": kind, "number": self._requests, **fields}
        self._requests += 1
        text = public_json.encode(request, what="request")
        self._count(self.cast.parties[0], str(self.cast.dealer), message_bytes("request", text.shape, 1))

    def _product(self, plan: ProductPlan) -> None:
        self._ask("product", rows=plan.rows, widths=dict(plan.widths), blocks=[list(block) for block in plan.blocks])
        for party in plan.widths:
            for partner in plan.partners(party):
                self._count(party, partner, product_bytes(plan, party) // len(plan.partners(party)))
        for k, l in plan.blocks:
            self._message(str(self.cast.dealer), l, (plan.widths[k], plan.widths[l]), "correction")

    def _enter(self, step: str, shape: tuple[int, ...]) -> None:
        self._step = step

    def _at(self, party: str, f: Callable[..., T], args: tuple[Any, ...]) -> Held[T]:
        return Held(party)

    def _random(self, party: str) -> Held[RandomWords]:
        return Held(party)

    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Any:
        self._product(ProductPlan.gram(rows, widths))

    def _inner(self, x: Held[Integers], y: Held[Integers], rows: int, widths: tuple[int, int], one: int) -> Any:
        block = (x.holder, y.holder)
        self._product(ProductPlan(rows, dict(zip(block, widths, strict=True)), (block,)))

    def _share(self, held: Held[Integers], shape: tuple[int, ...]) -> Any:
        """Masks come from the pairs' keys."""

    def _total(self, shares: Sequence[Any]) -> None:
        """Local."""

    def _take(self, share: Any, index: tuple[npt.NDArray[np.intp], ...], times: Integers | int) -> Any:
        """Local."""

    def _adopt(self, shares: Mapping[str, Held[Integers]]) -> None:
        """Outsiders sent them, in their own time."""

    def _linear(self, share: Any, f: Callable[..., Integers], common: Sequence[Mapping[str, Held[Any]]]) -> None:
        """Local."""

    def _open(self, rounds: Sequence[Opening]) -> None:
        """What the dealer is asked and answers, and what the parties tell each other."""
        first, dealer = self.cast.parties[0], str(self.cast.dealer)
        for opening in rounds:
            sizes = [list(shape) for shape in opening.factors]
            self._ask(opening.kind, sizes=sizes, operation="mul", options={})
            self._message(dealer, first, opening.correction, "correction")
            for party, other in permutations(self.cast.parties, 2):
                self._count(party, other, opening.bytes)

    def _square(self, shared: Shared) -> None:
        self._open(openings.square(shared.shape))

    def _argmax(self, shared: Shared) -> None:
        rows, *shape = shared.shape
        for _ in range(rows - 1):
            self._open(openings.comparison(tuple(shape), len(self.cast.parties)))

    def _add_noise(self, share: Any, noise: Noise) -> Any:
        """Local."""

    def _add_joint_noise(self, shared: Shared, mechanism: JointLaplace) -> None:
        for size in mechanism.pieces(math.prod(shared.shape)):
            self._open(openings.joint_noise(mechanism, size))

    def _toss(self) -> dict[str, Held[bytes]]:
        for label, size in message_sizes(len(self.cast.parties)).items():
            for party, other in permutations(self.cast.parties, 2):
                self._count(party, other, message_bytes(label, (size,), 1))
        return {party: Held(party) for party in self.cast.parties}

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        for party in self.cast.parties:
            if party != to:
                self._message(party, to, shared.shape)
        return Held(to)

    def _check_zero(self, shared: Shared) -> bool:
        parties = self.cast.parties
        self._open(openings.any_nonzero(math.prod(shared.shape), len(parties)))
        for party, other in permutations(parties, 2):
            self._message(party, other, (), "all_gather")
        self._message(parties[0], self.cast.server, (1,), "bit")
        return True

    def _send(self, held: Held[Any], to: str, shape: tuple[int, ...], message: str) -> Held[Any]:
        if held.holder != to:
            self._message(held.holder, to, shape, message)
        return Held(to)

    def _post(self, posted: Posted) -> None:
        size = np.dtype(posted.dtype).itemsize
        self._count(posted.held.holder, posted.to, message_bytes(posted.message, posted.shape, size))

    def _collect(self, posted: Posted) -> Held[Any]:
        return Held(posted.to)

    def _publish(self, held: Held[Any], shape: tuple[int, ...], message: str) -> npt.NDArray[np.float64]:
        for name in filter(None, (*self.cast.parties, self.cast.server)):
            if name != held.holder:
                self._message(held.holder, name, shape, message)
        value = np.array(next(self._published, np.zeros(shape)))
        if value.shape != shape:
            raise ValueError(f"'{message}' of shape {shape}: the course to follow has {value.shape} there")
        return value
