"""Fixed point in the ring of integers mod 2^64: exact encoding, checked ranges, overflow decided from bounds.

A real x stands as the integer round(x * 2^bits), halves away from zero; a product of two such integers has 2 * bits
fraction bits and is opened as it is, never truncated.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from smpc.errors import InputError

RING_BITS = 64
SAFE_BITS = 62  # what a joint result may reach, noise included: one bit of room below the sign
MAX_FRACTION_BITS = 30


def encode(values: npt.ArrayLike, bits: int, *, name: str = "values") -> npt.NDArray[np.int64]:
    """Ring integers of real `values` (any shape); integers are taken exactly. Raises InputError outside the ring."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        limit = 2 ** (RING_BITS - 1 - bits)
        if array.size and (int(array.max()) >= limit or int(array.min()) < -limit):
            raise InputError(f"{name}: an integer outside +-2^{RING_BITS - 1 - bits}; scale it down")
        return np.asarray(array.astype(np.int64) * np.int64(1 << bits), dtype=np.int64)
    scaled = np.asarray(array, dtype=np.float64) * float(1 << bits)
    if not np.isfinite(scaled).all():
        raise InputError(f"{name}: {int(np.count_nonzero(~np.isfinite(scaled)))} entries are not finite; remove them")
    rounded = np.trunc(scaled)
    rounded += (np.abs(scaled - rounded) >= 0.5) * np.sign(scaled)
    if rounded.size and float(np.abs(rounded).max()) >= 2.0 ** (RING_BITS - 1):
        raise InputError(f"{name}: a value outside +-2^{RING_BITS - 1 - bits}; scale it down")
    return rounded.astype(np.int64)


def decode(integers: npt.NDArray[np.int64], bits: int) -> npt.NDArray[np.float64]:
    """The reals that ring integers with `bits` fraction bits stand for, in float64."""
    return np.ldexp(integers.astype(np.float64), -bits)


def check_sum(rows: int, bound: Fraction, bits: int, tail: int) -> None:
    """Refuse a sum of `rows` products, each at most `bound` in size, that could leave the ring together with its noise.

    `bits` are the fraction bits of one factor, `tail` is what the noise stays below, in ring units of the product.
    Raises InputError that says which number of bits would fit.
    """
    if rows * bound * 4**bits + tail < 2**SAFE_BITS:
        return
    fits = next(
        (b for b in range(bits - 1, -1, -1) if rows * bound * 4**b + tail / 4 ** (bits - b) < 2**SAFE_BITS), None
    )
    hint = (
        f"fraction_bits = {fits} fits"
        if fits is not None
        else "no fraction_bits fits: use tighter bounds or more epsilon"
    )
    raise InputError(
        f"fraction_bits = {bits}: a sum over {rows} rows with its noise can leave the ring (2^{SAFE_BITS}); {hint}"
    )
