"""Exact integers to compare with: Python's, taken mod 2^64 into the ring's signed range."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smpc.ring import Integers

Exact = npt.NDArray[np.object_]
MOST = 2**62
values = st.integers(-MOST, MOST) | st.sampled_from([-(2**63), 2**63 - 1, -MOST, MOST, -1, 0, 1])
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def exact(array: npt.ArrayLike) -> Exact:
    return np.asarray(array).astype(object)


def ring(numbers: npt.ArrayLike) -> Integers:
    """What the ring makes of exact integers."""
    numbers = np.asarray(numbers, dtype=object)
    wrapped = [(int(number) + 2**63) % 2**64 - 2**63 for number in numbers.reshape(-1)]
    return np.array(wrapped, dtype=np.int64).reshape(numbers.shape)


@st.composite
def integers(draw: st.DrawFn, shape: Sequence[int]) -> Integers:
    """An array of ring integers, in any memory layout."""
    array = draw(arrays.arrays(np.int64, tuple(shape), elements=values))
    layout = draw(st.sampled_from(["C", "F", "strided", "reversed"]))
    if not array.ndim or layout == "C":
        return array
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "reversed":
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype=np.int64)
    wide[..., ::2] = array
    return wide[..., ::2]
