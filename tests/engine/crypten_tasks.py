"""What pool processes run on CrypTen's own tensors: x is put in by party 0, y by party 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from smpc.engine.session import CryptenSession

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Primitive:
    """CrypTen's operation, float64's, how far they may be apart, and the shapes and range of the operands."""

    secret: Callable[[Any, Any], Any]
    plain: Callable[[Floats, Floats], Any]
    tolerance: float = 1e-3
    x: tuple[int, ...] = (3, 4)
    y: tuple[int, ...] = (3, 4)
    whole: bool = False

    def operands(self) -> tuple[Floats, Floats]:
        rng = np.random.default_rng(7)
        x, y = rng.uniform(-4, 4, self.x), rng.uniform(-4, 4, self.y)
        return (np.round(x), np.round(y)) if self.whole else (x, y)


def softmax(x: Floats, _: Floats) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def convolved(x: Floats, y: Floats) -> Any:
    return np.stack([[np.correlate(row[0], kernel[0], "valid") for kernel in y] for row in x])


PRIMITIVES = {
    "add": Primitive(lambda x, y: x + y, np.add, 1e-4),
    "sub, broadcast": Primitive(lambda x, y: x - y, np.subtract, 1e-4, y=(1, 4)),
    "add a public number": Primitive(lambda x, y: x + 1.5, lambda x, y: x + 1.5, 1e-4),
    "mul": Primitive(lambda x, y: x * y, np.multiply),
    "mul, broadcast": Primitive(lambda x, y: x * y, np.multiply, x=(3, 1), y=(1, 4)),
    "mul, zero size": Primitive(lambda x, y: x * y, np.multiply, x=(0, 4), y=(0, 4)),
    "mul by a public number": Primitive(lambda x, y: x * 2.5, lambda x, y: x * 2.5),
    "square": Primitive(lambda x, y: x.square(), lambda x, y: x * x),
    "matmul": Primitive(lambda x, y: x @ y, np.matmul, y=(4, 2)),
    "matmul, one row": Primitive(lambda x, y: x @ y, np.matmul, x=(1, 4), y=(4, 1)),
    "div by a public number": Primitive(lambda x, y: x / 3, lambda x, y: x / 3),
    "div": Primitive(lambda x, y: x / (y.square() + 1), lambda x, y: x / (y * y + 1), 0.02),
    "conv1d": Primitive(lambda x, y: x.conv1d(y), convolved, x=(2, 1, 8), y=(3, 1, 3)),
    "gt": Primitive(lambda x, y: x > y, np.greater, 0),
    "ge of equals": Primitive(lambda x, y: x >= x, lambda x, y: x >= x, 0),
    "eq": Primitive(lambda x, y: x == y, np.equal, 0, whole=True),
    "ne": Primitive(lambda x, y: x != y, np.not_equal, 0, whole=True),
    "relu": Primitive(lambda x, y: x.relu(), lambda x, y: np.maximum(x, 0), 1e-4),
    "max": Primitive(lambda x, y: x.max(), lambda x, y: x.max(), 1e-3),
    "max of rows": Primitive(lambda x, y: x.max(dim=1)[0], lambda x, y: x.max(axis=1), 1e-3),
    "argmax": Primitive(lambda x, y: x.argmax(dim=1, one_hot=False), lambda x, y: x.argmax(axis=1), 0),
    "sigmoid": Primitive(lambda x, y: x.sigmoid(), lambda x, y: 1 / (1 + np.exp(-x)), 0.02),
    "softmax": Primitive(lambda x, y: x.softmax(dim=1), softmax, 0.02),
    "sum": Primitive(lambda x, y: x.sum(dim=0), lambda x, y: x.sum(axis=0), 1e-3),
}


def secret_operands(primitive: Primitive, rank: int) -> list[Any]:
    """Each operand is known to its owner only; the others give its size."""
    import crypten
    import torch

    return [
        crypten.cryptensor(torch.from_numpy(own if rank == owner else np.zeros_like(own)), src=owner)
        for owner, own in enumerate(primitive.operands())
    ]


def opened(s: CryptenSession, name: str) -> Any:
    """The primitive's result, opened to all parties, and whether all global generators stand where they stood."""
    if not s.is_party:
        return None
    primitive = PRIMITIVES[name]
    before = generator_states()
    result = primitive.secret(*secret_operands(primitive, s.cast.parties.index(s.me))).get_plain_text()
    return result.numpy(), generator_states() == before


