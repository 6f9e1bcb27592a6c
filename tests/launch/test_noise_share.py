"""How much noise there is, in one line: the same share is the same verdict, before a run and from its files."""

from __future__ import annotations

from typing import Any

import pytest

from launch.noise_share import noise_line, noise_of, released_rows_line, votes_line


@pytest.mark.parametrize(
    ("deviation", "wanted", "too_much"),
    [
        (2.0, "0.002 of the largest possible sum of 1,000 rows: it hardly shows in common values", False),
        (13.0, "0.013 of the largest possible sum of 1,000 rows: coefficients of common values and columns", False),
        (40.0, "0.04 of the largest possible sum of 1,000 rows: the model says next to nothing", True),
    ],
)
def test_sums(deviation: float, wanted: str, too_much: bool) -> None:
    line = noise_line(deviation, 1000)
    assert line.startswith(f"noise: {wanted}")
    assert noise_of({"noise_standard_deviation": deviation, "rows": 1000}) == (line, too_much)


def test_columns_that_do_not_fill_their_bounds_are_promised_nothing() -> None:
    """Measured: .0127 leaves strong columns off by 30 %, and one whose values lie close together by 86 %."""
    for deviation in (1.3, 12.7):
        line = noise_line(deviation, 1000)
        assert "whose values spread over their bounds" in line and "strong columns" not in line
        assert line.endswith("where values lie close together within wide bounds, coefficients shrink towards 0")
    assert "may be off by a third" in line


@pytest.mark.parametrize(
    ("share", "classes", "verdict", "too_much"),
    [
        (0.005, 2, "it hardly costs accuracy", False),
        (0.03, 2, "it costs accuracy", False),
        (0.126, 2, "the classifier may be no better than a guess", True),
        (0.005, 10, "it costs accuracy", False),  # as 0.011 with two classes: .83 of .905 in scikit-learn's digits
        (0.06, 10, "the classifier may be no better than a guess", True),
    ],
)
def test_votes(share: float, classes: int, verdict: str, too_much: bool) -> None:
    line = votes_line(share, classes)
    assert line.startswith(f"noise: {share:.2g} of the largest length that the votes' statistic can have: {verdict}")
    assert noise_of({"noise_share": share, "classes": ["c"] * classes, "rows": 60}) == (line, too_much)


@pytest.mark.parametrize(
    ("explained", "wanted", "too_much"),
    [
        (0.42, "explains about 42 % (less where values do not spread over their bounds)", False),
        (0.0, "explains about 0 % (less where values do not spread over their bounds): next to nothing; take", True),
    ],
)
def test_released_rows(explained: float, wanted: str, too_much: bool) -> None:
    line = released_rows_line(explained)
    assert line.startswith("noise: where the features could explain 50 % of the label, a model of the released rows ")
    assert wanted in line and ("next to nothing" in line) == too_much
    assert noise_of({"expected_explained": explained, "rows": 5}) == (line, too_much)


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"noise_standard_deviation": 1.0},
        {"noise_standard_deviation": 1.0, "rows": 0},
        {"noise_standard_deviation": "1", "rows": 5},
        {"noise_share": 0.1},
        {"noise_share": 0.1, "classes": []},
        {"noise_share": 0.1, "classes": "ab"},
    ],
)
def test_files_that_say_nothing_of_noise(model: dict[str, Any]) -> None:
    assert noise_of(model) is None


def test_what_is_no_share_is_the_worst() -> None:
    assert "next to nothing" in noise_line(float("nan"), 5) and "next to nothing" in noise_line(float("inf"), 5)
