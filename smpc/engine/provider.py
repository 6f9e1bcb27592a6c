"""CrypTen's tuple provider, served by the dealer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from smpc.engine.compat import load_crypten
from smpc.engine.network import Network
from smpc.engine.requests import Requests
from smpc.engine.tuples import product_shape, shares
from smpc.errors import SmpcError
from smpc.openings import Opening

load_crypten()
from crypten.mpc.primitives import ArithmeticSharedTensor, BinarySharedTensor  # noqa: E402  needs the alias first
from crypten.mpc.provider.provider import TupleProvider  # noqa: E402


class _Request(NamedTuple):
    """One tuple asked of the dealer: its number, what it is, the shape of its dependent value."""

    number: int
    kind: str
    sizes: list[tuple[int, ...]]
    operation: str
    options: dict[str, Any]
    result: tuple[int, ...]


class DealerProvider(TupleProvider):
    """Shares from this party's seed; the first party asks the dealer for the correction and takes it as its share."""

    NAME = "dealer"

    def __init__(self, network: Network, dealer: str, seed: bytes, requests: Requests) -> None:
        super().__init__()
        self._network = network
        self._dealer = dealer
        self._seed = seed
        self._requests = requests
        self._ahead: deque[_Request] = deque()

    def ask_ahead(self, openings: Sequence[Opening]) -> None:
        """Have the dealer make tuples that are used later: no data is needed, so nobody waits for them then.

        All that is asked ahead must be used first, in this order.
        """
        self._ahead += [self._ask(opening.kind, [*opening.factors], "mul", {}) for opening in openings]

    def _ask(self, kind: str, sizes: list[tuple[int, ...]], op: str, options: dict[str, Any]) -> _Request:
        result = product_shape(sizes, op, options) if len(sizes) == 2 else sizes[0]
        number = self._requests.send(kind, sizes=[list(size) for size in sizes], operation=op, options=options)
        return _Request(number, kind, sizes, op, options, result)

    def _tuple(self, kind: str, *sizes: Any, op: str = "mul", **options: Any) -> list[torch.Tensor]:
        shapes = [tuple(int(length) for length in size) for size in sizes]
        if self._ahead:
            request = self._ahead.popleft()
            if (request.kind, request.sizes) != (kind, shapes):
                raise SmpcError(
                    f"a {kind} tuple {shapes} is wanted, but {request.kind} {request.sizes} was asked ahead"
                )
        else:
            request = self._ask(kind, shapes, op, options)
        values = shares(kind, self._seed, request.number, shapes, request.operation, request.options, request.result)
        if self._requests.first:
            fixed = self._network.receive(self._dealer, "correction", np.int64, request.result, scripted=False)
            values[-1] = torch.from_numpy(fixed)
        return values

    def generate_additive_triple(self, size0: Any, size1: Any, op: str, device: Any = None, **options: Any) -> Any:
        return tuple(_arithmetic(value) for value in self._tuple("additive", size0, size1, op=op, **options))

    def square(self, size: Any, device: Any = None) -> Any:
        return tuple(_arithmetic(value) for value in self._tuple("square", size))

    def generate_binary_triple(self, size0: Any, size1: Any, device: Any = None) -> Any:
        return tuple(BinarySharedTensor.from_shares(value) for value in self._tuple("binary", size0, size1))

    def wrap_rng(self, size: Any, device: Any = None) -> Any:
        return tuple(_arithmetic(value) for value in self._tuple("wraps", size))

    def B2A_rng(self, size: Any, device: Any = None) -> Any:
        bit, ring = self._tuple("B2A", size)
        return _arithmetic(ring), BinarySharedTensor.from_shares(bit)


def _arithmetic(share: torch.Tensor) -> Any:
    return ArithmeticSharedTensor.from_shares(share, precision=0)
