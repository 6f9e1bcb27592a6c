"""The solutions without privacy, against closed forms and optimality conditions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechanisms.guarantee import INFINITE
from protocols.baselines import logistic, ols, trivial
from protocols.baselines.inputs import with_ones
from smpc.errors import InputError
from tests.protocols.baselines import tables


def test_ols_finds_an_exact_line() -> None:
    x = np.linspace(-1, 1, 9)[:, None]
    model = ols.fit(with_ones(x), 0.25 * x[:, 0] - 0.5)
    assert model.weights == pytest.approx([0.25, -0.5], abs=1e-14)
    assert model.statement.epsilon == INFINITE


def test_ols_shares_the_weight_of_equal_columns_and_survives_few_rows() -> None:
    x = np.linspace(-1, 1, 9)[:, None]
    assert ols.fit(np.hstack([x, x]), 0.5 * x[:, 0]).weights == pytest.approx([0.25, 0.25])
    assert np.isfinite(ols.fit(np.ones((1, 5)), np.ones(1)).weights).all()


def test_logistic_with_one_column_of_ones_is_the_log_odds() -> None:
    y = np.array([1.0, 1.0, 1.0, 0.0])
    assert logistic.fit(np.ones((4, 1)), y).weights[0] == pytest.approx(math.log(3), abs=1e-7)


@pytest.mark.parametrize("regularisation", [0.0, 1e-4, 1.0])
def test_logistic_is_stationary_within_its_certificate(regularisation: float) -> None:
    x, y = tables.logistic(500, 4)
    found = logistic.minimise(x, y, regularisation)
    residuals = [1 / (1 + math.exp(-math.fsum(row * found.weights))) - label for row, label in zip(x, y, strict=True)]
    exact = [
        math.fsum(residuals * x[:, j]) / len(y) + regularisation * weight for j, weight in enumerate(found.weights)
    ]
    assert math.hypot(*exact) <= found.gradient <= logistic.TOLERANCE


def test_logistic_certificate_bounds_the_distance() -> None:
    x, y = tables.logistic(500, 4)
    found = logistic.minimise(x, y, 0.01)
    # another optimum, by plain gradient descent to the last bit
    w = np.zeros(4)
    for _ in range(20_000):
        w -= x.T @ (1 / (1 + np.exp(-x @ w)) - y) / 500 + 0.01 * w
    assert np.linalg.norm(found.weights - w) <= found.gradient / 0.01 + 1e-12


def test_logistic_of_separable_classes_ends() -> None:
    x = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    model = logistic.fit(x, np.array([0.0, 0.0, 1.0, 1.0]))
    assert model.weights[0] > 10 and np.isfinite(model.weights).all()


def test_logistic_of_collinear_and_constant_columns() -> None:
    x, y = tables.logistic(300, 2)
    model = logistic.fit(np.hstack([x, x[:, :1], np.zeros((300, 1))]), y)
    assert model.weights[0] + model.weights[2] == pytest.approx(logistic.fit(x, y).weights[0], abs=1e-5)


def test_logistic_that_cannot_be_certified_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-18)
    with pytest.raises(InputError, match="gradient norm"):
        logistic.fit(*tables.logistic(50))


def test_sigmoid_has_no_overflow() -> None:
    assert logistic.sigmoid(np.array([-1e6, 0.0, 1e6])).tolist() == [0.0, 0.5, 1.0]


def test_constants() -> None:
    x = np.zeros((4, 2))
    assert trivial.zero(2).score(x).tolist() == [0, 0, 0, 0]
    assert trivial.zero(2).statement.epsilon == 0
    assert trivial.mean(x, np.array([0.0, 1.0, 0.5, 0.1])).score(x) == pytest.approx([0.4] * 4)
    assert trivial.majority(x, np.array([0.0, 1.0, 0.0, 0.0])).score(x).tolist() == [-1] * 4
    assert trivial.majority(x, np.array([0.0, 1.0, 0.0, 1.0])).constant == 1
    with pytest.raises(ValueError, match="d=0"):
        trivial.zero(0)
