"""CrypTen's correlated tuples: the shares that seeds give, and the correction that makes them right.

Every party derives its shares from its seed with the dealer and the request's number; the product's share of the first
party is the correction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from smpc.engine.compat import load_crypten
from smpc.engine.sharing import keyed, ring_elements
from smpc.ring import Integers

Shape = tuple[int, ...]
Options = Mapping[str, int | Shape]


def product_shape(sizes: Sequence[Shape], operation: str, options: Options) -> Shape:
    """The shape of operation(a, b), found without computing it. Raises what torch raises if they do not fit."""
    if operation == "mul":  # torch imports a second's worth of modules to find it
        return np.broadcast_shapes(*sizes)
    empty = [torch.empty(size, device="meta") for size in sizes]
    return tuple(getattr(torch, operation)(*empty, **options).shape)


def shares(
    kind: str, seed: bytes, number: int, sizes: Sequence[Shape], operation: str, options: Options, result: Shape
) -> list[torch.Tensor]:
    """One party's shares: the factors, then the dependent value (the first party replaces it by the correction).

    The stream belongs to the whole request. Were it the number's alone, a first party that asks for something else
    than the others expect could have the dealer send it their words.
    """
    settings = sorted((name, value if isinstance(value, int) else tuple(value)) for name, value in options.items())
    stream = keyed(seed, "tuple", number, kind, [tuple(size) for size in sizes], operation, settings)
    drawn = [torch.from_numpy(ring_elements(stream, size)) for size in sizes]
    if kind == "B2A":
        drawn[0] &= 1
    return [*drawn, torch.from_numpy(ring_elements(stream, result))]


def correction(
    kind: str, seeds: Sequence[bytes], number: int, sizes: Sequence[Shape], operation: str, options: Options
) -> Integers:
    """What the first party's share of the dependent value must be, given everybody else's."""
    result = product_shape(sizes, operation, options) if len(sizes) == 2 else sizes[0]
    drawn = [shares(kind, seed, number, sizes, operation, options, result) for seed in seeds]
    columns = list(zip(*drawn, strict=True))
    xor = kind in ("binary", "B2A")
    factors = [_combine(column, xor) for column in columns[:-1]]
    if kind == "additive":
        value = getattr(torch, operation)(*factors, **options)
    elif kind == "binary":
        value = factors[0] & factors[1]
    elif kind == "square":
        value = factors[0] * factors[0]
    elif kind == "wraps":
        load_crypten()
        from crypten.common.util import count_wraps

        value = count_wraps(list(columns[0]))
    else:
        value = factors[0]
    others = list(columns[-1][1:])
    if others:
        rest = _combine(others, kind == "binary")
        value = value ^ rest if kind == "binary" else value - rest
    return np.asarray(value.numpy(), dtype=np.int64)


def _combine(values: Sequence[torch.Tensor], xor: bool) -> torch.Tensor:
    total = values[0].clone()
    for value in values[1:]:
        total = total ^ value if xor else total + value
    return total
