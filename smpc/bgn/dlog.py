"""Small discrete logarithms: the integer m with g^m = h, |m| <= bound, by signed baby steps and giant steps.

Baby steps j = 0 .. n are kept under one machine word of the element that g^j and g^-j share (the first coordinate of a
point, the real part of an element of GT), so that n entries cover 2 n + 1 integers. Giant steps go by 2 n + 1 from the
middle outwards. Every hit is verified; a value outside the bound is None, always, however it would be found. The time
depends on the value, and those who wait for it see the time. So every mode searches a sum with the draws of all its
contributors, the searcher's own too: what the time tells is post-processing of the opened value, even for somebody who
knows some of the draws. For a value opened `unprotected`, which has no draw, the window is searched to its end.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from smpc.bgn.curve import G1, GT, Elements, Group
from smpc.bgn.mcl import library
from smpc.bgn.threads import on_all_cores
from smpc.errors import InputError, SmpcError
from smpc.fixedpoint import Room
from smpc.ring import Integers

WINDOW_BITS = 42  # about 2 s a value at the outermost
WINDOW = Room("the window that decryption searches", WINDOW_BITS)
OVERFLOW = Fraction(1, 2**40)  # that any value of a release leaves its window; part of the guarantee
_MOST_STEPS, _FEWEST_STEPS = 1 << 22, 1 << 12  # 48 MB of table, one file
_CHUNK = 2048  # giant steps between look-ups
_STEP_SECONDS = 2.3e-6  # a giant step in GT where docs/protocols/bgn.md was measured
_HASH_BYTES = 32
Table = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]  # sorted keys, and the baby step of each


class OutOfWindow(SmpcError):
    """A value with its noise left the declared window. It says not which: a fixed outcome, charged like any other."""

    def __init__(self) -> None:
        super().__init__(
            "a value left the window that its bounds and noise allow (probability below 2^-40): nothing is released, "
            "the budget stays charged; start a new release"
        )


def cache_folder() -> Path:
    """Where tables are kept: public data, the same for everybody. Nowhere for a user without a home."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # as in a container with a user of its own
        base = os.devnull
    return Path(base) / "sharewise"


