"""Whitened rows: the same integers everywhere, spread alike in all directions, and the way back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.vote_statistic import vote_statistic
from protocols.ensemble.auxiliary import Auxiliary, unit_rows
from protocols.ensemble.whitening import FLOOR, Whitened


def narrow(samples: int, seed: int = 0) -> Auxiliary:
    """Samples that hardly differ in two of four directions."""
    x = np.random.default_rng(seed).normal(size=(samples, 3)) * [0.5, 0.05, 0.01]
    return Auxiliary.of(unit_rows(x))


def test_the_spread_is_one_in_every_direction_that_is_not_empty() -> None:
    rows = narrow(2000)
    white = Whitened.of(rows)
    y = np.ldexp(white.rows.astype(float), -white.bits)
    values = np.linalg.eigvalsh(rows.x.T @ rows.x / 2000)
    assert np.allclose(np.linalg.eigvalsh(y.T @ y / 2000), values / (values + FLOOR), atol=0.02)
    assert np.allclose(y, rows.x @ white.t, atol=2.0**-white.bits)


@given(st.integers(1, 40), st.integers(0, 1000))
@settings(max_examples=50)
def test_the_sensitivity_of_the_mean_stays_one_and_the_way_back_is_exact(samples: int, seed: int) -> None:
    rows = narrow(samples, seed)
    white = Whitened.of(rows)
    assert float(vote_statistic(white.rows, 2)) / (samples * 2**white.bits) <= 1.02
    counts = np.random.default_rng(seed).integers(0, 9, (2, samples))
    turned = np.ldexp((counts @ white.rows).astype(float), -white.bits)
    assert np.allclose(white.back(turned), counts @ rows.x, atol=1e-4 * samples)


FEW_AND_WIDE = np.eye(1, 16)  # more columns than rows: the sums over columns leave 64 bits first


@pytest.mark.parametrize(
    "rows", [np.zeros((3, 2)), np.eye(2), np.ones((1, 1)), np.full((40_000, 3), 0.5), FEW_AND_WIDE]
)
def test_edges_fit_into_64_bits(rows: np.ndarray) -> None:
    white = Whitened.of(Auxiliary.of(rows))
    largest = int(np.abs(white.rows).max())
    assert max(rows.shape) * largest**2 < 2**63 and white.bits >= 10
    assert vote_statistic(white.rows, 2) > 0 or not rows.any()
    assert np.isfinite(white.back(np.ones((1, rows.shape[1])))).all()


def test_another_machines_last_bits_do_not_change_the_integers() -> None:
    rows = narrow(500)
    first = Whitened.of(rows)
    shaken = replace(rows)
    shaken.__dict__["x"] = rows.x * (1 + 1e-15 * np.random.default_rng(1).normal(size=rows.x.shape))
    assert np.array_equal(Whitened.of(shaken).rows, first.rows)
