"""What one process of stock CrypTen sees: the random words it draws and the buffers that gloo leaves behind.

This is the view of a party that follows the protocol and looks into its own memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass
class Recording:
    """`drawn`: random ring elements by generator ("local", or "prev" / "next", shared with a neighbour), in order.

    `buffers`: the array of every all_reduce and reduce as gloo left it, in order, whoever was to have the result.
    """

    drawn: dict[str, list[Integers]] = field(default_factory=lambda: {"local": [], "prev": [], "next": []})
    buffers: list[Integers] = field(default_factory=list)


@contextmanager
def recording() -> Iterator[Recording]:
    """Records this process; arrays are complete when the context ends."""
    import crypten
    import torch
    from crypten.common import rng

    seen = Recording()
    kept: list[torch.Tensor] = []
    names = {id(devices[torch.device("cpu")]): name for name, devices in crypten.generators.items()}
    draw = rng.generate_random_ring_element

    def drawing(size: Any, ring_size: int = 2**64, generator: Any = None, **options: Any) -> Any:
        words = draw(size, ring_size=ring_size, generator=generator, **options)
        if words.numel():  # CrypTen also makes empty tensors on the way
            seen.drawn["local" if generator is None else names[id(generator)]].append(words.numpy().copy())
        return words

    def keeping(collective: Any) -> Any:
        def call(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
            kept.append(tensor)
            return collective(tensor, *args, **options)

        return call

    modules = [
        m for name, m in sys.modules.items() if name.startswith("crypten.") and getattr(m, draw.__name__, None) is draw
    ]
    patches = [patch.object(module, draw.__name__, drawing) for module in modules]
    patches += [
        patch.object(torch.distributed, name, keeping(getattr(torch.distributed, name)))
        for name in ("all_reduce", "reduce")
    ]
    for one in patches:
        one.start()
    try:
        yield seen
    finally:
        for one in patches:
            one.stop()
        seen.buffers.extend(tensor.numpy().copy() for tensor in kept)