def search_seconds(bound: int) -> float:
    """Of one value at the outermost of its window, where docs/protocols/bgn.md was measured."""
    return _STEP_SECONDS * 2 * (1 + bound // (2 * _baby_steps(bound)))


def _baby_steps(bound: int) -> int:
    wanted = 1 << (4 * math.isqrt(bound)).bit_length()
    return min(max(wanted, _FEWEST_STEPS), _MOST_STEPS)


class DiscreteLog:
    """Logarithms to the group's generator (G1, or e(P, Q) in GT) for |m| <= bound."""

    def __init__(self, group: Group, bound: int, folder: Path | None = None) -> None:
        if not 0 < bound <= 1 << WINDOW_BITS:
            raise InputError(f"window = {bound}: must be from 1 to 2^{WINDOW_BITS}")
        self.group, self.bound = group, bound
        self.steps = _baby_steps(bound)
        self._keys, self._order = _table(group, self.steps, folder or cache_folder())
        stride = group.power(group.generator, 2 * self.steps + 1)
        self._strides = (group.inverse(stride), stride)

    def __call__(self, elements: Elements, *, to_the_end: bool = False) -> list[int | None]:
        """The logarithms of (n, words); None outside the bound. Cost: up to bound / steps operations each."""
        return on_all_cores(lambda element: self._search(element, to_the_end), elements)

    def all_of(self, elements: Elements, *, to_the_end: bool) -> Integers:
        """The logarithms of (n, words); raises OutOfWindow unless all lie within the bound.

        `to_the_end`: the same work for every value.
        """
        values = [value for value in self(elements, to_the_end=to_the_end) if value is not None]
        if len(values) < len(elements):
            raise OutOfWindow
        return np.array(values, dtype=np.int64)

    def _search(self, element: Elements, to_the_end: bool) -> int | None:
        found = self._found(element)
        value = next(found, None)
        if to_the_end:
            for _ in found:
                pass
        return value if value is not None and abs(value) <= self.bound else None

    def _found(self, element: Elements) -> Iterator[int]:
        """The logarithm, as soon as the walk is there, up to half a giant step beyond the bound."""
        width = 2 * self.steps + 1
        reach = (self.bound + self.steps) // width  # giant steps to each side
        ends = [element, element]
        for start in range(0, reach + 1, _CHUNK):
            count = min(_CHUNK, reach + 1 - start)
            for side, sign in ((0, 1), (1, -1)):
                walk = _walk(self.group, ends[side], self._strides[side], count + 1)
                ends[side] = walk[-1]
                for place, step in self._hits(walk[:-1]):
                    for rest in self._verified(walk[place], step):
                        yield sign * (start + place) * width + rest

    def _hits(self, walk: Elements) -> list[tuple[int, int]]:
        """(place in the walk, baby step) of every entry whose key is in the table."""
        keys = _keys(self.group, walk)
        order = np.argsort(keys)
        places = np.minimum(np.searchsorted(self._keys, keys[order]), self.steps)
        found = np.flatnonzero(self._keys[places] == keys[order])
        return [(int(order[i]), int(self._order[places[i]])) for i in found]

    def _verified(self, element: Elements, step: int) -> list[int]:
        """Which of step and -step is the element's logarithm, if any."""
        power = self.group.power(self.group.generator, step)
        return [
            sign * step
            for sign, candidate in ((1, power), (-1, self.group.inverse(power)))
            if self.group.equal(candidate, element)
        ]


def _keys(group: Group, elements: Elements) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray((elements if group is GT else group.affine(elements))[:, 0])


def _walk(group: Group, start: Elements, stride: Elements, count: int) -> Elements:
    """start, start stride, start stride^2, ..: shape (count, words)."""
    out = np.empty((count, group.words), np.uint64)
    out[0] = start
    call = library().mclBnGT_mul if group is GT else library().mclBnG1_add
    first, step, size = out.ctypes.data, np.ascontiguousarray(stride).ctypes, 8 * group.words
    factor = step.data
    for address in range(first + size, first + count * size, size):
        call(address, address - size, factor)
    return out


def _table(group: Group, steps: int, folder: Path) -> Table:
    """Sorted keys of the baby steps 0 .. steps, and which step each one is; from disk if it is there and whole."""
    if group not in (G1, GT):
        raise InputError(f"no logarithms in {group}")
    path = folder / f"dlog-1-{group}-{steps}"
    kept = _kept(path, steps)
    # another group's table or library's is whole, too, and would find nothing
    if kept and np.array_equal(kept[0][kept[1] == steps], _keys(group, group.power(group.generator, steps)[None])):
        return kept
    table = np.empty(steps + 1, np.uint64)
    element = group.identity()
    for start in range(0, steps + 1, 1 << 14):
        walk = _walk(group, element, group.generator, min(1 << 14, steps + 1 - start) + 1)
        table[start : start + len(walk) - 1] = _keys(group, walk[:-1])
        element = walk[-1]
    order = np.argsort(table, kind="stable").astype(np.uint32)
    table = table[order]
    _keep(path, table.tobytes() + order.tobytes())
    return table, order


def _kept(path: Path, steps: int) -> Table | None:
    """What the file holds, if it is one of the right size, and whole."""
    with contextlib.suppress(OSError):
        # looked at before it is opened: a pipe has no end, a device may have none
        if path.is_file() and path.stat().st_size == _HASH_BYTES + 12 * (steps + 1):
            data = path.read_bytes()
            body = memoryview(data)[_HASH_BYTES:]
            if hashlib.sha256(body).digest() == data[:_HASH_BYTES]:
                keys = np.frombuffer(body, np.uint64, steps + 1)
                return keys, np.frombuffer(body, np.uint32, steps + 1, offset=8 * (steps + 1))
    return None


def _keep(path: Path, body: bytes) -> None:
    """Write the file whole or not at all; a folder that cannot be written only costs time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)  # of a full disk
