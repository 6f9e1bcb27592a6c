"""Puts our communicator, provider, randomness, openings and encoding under CrypTen's own tensors.

CrypTen keeps its state in module globals, so one process serves one job.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from smpc import fixedpoint
from smpc.engine.communicator import LinkCommunicator
from smpc.engine.compat import load_crypten
from smpc.engine.provider import DealerProvider
from smpc.engine.sharing import Sharing
from smpc.errors import SmpcError

_RING_BITS = 64


def install(communicator: LinkCommunicator, provider: DealerProvider, sharing: Sharing) -> None:
    """Make this process's CrypTen run over our engine."""
    crypten: Any = load_crypten()
    if crypten.cfg.debug.validation_mode or crypten.cfg.debug.debug_mode:
        raise SmpcError("CrypTen's debug and validation modes open every intermediate value; switch them off")
    if crypten.cfg.mpc.protocol != "beaver":
        raise SmpcError(f"CrypTen's protocol {crypten.cfg.mpc.protocol!r} leaks inputs; only 'beaver' is supported")
    LinkCommunicator.instance = communicator
    crypten.communicator.DistributedCommunicator = LinkCommunicator
    # its own providers let the first party, or whoever knows 32 bits, see every input
    crypten.mpc.__dict__["__SUPPORTED_PROVIDERS"] = {DealerProvider.NAME: provider}
    crypten.cfg.mpc.provider = DealerProvider.NAME
    crypten._setup_prng = _no_generators
    _install_randomness(sharing)
    _install_openings(sharing)
    _install_encoding()


def _no_generators() -> None:
    raise SmpcError("CrypTen's own generators have 32 seed bits and are not used; start a Session instead")


def _install_randomness(sharing: Sharing) -> None:
    from crypten.mpc.primitives import ArithmeticSharedTensor, BinarySharedTensor

    def ring_element(size: Any, ring_size: int = 2**64, generator: Any = None, **_: Any) -> torch.Tensor:
        if generator is not None or ring_size != 2**64:
            raise SmpcError("only full-range ring elements of this party's own generator are drawn")
        return torch.from_numpy(sharing.uniform(_shape(size)))

    def random_bits(size: Any, bitlength: int | None = None, generator: Any = None, **_: Any) -> torch.Tensor:
        words = ring_element(size, generator=generator)
        return words if bitlength in (None, _RING_BITS) else words & ((1 << bitlength) - 1)

    for module in [module for name, module in sys.modules.items() if name.startswith("crypten")]:
        for name, function in (
            ("generate_random_ring_element", ring_element),
            ("generate_kbit_random_tensor", random_bits),
        ):
            if hasattr(module, name):
                setattr(module, name, function)

    def arithmetic_zero(*size: Any, device: Any = None) -> Any:
        return ArithmeticSharedTensor.from_shares(torch.from_numpy(sharing.zero(_shape(*size))))

    def binary_zero(*size: Any, device: Any = None) -> Any:
        return BinarySharedTensor.from_shares(torch.from_numpy(sharing.zero_xor(_shape(*size))))

    ArithmeticSharedTensor.PRZS = staticmethod(arithmetic_zero)
    BinarySharedTensor.PRZS = staticmethod(binary_zero)


def _install_openings(sharing: Sharing) -> None:
    """A fresh zero-sharing before every opening, so that no receiver sees a share that was used before."""
    from crypten.mpc.primitives import ArithmeticSharedTensor, BinarySharedTensor

    arithmetic_open, binary_open = ArithmeticSharedTensor.reveal, BinarySharedTensor.reveal

    def reveal(tensor: Any, dst: int | None = None) -> Any:
        fresh = tensor.shallow_copy()
        fresh.share = tensor.share + torch.from_numpy(sharing.zero(tuple(tensor.share.shape)))
        return arithmetic_open(fresh, dst=dst)

    def reveal_binary(tensor: Any, dst: int | None = None) -> Any:
        fresh = tensor.shallow_copy()
        fresh.share = tensor.share ^ torch.from_numpy(sharing.zero_xor(tuple(tensor.share.shape)))
        return binary_open(fresh, dst=dst)

    ArithmeticSharedTensor.reveal = reveal
    BinarySharedTensor.reveal = reveal_binary


def _install_encoding() -> None:
    from crypten.cryptensor import CrypTensor
    from crypten.encoder import FixedPointEncoder
    from crypten.mpc.primitives import ArithmeticSharedTensor, arithmetic

    def encode(encoder: Any, value: Any, device: Any = None) -> Any:
        if isinstance(value, CrypTensor):
            return value
        array = value.detach().numpy() if torch.is_tensor(value) else np.asarray(value)
        return torch.from_numpy(np.asarray(fixedpoint.encode(array, encoder._precision_bits)))

    def decode(encoder: Any, tensor: Any) -> Any:
        if tensor is None or encoder._precision_bits == 0:
            return tensor
        return torch.from_numpy(np.asarray(fixedpoint.decode(tensor.numpy(), encoder._precision_bits)))

    FixedPointEncoder.encode = encode
    FixedPointEncoder.decode = decode

    create = ArithmeticSharedTensor.__init__

    def create_exactly(self: Any, tensor: Any = None, *args: Any, precision: int | None = None, **kwargs: Any) -> None:
        if torch.is_tensor(tensor) and not tensor.is_floating_point() and precision != 0:
            tensor = tensor.double()  # its own constructor takes integers through float32
        create(self, tensor, *args, precision=precision, **kwargs)

    if create.__module__ == arithmetic.__name__:
        ArithmeticSharedTensor.__init__ = create_exactly


def _shape(*size: Any) -> tuple[int, ...]:
    """The shapes that CrypTen passes: one tuple, or the lengths."""
    lengths = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    return tuple(int(length) for length in lengths)
