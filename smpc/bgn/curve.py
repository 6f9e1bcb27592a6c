"""The groups G1, G2 and GT of BLS12-381 with prime order r, and the pairing, on NumPy arrays.

An element is `words` uint64 of the library's own form; arrays have shape (..., words). All three groups share one
interface in neutral words: `op` is the group law, `power` its repetition, so that proofs are written once. Scalars are
Python integers modulo r. Arithmetic is the library's, not constant in time: it protects against whoever sees the
messages, not against code on the same machine that measures a party's clock or cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from smpc.bgn.mcl import BYTES, GENERATORS, WORDS, library, scalar
from smpc.errors import PeerError

Elements = npt.NDArray[np.uint64]
Encoded = npt.NDArray[np.uint8]


class Group:
    """One of the three groups. Methods work on arrays of elements, in as many dimensions as they have."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words = WORDS[name]
        self.size = BYTES[name]  # bytes of an encoded element
        self._law, self._inverse, self._power = ("mul", "inv", "pow") if name == "GT" else ("add", "neg", "mul")

    def __repr__(self) -> str:
        return self.name

    def _call(self, name: str) -> Any:
        return getattr(library(), f"mclBn{self.name}_{name}")

    @cached_property
    def generator(self) -> Elements:
        """The standard generators P of G1 and Q of G2; e(P, Q) in GT."""
        if self is GT:
            return pairing(G1.generator, G2.generator)
        return self.decode(np.frombuffer(GENERATORS[self.name], np.uint8), what="generator")

    def identity(self, *shape: int) -> Elements:
        """The neutral element, shape (*shape, words)."""
        out = np.zeros((*shape, self.words), np.uint64)
        if self is GT:
            out[...] = self.power(self.generator, 0)
        return out

    def op(self, a: Elements, b: Elements) -> Elements:
        """The group law, elementwise."""
        return self._each(self._call(self._law), *np.broadcast_arrays(a, b))

    def inverse(self, a: Elements) -> Elements:
        return self._each(self._call(self._inverse), a)

    def power(self, a: Elements, exponents: int | Sequence[int]) -> Elements:
        """a to the exponent; a sequence has one exponent for each element of a vector (or for one element)."""
        if isinstance(exponents, int):
            return self._each(self._call(self._power), a, constant=scalar(library(), exponents))
        bases = np.broadcast_to(a, (len(exponents), self.words))
        powers = [self.power(base, exponent) for base, exponent in zip(bases, exponents, strict=True)]
        return np.array(powers, np.uint64).reshape(len(powers), self.words)

    def _each(self, call: Any, *arrays: Elements, constant: Any = None) -> Elements:
        sources = [np.ascontiguousarray(array) for array in arrays]
        out = np.empty_like(sources[0])
        step = 8 * self.words
        addresses = [out.ctypes.data, *(array.ctypes.data for array in sources)]
        rest = () if constant is None else (constant,)
        for offset in range(0, out.size * 8, step):
            call(*(address + offset for address in addresses), *rest)
        return out

    def sums(self, points: Elements) -> Elements:
        """Sums over the last but one dimension of points of G1 or G2: (..., n, words) gives (..., words).

        One call a sum: the polynomial with these coefficients at 1.
        """
        points = np.ascontiguousarray(points)
        *shape, count, words = points.shape
        out = np.zeros((*shape, words), np.uint64)
        if count == 0:
            return out
        lib = library()
        evaluate, one = getattr(lib, f"mclBn_{self.name}EvaluatePolynomial"), scalar(lib, 1)
        source, target, step = points.ctypes.data, out.ctypes.data, 8 * words
        for i in range(out.size // words):
            evaluate(target + i * step, source + i * count * step, count, one)
        return out

    def affine(self, points: Elements) -> Elements:
        """The same points of G1 or G2 with third coordinate 1, where equal points have equal words."""
        out: Elements = np.array(points, np.uint64, order="C")
        self._call("normalizeVec")(out.ctypes.data, out.ctypes.data, out.size // self.words)
        return out

    def equal(self, a: Elements, b: Elements) -> bool:
        """Whether all elements agree."""
        a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(a, b))
        call, step = self._call("isEqual"), 8 * self.words
        return all(bool(call(a.ctypes.data + i, b.ctypes.data + i)) for i in range(0, a.size * 8, step))

    def encode(self, elements: Elements) -> Encoded:
        """Standard bytes, shape (..., size): compressed points; GT as twelve field elements."""
        elements = np.ascontiguousarray(elements if self is GT else self.affine(elements))
        out = np.zeros((*elements.shape[:-1], self.size), np.uint8)
        call = self._call("serialize")
        for i in range(elements.size // self.words):
            call(out.ctypes.data + i * self.size, self.size, elements.ctypes.data + i * self.words * 8)
        return out

    def decode(self, data: Encoded, *, what: str) -> Elements:
        """Elements of received bytes, each one checked: canonical, on the curve, of order r (or neutral).

        Raises PeerError that starts with `what`: the sender and its message.
        """
        if data.dtype != np.uint8 or data.ndim < 1 or data.shape[-1] != self.size:
            raise PeerError(f"{what}: {data.dtype} {data.shape} is no array of elements of {self} ({self.size} bytes)")
        data = np.ascontiguousarray(data)
        out = np.zeros((*data.shape[:-1], self.words), np.uint64)
        read, is_valid = self._call("deserialize"), self._call("isValid") if self is GT else None
        for i in range(data.size // self.size):
            target = out.ctypes.data + i * self.words * 8
            size = read(target, data.ctypes.data + i * self.size, self.size)
            if size != self.size or (is_valid and not is_valid(target)):
                raise PeerError(f"{what}: entry {i} is no element of {self}; the sender is faulty or cheats")
        if not np.array_equal(self.encode(out), data):  # the library ignores what follows the mark of a neutral element
            raise PeerError(f"{what}: an entry is no element of {self} in its one encoding; the sender is faulty")
        return out


G1, G2, GT = Group("G1"), Group("G2"), Group("GT")


def pairing(a: Elements, b: Elements) -> Elements:
    """e(a, b) for one point of G1 and one of G2."""
    out = np.zeros(GT.words, np.uint64)
    library().mclBn_pairing(out.ctypes.data, np.ascontiguousarray(a).ctypes.data, np.ascontiguousarray(b).ctypes.data)
    return out


def miller_product(a: Elements, b: Elements) -> Elements:
    """The Miller values of n pairs of points, multiplied: e(a_1, b_1) ... e(a_n, b_n) after `final_exponentiation`."""
    out = np.zeros(GT.words, np.uint64)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    library().mclBn_millerLoopVec(out.ctypes.data, a.ctypes.data, b.ctypes.data, len(a))
    return out


def final_exponentiation(values: Elements) -> Elements:
    """Miller values, or products of them, as elements of GT."""
    return GT._each(library().mclBn_finalExp, values)
