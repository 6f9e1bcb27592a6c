"""CrypTen's `Communicator` over our links: what CrypTen's own primitives send goes through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.distributed import ReduceOp

from smpc.engine import public_json
from smpc.engine.compat import load_crypten
from smpc.engine.network import Network

load_crypten()
from crypten.communicator.communicator import Communicator  # noqa: E402  the import needs the alias first

_COMBINE: dict[Any, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.BXOR: torch.bitwise_xor,
}


class _Done:
    """What CrypTen waits on; our sends are queued and our receives happen at `wait`."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def wait(self) -> None:
        self._action()


class LinkCommunicator(Communicator):
    """The parties as CrypTen's ranks, in the job's order. Shapes are checked at every receive."""

    BYTES_PER_ELEMENT = 8
    instance: LinkCommunicator | None = None

    def __init__(self, network: Network, parties: Sequence[str]) -> None:
        self._network = network
        self._parties = tuple(parties)
        self._rank = self._parties.index(network.me)
        self._name = network.me
        self.reset_communication_stats()

    # the class methods through which CrypTen finds its communicator

    @classmethod
    def is_initialized(cls) -> bool:
        return cls.instance is not None

    @classmethod
    def get(cls) -> LinkCommunicator | None:
        return cls.instance

    @classmethod
    def initialize(cls, *_: object, **__: object) -> None:
        raise RuntimeError("CrypTen is started by a Session, not by crypten.init()")

    @classmethod
    def shutdown(cls) -> None:
        cls.instance = None

    def get_world_size(self) -> int:
        return len(self._parties)

    def get_rank(self) -> int:
        return self._rank

    def set_name(self, name: str) -> None:
        self._name = name

    def get_name(self) -> str:
        return self._name

    # tensors

    def _send(self, tensor: torch.Tensor, rank: int, label: str) -> None:
        array = np.array(tensor.detach().numpy(), order="C")  # a copy: CrypTen may change its own while this one waits
        self._network.send(self._parties[rank], label, array)

    def _receive(self, like: torch.Tensor, rank: int, label: str) -> torch.Tensor:
        dtype = like.detach().numpy().dtype
        return torch.from_numpy(self._network.receive(self._parties[rank], label, dtype, tuple(like.shape)))

    def send(self, tensor: torch.Tensor, dst: int) -> None:
        self._send(tensor, dst, "send")

    def recv(self, tensor: torch.Tensor, src: int) -> torch.Tensor:
        return self._receive(tensor, src, "send")

    def isend(self, tensor: torch.Tensor, dst: int) -> _Done:
        self._send(tensor, dst, "send")
        return _Done(lambda: None)

    def irecv(self, tensor: torch.Tensor, src: int) -> _Done:
        def receive() -> None:
            tensor.copy_(self._receive(tensor, src, "send"))

        return _Done(receive)

    def _others(self) -> list[int]:
        return [rank for rank in range(len(self._parties)) if rank != self._rank]

    def all_gather(self, tensor: torch.Tensor, async_op: bool = False) -> list[torch.Tensor]:
        for rank in self._others():
            self._send(tensor, rank, "all_gather")
        return [
            tensor.clone() if rank == self._rank else self._receive(tensor, rank, "all_gather")
            for rank in range(len(self._parties))
        ]

    def gather(self, tensor: torch.Tensor, dst: int, async_op: bool = False) -> list[Any]:
        if self._rank != dst:
            self._send(tensor, dst, "gather")
            return [None]
        return [
            tensor.clone() if rank == dst else self._receive(tensor, rank, "gather")
            for rank in range(len(self._parties))
        ]

    def scatter(self, scatter_list: list[torch.Tensor], src: int, size: Any = None, device: Any = None) -> torch.Tensor:
        if self._rank != src:
            like = torch.empty(size, dtype=torch.long) if size is not None else scatter_list[self._rank]
            return self._receive(like, src, "scatter")
        for rank in self._others():
            self._send(scatter_list[rank], rank, "scatter")
        return scatter_list[src]

    def all_reduce(self, tensor: Any, op: Any = ReduceOp.SUM, async_op: bool = False, batched: bool = False) -> Any:
        if batched:
            return _split(self.all_reduce(_join(tensor), op=op), tensor)
        return _reduce(self.all_gather(tensor), op)

    def reduce(
        self, tensor: Any, dst: int, op: Any = ReduceOp.SUM, async_op: bool = False, batched: bool = False
    ) -> Any:
        """Sends to `dst` alone: gloo's reduce leaves parts of the result with every other rank."""
        if batched:
            joined = self.reduce(_join(tensor), dst, op=op)
            return None if joined is None else _split(joined, tensor)
        parts = self.gather(tensor, dst)
        return _reduce(parts, op) if self._rank == dst else None

    def broadcast(self, tensor: Any, src: int, group: object = None, batched: bool = False) -> Any:
        if batched:
            for part in tensor:
                self.broadcast(part, src)
            return tensor
        if self._rank == src:
            for rank in self._others():
                self._send(tensor, rank, "broadcast")
        else:
            tensor.copy_(self._receive(tensor, src, "broadcast"))
        return tensor

    def barrier(self) -> None:
        self.all_gather(torch.zeros(0, dtype=torch.long))

    # public objects: sizes and the like, as JSON

    def send_obj(self, obj: Any, dst: int, group: object = None) -> None:
        public_json.send(self._network, self._parties[dst], "object", obj)

    def recv_obj(self, src: int, group: object = None) -> Any:
        return public_json.receive(self._network, self._parties[src], "object")

    def broadcast_obj(self, obj: Any, src: int, group: object = None) -> Any:
        if self._rank != src:
            return self.recv_obj(src)
        for rank in self._others():
            self.send_obj(obj, rank)
        return obj


def _reduce(parts: Sequence[torch.Tensor], op: Any) -> torch.Tensor:
    combine = _COMBINE[op]
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total


def _join(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Several tensors as one vector: one message instead of many."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _split(joined: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    parts = torch.split(joined, [tensor.numel() for tensor in like])
    return [part.reshape(tensor.shape) for part, tensor in zip(parts, like, strict=True)]
