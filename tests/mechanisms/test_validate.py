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


@pytest.mark.parametrize(
    "value",
    ["1e99999999", "1e-99999999", "1E+999", "1e1_0_0_0_0_0_0_0", "٣e٩٩٩٩٩٩٩٩", "9" * 5000, "1/" + "9" * 4000,
     "0." + "0" * 50 + "1", 10**100, -(10**4000)],
)  # fmt: skip
def test_numbers_that_would_take_minutes_are_refused_at_once_and_shortened(value: object) -> None:
    with pytest.raises(ValueError, match=r"^epsilon=[^\n]*: [^\n]+$") as refusal:
        validate.exact("epsilon", value)
    assert len(str(refusal.value)) < 200 and "set_int_max_str_digits" not in str(refusal.value)
    assert validate.exact("epsilon", "1e-99") == Fraction(1, 10**99)


@given(st.fractions(min_value=0))
def test_what_str_has_written_is_read_back(value: Fraction) -> None:
    assert validate.written(str(value)) == value


@pytest.mark.parametrize(
    "text", ["", "abc", "1/0", "-1", "1e5", "0.5", "1_0", " 1", "٣", "1/", "9" * 5000, b"1", 1, 1.5, None]
)
def test_anything_else_was_not_written_so(text: object) -> None:
    with pytest.raises(ValueError, match=r"is no number: it must be digits, like '10' or '1/10'$") as refusal:
        validate.written(text)
    assert len(str(refusal.value)) < 150


@pytest.mark.parametrize("value", [1.0, True, "1", None, np.float64(1)])
def test_integer_refuses_other_types(value: object) -> None:
    with pytest.raises(TypeError, match=r"^rows=[^\n]*: give an integer$"):
        validate.integer("rows", value)


def test_integer_range() -> None:
    assert validate.integer("rows", np.int32(3), low=3) == 3
    with pytest.raises(ValueError, match="rows=2 is below 3: give at least 3"):
        validate.integer("rows", 2, low=3)