def generator_states() -> list[bytes]:
    """The states of Python's, NumPy's, torch's and CrypTen's generators."""
    import random

    import crypten
    import torch

    own = [generator.get_state() for devices in crypten.generators.values() for generator in devices.values()]
    numpy_state: Any = np.random.get_state()  # noqa: NPY002  the legacy generator is what must not be used
    return [
        *(state.numpy().tobytes() for state in (torch.get_rng_state(), *own)),
        repr((numpy_state[1].tolist(), *numpy_state[2:])).encode(),
        repr(random.getstate()).encode(),
    ]


def zero_sharings(s: CryptenSession) -> Any:
    """A share of CrypTen's arithmetic and of its binary zero, and the words drawn from each pair's stream."""
    if not s.is_party:
        return None
    from crypten.mpc.primitives import ArithmeticSharedTensor, BinarySharedTensor

    drawn: dict[int, int] = {}
    kept = s._sharing._signed

    class Counting:
        def __init__(self, number: int, stream: Any) -> None:
            self.number, self.stream = number, stream

        def words(self, count: int) -> Any:
            drawn[self.number] = drawn.get(self.number, 0) + count
            return self.stream.words(count)

    s._sharing._signed = [(sign, Counting(k, stream)) for k, (sign, stream) in enumerate(kept)]  # type: ignore[misc]
    shares = [zero.PRZS(5, 3).share.numpy() for zero in (ArithmeticSharedTensor, BinarySharedTensor)]
    s._sharing._signed = kept
    return shares, list(drawn.values())


def open_to(s: CryptenSession, to: int, frames: list[Any]) -> Any:
    """A secret of party 0 opened to one party by CrypTen's own call: the result, and the arrays that arrived for it."""
    s.network.enter("opening")  # peers may be ahead: frames of this task are told by its step
    if not s.is_party:
        return None
    import crypten
    import torch

    secret = crypten.cryptensor(torch.tensor([1.25, -2.0]), src=0)
    chain = s.network._chain
    result = secret.get_plain_text(dst=to)
    crypten.communicator.get().barrier()
    arrived = [frame.payload for way, _, frame in frames if way == "received" and frame.chain == chain]
    return None if result is None else result.tolist(), [array for array in arrived if array.size]


def encoded(s: CryptenSession, values: Any, precision: int | None, as_numpy: bool) -> Any:
    """What comes out after putting values in; the error's text if they are refused."""
    if not s.is_party:
        return None
    import crypten
    import torch

    from smpc.errors import InputError

    given = values if as_numpy else torch.from_numpy(values)
    options = {"device": "cpu"} if as_numpy else {}
    try:
        return crypten.cryptensor(given, src=0, precision=precision, **options).get_plain_text().numpy()
    except InputError as error:
        return str(error)


def refusals(s: CryptenSession) -> Any:
    """What each forbidden setting says."""
    if not s.is_party:
        return None
    import crypten
    import torch

    from smpc.engine.communicator import LinkCommunicator
    from smpc.engine.install import install

    said = {}

    def attempt(name: str, setting: str, value: Any, act: Callable[[], object]) -> None:
        with crypten.cfg.temp_override({setting: value}):
            try:
                act()
                said[name] = "nothing"
            except Exception as error:
                said[name] = f"{type(error).__name__}: {error}"

    x, y = (crypten.cryptensor(torch.ones(2), src=0) for _ in range(2))
    again = (LinkCommunicator.instance, s._provider, s._sharing)
    for provider in ("TFP", "TTP", "HE"):
        attempt(provider, "mpc.provider", provider, lambda: x * y)
    attempt("debug", "debug.debug_mode", True, lambda: install(*again))
    attempt("validation", "debug.validation_mode", True, lambda: install(*again))
    attempt("replicated", "mpc.protocol", "replicated", lambda: install(*again))
    attempt("init", "mpc.provider", "dealer", lambda: crypten.communicator.DistributedCommunicator.initialize(0, 2))
    attempt("seeds", "mpc.provider", "dealer", crypten._setup_prng)
    return said


def zero_checked(s: CryptenSession, values: Any) -> bool:
    """The session's own use of comparisons: is a shared array all zero?"""
    from smpc.session import Held

    held: Held[Any] = Held("p0", values if s.me == "p0" else None)
    return s.check_zero(s.share(held, values.shape), message="all zero")
