"""What a user may write for a number, and the one line that refuses the rest."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms import validate


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, Fraction(1)),
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("1e-3", Fraction(1, 1000)),
        (Fraction(2, 7), Fraction(2, 7)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.int64(4), Fraction(4)),
        (1e-300, Fraction(1, 10**300)),
    ],
)
def test_exact_means_the_decimal_text(value: object, expected: Fraction) -> None:
    assert validate.exact("epsilon", value) == expected


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, "nan", "inf", "", "1/0", "ten", True, np.bool_(True), None, [1], 1j, b"1", 0, 0.0,
     -0.0, "0", -1, "-0.5", Fraction(0), np.float64("nan"), 50.1, "51", 10**400],
)  # fmt: skip
def test_epsilon_refuses(value: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^epsilon=[^\n]*: [^\n]+$"):
        validate.epsilon(value)


def test_weak_epsilon_has_to_be_asked_for() -> None:
    assert validate.epsilon(50) == 50
    assert validate.epsilon(51, allow_weak=True) == 51
    with pytest.raises(ValueError, match="allow_weak=True"):
        validate.epsilon(51)
    with pytest.raises(ValueError, match="not finite"):
        validate.epsilon(math.inf, allow_weak=True)


@pytest.mark.parametrize("value", [0, 1, 1.0, -1e-9, 2, math.nan, math.inf, True, "x", None])
def test_delta_refuses(value: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^delta=[^\n]*: [^\n]+$"):
        validate.delta(value)
    assert validate.delta("1e-6") == Fraction(1, 10**6)


@given(st.floats(min_value=1e-300, max_value=50, allow_nan=False))
def test_floats_keep_their_shortest_text(value: float) -> None:
    assert float(validate.epsilon(value)) == value


@pytest.mark.parametrize("value", [1.0, True, "1", None, np.float64(1)])
def test_integer_refuses_other_types(value: object) -> None:
    with pytest.raises(TypeError, match=r"^rows=[^\n]*: give an integer$"):
        validate.integer("rows", value)


def test_integer_range() -> None:
    assert validate.integer("rows", np.int32(3), low=3) == 3
    with pytest.raises(ValueError, match="rows=2 is below 3: give at least 3"):
        validate.integer("rows", 2, low=3)
