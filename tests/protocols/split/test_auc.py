"""The AUC against its definition, pair by pair, and its estimate from perturbed labels against repeated draws."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.randomness import SecureRandom
from protocols.split.auc import auc, auc_of_weights, auc_within, oriented
from protocols.split.perturb import perturbation
from smpc.errors import InputError

Array = npt.NDArray[np.float64]


def by_pairs(values: Array, scores: Array) -> tuple[float, float]:
    above, pairs = 0.0, 0.0
    for i in range(len(values)):
        for j in range(len(values)):
            if i != j:
                weight = values[i] * (1 - values[j])
                above += weight * (float(scores[i] > scores[j]) + 0.5 * float(scores[i] == scores[j]))
                pairs += weight
    return above, pairs


records = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=2, max_size=12)


@given(records)
def test_auc_counts_pairs(found: list[tuple[int, int]]) -> None:
    labels, scores = np.array(found, dtype=float).T
    if 0 < labels.sum() < len(labels):
        above, pairs = by_pairs(labels, scores)
        assert auc(labels, scores) == pytest.approx(above / pairs)
        assert auc(labels, -scores) == pytest.approx(1 - above / pairs)
        assert auc_within(labels, scores, np.zeros(len(labels), np.int64)) == pytest.approx(above / pairs)
    else:
        with pytest.raises(InputError, match="at least one of each"):
            auc(labels, scores)


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(-3, 3)), min_size=2, max_size=12))
def test_weighted_auc_is_the_ratio_of_sums_over_pairs(found: list[tuple[float, int]]) -> None:
    values, scores = np.array(found, dtype=float).T
    above, pairs = by_pairs(values, scores)
    if abs(pairs) > 1e-3:
        assert auc_of_weights(values, scores) == pytest.approx(above / pairs, rel=1e-6, abs=1e-6)


def test_known_values() -> None:
    assert auc(np.array([0, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0])) == 0.75
    assert auc(np.array([0, 1]), np.array([1.0, 1.0])) == 0.5
    assert oriented(0.2) == 0.8 == oriented(0.8)


def test_strata_take_out_what_they_explain() -> None:
    rng = np.random.default_rng(0)
    strata = rng.integers(0, 2, 4_000)
    labels = (rng.random(4_000) < 0.1 + 0.8 * strata).astype(np.int64)
    scores = strata + rng.normal(size=4_000) * 0.1
    assert auc(labels, scores) > 0.85
    assert auc_within(labels, scores, strata) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("law", ["laplace", "discrete"])
def test_perturbed_labels_estimate_the_auc(law: str) -> None:
    rng = np.random.default_rng(1)
    labels = (rng.random(4_000) < 0.3).astype(np.int64)
    scores = labels + rng.normal(size=4_000)
    perturbed, random = perturbation(law, 1), SecureRandom()
    found = [auc_of_weights(perturbed.unbiased(perturbed.draw(labels, random))[:, 0], scores) for _ in range(60)]
    deviation = np.std(found) / np.sqrt(60)
    assert np.mean(found) == pytest.approx(auc(labels, scores), abs=6 * deviation + 1e-3)
    naive = np.mean([auc((perturbed.draw(labels, random)[:, 0] > 2**15).astype(int), scores) for _ in range(5)])
    assert naive < auc(labels, scores) - 0.05, "taking perturbed labels for labels is biased"


BAD = [
    (np.array([0, 2]), np.zeros(2)),
    (np.array([1, 1]), np.zeros(2)),
    (np.array([0, 1]), np.array([0, np.nan])),
    (np.array([0, 1]), np.zeros(3)),
]


@pytest.mark.parametrize(("labels", "scores"), BAD)
def test_bad_input_is_refused(labels: Array, scores: Array) -> None:
    with pytest.raises(InputError):
        auc(labels, scores)
    with pytest.raises(InputError, match="no pair"):
        auc_of_weights(np.zeros(3), np.arange(3.0))
    with pytest.raises(InputError, match="no stratum"):
        auc_within(np.array([0, 1]), np.zeros(2), np.array([0, 1]))
