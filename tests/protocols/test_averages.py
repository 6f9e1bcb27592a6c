"""Means and shares: known answers, coverage of their intervals, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from protocols.averages import Average, exceeding, mean
from smpc.errors import InputError


def test_known_answers() -> None:
    found = mean([1.0, 2.0, 3.0, 4.0])
    half = 1.959964 * math.sqrt(5 / 3) / 2
    assert (found.centre, found.low, found.high) == (2.5, pytest.approx(2.5 - half), pytest.approx(2.5 + half))
    assert mean([7.0]) == Average(7.0, -math.inf, math.inf, 1)
    share = exceeding([0.1, 0.2, 0.3, 0.3], 0.2)
    assert (
        share.centre == 0.5
        and share.low == pytest.approx(0.1500, abs=1e-4)
        and share.high == pytest.approx(0.85, abs=1e-4)
    )
    assert exceeding([math.inf], 5.0).centre == 1
    for count in range(1, 200):
        for value in (0.0, 1.0):
            found = exceeding([value] * count, 0.5)
            assert found.low <= found.centre <= found.high
    assert str(mean([1.0, 1.0])) == "1 [1, 1]"


def test_intervals_cover_what_they_should() -> None:
    rng = np.random.default_rng(0)
    draws = rng.exponential(size=(2000, 100))
    means = [mean(row) for row in draws]
    assert 0.92 < np.mean([m.low <= 1 <= m.high for m in means]) < 0.97
    for bound in (0.05, 3.0):
        shares = [exceeding(row.tolist(), bound) for row in draws]
        assert 0.92 < np.mean([s.low <= math.exp(-bound) <= s.high for s in shares]) < 0.99


@pytest.mark.parametrize("bad", [[], [math.nan], [1.0, math.nan]])
def test_refusals(bad: list[float]) -> None:
    for estimate in (mean, lambda results: exceeding(results, 0.5)):
        with pytest.raises(InputError, match="need at least one"):
            estimate(bad)
