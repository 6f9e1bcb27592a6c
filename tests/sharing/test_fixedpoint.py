"""Fixed point against exact fractions: nearest integers, halves away from zero, ranges checked, nothing lost."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from smpc import fixedpoint
from smpc.errors import InputError
from smpc.fixedpoint import RING, Room
from tests.sharing.exact import MOST

bits_ = st.integers(0, fixedpoint.MAX_FRACTION_BITS)


def nearest(value: Fraction) -> int:
    """Halves away from zero."""
    return int(math.copysign(1, value)) * math.floor(abs(value) + Fraction(1, 2)) if value else 0


@given(bits_, st.data())
def test_reals_become_the_nearest_multiples(bits: int, data: st.DataObject) -> None:
    limit = 2.0 ** (62 - bits)
    halves = st.integers(-(2**40), 2**40).map(lambda whole: (whole + 0.5) / 2**bits).filter(lambda x: abs(x) < limit)
    elements = st.floats(-limit, limit) | halves
    values = data.draw(arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, min_side=0), elements=elements))
    encoded = fixedpoint.encode(values, bits)
    assert encoded.shape == values.shape
    assert encoded.dtype == np.int64
    assert encoded.reshape(-1).tolist() == [nearest(Fraction(x) * 2**bits) for x in values.reshape(-1).tolist()]


@given(bits_, st.data())
def test_integers_are_exact_or_refused(bits: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(-(2**63), 2**63 - 1))
    if -(2 ** (63 - bits)) <= value < 2 ** (63 - bits):
        assert fixedpoint.encode(np.array([value]), bits).tolist() == [value * 2**bits]
    else:
        with pytest.raises(InputError, match=f"income: an integer outside ..2.{63 - bits}"):
            fixedpoint.encode(np.array([value]), bits, name="income")


@pytest.mark.parametrize("size", [1, fixedpoint._PIECE, fixedpoint._PIECE + 1])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_not_finite_values_are_counted_wherever_they_stand(size: int, bad: float) -> None:
    values = np.zeros(size)
    values[-1] = bad
    with pytest.raises(InputError, match="age: 1 entries are not finite"):
        fixedpoint.encode(values, 8, name="age")


@pytest.mark.parametrize("bits", [0, 16, 30])
def test_reals_outside_the_ring_are_refused(bits: int) -> None:
    edge = 2.0 ** (63 - bits)
    assert fixedpoint.encode([-edge, math.nextafter(edge, 0)], bits).tolist() == [-(2**63), 2**63 - 1024]
    for value in (edge, math.nextafter(-edge, -math.inf), 1e300):
        with pytest.raises(InputError, match="outside"):
            fixedpoint.encode([0.0, value], bits)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.uint64, np.float32, np.float16])
def test_other_number_types_are_exact(dtype: Any) -> None:
    assert fixedpoint.encode(np.array([0, 1, 1], dtype=dtype), 20).tolist() == [0, 2**20, 2**20]


def test_large_unsigned_integers_do_not_wrap() -> None:
    with pytest.raises(InputError, match="outside"):
        fixedpoint.encode(np.array([2**63], dtype=np.uint64), 0)


@given(st.integers(0, 60), st.lists(st.integers(-MOST, MOST), max_size=20))
def test_decoding_is_the_nearest_float64(bits: int, numbers: list[int]) -> None:
    decoded = fixedpoint.decode(np.array(numbers, dtype=np.int64), bits)
    assert decoded.tolist() == [float(Fraction(number, 2**bits)) for number in numbers]


@given(bits_, st.integers(-(2**53), 2**53))
def test_decoding_undoes_encoding(bits: int, number: int) -> None:
    decoded = fixedpoint.decode(np.array([number]), bits)
    assert fixedpoint.encode(decoded, bits).tolist() == [number]


@given(
    st.integers(1, 10**12),
    st.fractions(0, 10**6),
    bits_,
    st.integers(0, 2**70),
    st.sampled_from([RING, Room("the window", 42)]),
)
@example(1, Fraction(0), 4, 2**70 - 2**16, RING)  # fits with 3 bits, if only just
@example(2**20, Fraction(1), 12, 5, Room("the window", 42))  # of the rows, 2^18 - 1 fit
def test_a_sum_is_refused_exactly_when_it_could_leave_its_room(
    rows: int, bound: Fraction, bits: int, tail: int, room: Room
) -> None:
    def fits(b: int, n: int = rows) -> bool:
        return bool(n * bound * 4**b + Fraction(tail, 4 ** (bits - b)) < 2**room.bits)

    if fits(bits):
        fixedpoint.check_sum(rows, bound, bits, tail, room)
        return
    with pytest.raises(InputError) as caught:
        fixedpoint.check_sum(rows, bound, bits, tail, room)
    told = str(caught.value)
    assert f"can leave {room.name} (2^{room.bits}); " in told and told.isprintable()
    fitting = [b for b in range(1, bits) if fits(b)]
    assert f"fraction_bits = {max(fitting)} fits" in told if fitting else "tighter bounds" in told
    if "at most" in told:
        most = int(told.split("at most ")[1].split()[0])
        assert fits(bits, most) and not fits(bits, most + 1)
    else:
        assert not fits(bits, 1)
