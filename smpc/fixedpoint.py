"""Fixed point in the ring of integers mod 2^64: exact encoding, checked ranges, overflow decided from bounds.

A real x stands as the integer round(x * 2^bits), halves away from zero; a product of two such integers has 2 * bits
fraction bits and is opened as it is, never truncated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from smpc.errors import InputError

RING_BITS = 64
SAFE_BITS = 62  # what a joint result may reach, noise included: one bit of room below the sign
MAX_FRACTION_BITS = 30
_PIECE = 1 << 14  # values at once: the temporaries stay in the cache


def encode(values: npt.ArrayLike, bits: int, *, name: str = "values") -> npt.NDArray[np.int64]:
    """Ring integers of real `values` (any shape); integers are taken exactly. Raises InputError outside the ring."""
    array = np.asarray(values)
    limit = 2 ** (RING_BITS - 1 - bits)
    if array.dtype.kind in "biu":
        if array.size and (int(array.max()) >= limit or int(array.min()) < -limit):
            raise InputError(f"{name}: an integer outside +-2^{RING_BITS - 1 - bits}; scale it down")
        return np.asarray(array.astype(np.int64) * np.int64(1 << bits), dtype=np.int64)
    source = np.ascontiguousarray(array, dtype=np.float64).reshape(-1)
    result = np.empty(source.shape, dtype=np.int64)
    for start in range(0, source.size, _PIECE):
        with np.errstate(over="ignore"):  # infinity fails the check below
            scaled = source[start : start + _PIECE] * float(1 << bits)
        if not (scaled.max() < 2.0 ** (RING_BITS - 1) and scaled.min() >= -(2.0 ** (RING_BITS - 1))):
            bad = int(np.count_nonzero(~np.isfinite(source)))
            raise InputError(
                f"{name}: {bad} entries are not finite; remove them"
                if bad
                else f"{name}: a value outside +-2^{RING_BITS - 1 - bits}; scale it down"
            )
        whole = np.trunc(scaled)
        scaled -= whole
        scaled += scaled  # the fraction doubled: its whole part is the rounding, halves away from zero
        whole += np.trunc(scaled, out=scaled)
        result[start : start + _PIECE] = whole
    return result.reshape(array.shape)


def decode(integers: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.float64]:
    """The reals that ring integers with `bits` fraction bits stand for, in float64."""
    return np.ldexp(integers.astype(np.float64), -bits)


@dataclass(frozen=True)
class Room:
    """What holds a joint result: integers up to 2^bits in size. `name` stands in errors."""

    name: str
    bits: int


RING = Room("the ring", SAFE_BITS)


def check_sum(rows: int, bound: Fraction, bits: int, tail: int, room: Room = RING) -> None:
    """Refuse a sum of `rows` products, each at most `bound` in size, that could leave `room` together with its noise.

    `bits` are the fraction bits of one factor, `tail` is what the noise stays below, in ring units of the product.
    Raises InputError that says which number of bits, or of rows, would fit.
    """
    limit = 2**room.bits

    def fits(fewer: int) -> bool:
        return bool(rows * bound * 4**fewer + Fraction(tail, 4 ** (bits - fewer)) < limit)

    if fits(bits):
        return
    fitting = next((fewer for fewer in range(bits - 1, 0, -1) if fits(fewer)), None)
    most = math.ceil((limit - tail) / (bound * 4**bits)) - 1 if bound else 0
    hint = f"fraction_bits = {fitting} fits" if fitting is not None else "no fraction_bits fits"
    hint += f", or at most {most} rows" if most > 0 else ""
    hint += "" if fitting is not None else "; use tighter bounds or more epsilon"
    raise InputError(
        f"fraction_bits = {bits}: a sum over {rows} rows with its noise can leave {room.name} (2^{room.bits}); {hint}"
    )
