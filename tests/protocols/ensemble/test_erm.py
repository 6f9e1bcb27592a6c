"""Minimisers with certificates: against another solver, at known answers, on noisy statistics and edges."""

from __future__ import annotations

import numpy as np
import pytest

from protocols.baselines import logistic
from protocols.ensemble import erm
from smpc.errors import InputError
from tests.protocols.ensemble.support import rows_of

LAMBDA = 1e-4


def shares(width: int, samples: int, seed: int = 3) -> np.ndarray:
    alpha = np.random.default_rng(seed).random((width, samples))
    return alpha if width == 1 else alpha / alpha.sum(axis=0)


def test_two_classes_agree_with_the_logistic_baseline() -> None:
    x, alpha = rows_of(200, 4), shares(1, 200)
    found = erm.minimise(x, erm.statistic(x, alpha), LAMBDA)
    expected = logistic.minimise(x, alpha[0], LAMBDA)
    distance = np.linalg.norm(found.weights[0] - expected.weights)
    assert distance <= (found.gradient + expected.gradient) / LAMBDA
    assert found.gradient <= erm.TOLERANCE


@pytest.mark.parametrize("width", [1, 3, 5])
def test_the_gradient_vanishes_and_is_the_objectives(width: int) -> None:
    x, alpha = rows_of(60, 3), shares(width, 60)

    def objective(w: np.ndarray) -> float:
        z = (w.reshape(width, -1) @ x.T).T
        if width == 1:
            loss = np.logaddexp(0, -z[:, 0]) * alpha[0] + np.logaddexp(0, z[:, 0]) * (1 - alpha[0])
        else:
            loss = -(alpha.T * (z - np.log(np.exp(z).sum(axis=1, keepdims=True)))).sum(axis=1)
        return float(loss.mean() + LAMBDA / 2 * (w @ w))

    found = erm.minimise(x, erm.statistic(x, alpha), LAMBDA).weights.reshape(-1)
    for step in np.random.default_rng(0).normal(size=(20, found.size)):
        assert objective(found + 1e-2 * step) > objective(found)
        slope = (objective(found + 1e-4 * step) - objective(found - 1e-4 * step)) / 2e-4
        assert abs(slope) < 1e-6


def test_softmax_of_two_rows_is_the_logistic_minimiser_with_half_the_penalty() -> None:
    """w_1 = -w_0 = w / 2: |w_0|^2 + |w_1|^2 = |w|^2 / 2."""
    x, alpha = rows_of(80, 2), shares(1, 80)
    both = np.vstack([1 - alpha, alpha])
    soft = erm.minimise(x, erm.statistic(x, both), 2 * LAMBDA).weights
    assert np.allclose(soft[1] - soft[0], erm.minimise(x, erm.statistic(x, alpha), LAMBDA).weights[0], atol=1e-4)


@pytest.mark.parametrize("width", [1, 4])
def test_unanimous_and_separable_votes_have_a_finite_minimiser(width: int) -> None:
    x = rows_of(50, 2)
    labels = (x[:, 0] > 0).astype(int)
    alpha = labels[None].astype(float) if width == 1 else (labels == np.arange(width)[:, None]).astype(float)
    found = erm.minimise(x, erm.statistic(x, alpha), LAMBDA)
    assert (erm.predict(found.weights, x) == labels).mean() > 0.95
    assert np.linalg.norm(found.weights) <= np.sqrt(2 * np.log(max(width, 2)) / LAMBDA)
    same = erm.minimise(x, erm.statistic(x, np.ones((1, 50))), LAMBDA)
    assert (erm.predict(same.weights, x) == 1).all()


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_statistics_beyond_any_votes_have_a_finite_model(width: int, size: float) -> None:
    x = rows_of(40, 3)
    s = size * np.random.default_rng(1).normal(size=(width, 4))
    found = erm.minimise(x, s, LAMBDA, certified=False)
    assert np.isfinite(found.weights).all()
    gradient = erm.probabilities(found.weights @ x.T) @ x / 40 - s + LAMBDA * found.weights
    assert np.linalg.norm(gradient) <= 1e-8 * max(1.0, size)


def test_one_sample_one_column() -> None:
    found = erm.minimise(np.array([[1.0]]), np.array([[1.0]]), LAMBDA).weights
    assert abs(1 / (1 + np.exp(found[0, 0])) - LAMBDA * found[0, 0]) < 1e-8


def test_what_float64_cannot_certify_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erm, "TOLERANCE", 1e-18)
    with pytest.raises(InputError, match="gradient norm"):
        erm.minimise(rows_of(30, 2), np.array([[0.1, 0.2, 0.3]]), LAMBDA)


def test_the_rounding_bound_holds_against_exact_arithmetic() -> None:
    from flint import arb, ctx

    x, alpha = rows_of(30, 2), shares(1, 30)
    s = erm.statistic(x, alpha)
    found = erm.minimise(x, s, LAMBDA)
    with ctx.workprec(300):
        total = arb(0)
        for j in range(3):
            g = arb(LAMBDA) * arb(found.weights[0, j])
            for i in range(30):
                z = sum((arb(found.weights[0, k]) * arb(x[i, k]) for k in range(3)), arb(0))
                g += (1 / (1 + (-z).exp()) - arb(alpha[0, i])) * arb(x[i, j]) / 30
            total += g * g
        assert total.sqrt() <= arb(found.gradient)


def test_ties_go_to_the_first_class() -> None:
    assert erm.predict(np.zeros((3, 2)), np.ones((2, 2))).tolist() == [0, 0]
    assert erm.predict(np.zeros((1, 2)), np.ones((2, 2))).tolist() == [0, 0]
