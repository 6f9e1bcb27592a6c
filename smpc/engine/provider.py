"""CrypTen's tuple provider, served by the dealer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from smpc.engine.compat import load_crypten
from smpc.engine.network import Network
from smpc.engine.requests import Requests
from smpc.engine.tuples import product_shape, shares

load_crypten()
from crypten.mpc.primitives import ArithmeticSharedTensor, BinarySharedTensor  # noqa: E402  needs the alias first
from crypten.mpc.provider.provider import TupleProvider  # noqa: E402


class DealerProvider(TupleProvider):
    """Shares from this party's seed; the first party asks the dealer for the correction and takes it as its share."""

    NAME = "dealer"

    def __init__(self, network: Network, dealer: str, seed: bytes, requests: Requests) -> None:
        super().__init__()
        self._network = network
        self._dealer = dealer
        self._seed = seed
        self._requests = requests

    def _tuple(self, kind: str, *sizes: Any, op: str = "mul", **options: Any) -> list[torch.Tensor]:
        shapes = [tuple(int(length) for length in size) for size in sizes]
        result = product_shape(shapes, op, options) if len(shapes) == 2 else shapes[0]
        number = self._requests.send(kind, sizes=[list(shape) for shape in shapes], operation=op, options=options)
        values = shares(kind, self._seed, number, shapes, result)
        if self._requests.first:
            fixed = self._network.receive(self._dealer, "correction", np.int64, result, scripted=False)
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
