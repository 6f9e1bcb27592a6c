"""Columns and their bounds: what is accepted can be scaled to [-1, 1] without leaving it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocols.schema import MAX_BOUND, MIN_WIDTH, Column, scaled
from smpc.errors import InputError

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, 0.0),
        (1.0, 1.0),
        (math.nan, 1.0),
        (0.0, math.nan),
        (-math.inf, 0.0),
        (0.0, math.inf),
        (-1e308, 1e308),
        (0.0, 5e-324),
        (1e17, 1e17 + 16),
    ],
)
def test_bounds_that_cannot_be_scaled(low: float, high: float) -> None:
    with pytest.raises(InputError, match=r"bounds of x are \[.*\]: need low < high"):
        Column("x", low, high)


@given(finite, finite)
@example(0.1, 0.7)
@example(-MAX_BOUND, MAX_BOUND)
@example(1.0, 1.0 + 3 * MIN_WIDTH)
def test_both_ends_scale_to_the_ends_of_the_interval(one: float, other: float) -> None:
    """(high - middle) / half may round to just above 1, which would break the sensitivity."""
    low, high = sorted((one, other))
    try:
        column = Column("x", low, high)
    except InputError:  # too narrow, or too wide
        return
    result = scaled((column,), np.array([[low, column.middle, high]]))
    assert (np.abs(result) <= 1).all()
    np.testing.assert_allclose(result, [[-1, 0, 1]], atol=1e-6)


@given(st.floats(0.1, 0.7))
def test_values_within_bounds_are_never_refused(x: float) -> None:
    assert abs(scaled((Column("x", 0.1, 0.7),), np.array([[x]]))[0, 0]) <= 1


@pytest.mark.parametrize("value", [0.09999999999999999, 0.7000000000000001, math.nan, math.inf, -math.inf])
def test_values_outside_are_refused_with_their_column(value: float) -> None:
    columns = (Column("x", 0, 1), Column("y", 0.1, 0.7))
    with pytest.raises(InputError, match="column y: 1 values outside its bounds"):
        scaled(columns, np.array([[0.0, 1.0], [0.5, value]]))


def test_the_table_is_not_changed() -> None:
    table = np.array([[0.0, 1.0]])
    scaled((Column("x", 0, 1),), table)
    np.testing.assert_array_equal(table, [[0.0, 1.0]])
