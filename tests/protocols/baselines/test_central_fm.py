"""The central functional mechanism: constants against brute force, the algebra after the noise, the limits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import SecureRandom, Stream
from protocols.baselines import central_fm, ols
from protocols.baselines.inputs import UNIT, on_lattice
from smpc.errors import InputError
from tests.protocols.baselines import tables

ONE = Fraction(1)


def image(loss: str, d: int) -> np.ndarray:
    """Each record's d^2 + d coefficients, in units of 1, for all records at the corners and zeros."""
    labels = (-1, 0, 1) if loss == "linear" else (0, 1)
    rows = []
    for *x, y in product(*[(-1, 0, 1)] * d, labels):
        label = np.array([y * UNIT if loss == "linear" else y], dtype=np.float64)
        found = central_fm.objective(np.array([x], dtype=np.float64) * UNIT, label, loss)
        rows.append(np.concatenate([found.quadratic.ravel(), found.slope]) / found.unit)
    return np.array(rows)


@pytest.mark.parametrize("constants", ["original", "author"])
@pytest.mark.parametrize("loss", ["linear", "logistic"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_constants_cover_every_pair_of_records(loss: str, constants: str, d: int) -> None:
    rows = image(loss, d)
    worst = max(float(np.abs(rows - row).sum(axis=1).max()) for row in rows)
    chosen = central_fm.CONSTANTS[constants]
    claimed = (chosen.linear if loss == "linear" else chosen.logistic)(d)
    assert worst <= claimed
    assert 2 * float(np.abs(rows).sum(axis=1).max()) <= claimed  # the papers' own rule
    if constants == "author":
        assert 2 * float(np.abs(rows).sum(axis=1).max()) == claimed


def test_named_constants() -> None:
    original, author = central_fm.CONSTANTS["original"], central_fm.CONSTANTS["author"]
    assert [f(14) for f in (original.linear, original.logistic, author.linear, author.logistic)] == [450, 91, 448, 63]
    assert original.ridge == 4 and author.ridge == 5


def test_objective_is_the_expanded_loss() -> None:
    rng = np.random.default_rng(0)
    x, w = on_lattice(rng.uniform(-1, 1, (20, 3))), rng.normal(size=3)
    y = on_lattice(rng.uniform(-1, 1, 20))
    found = central_fm.objective(x, y, "linear")
    value = (w @ found.quadratic @ w + found.slope @ w) / found.unit + (y @ y) / UNIT**2
    assert value == pytest.approx(np.sum((y / UNIT - x @ w / UNIT) ** 2))
    labels = (y > 0).astype(np.float64)
    found = central_fm.objective(x, labels, "logistic")
    z = x @ w / UNIT
    value = (w @ found.quadratic @ w + found.slope @ w) / found.unit
    assert value == pytest.approx(np.sum(z / 2 + z * z / 8 - labels * z))


@pytest.mark.parametrize("constants", ["original", "author"])
@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_weights_are_recomputed_from_the_same_words(loss: str, constants: str) -> None:
    x, y = tables.of(loss, 3000, 2)
    epsilon, d = Fraction(4), 2
    delta = {"linear": {"original": 18, "author": 16}, "logistic": {"original": 7, "author": 3}}[loss][constants]
    unit = UNIT**2 if loss == "linear" else 8 * UNIT**2
    words = Stream(bytes(32))
    noise = DiscreteLaplace(Fraction(delta * unit) / epsilon)
    drawn = noise.draw(4, words).reshape(2, 2) / unit
    slope_noise = noise.draw(2, words) / unit
    xs, ys = on_lattice(x) / UNIT, y if loss == "logistic" else on_lattice(y) / UNIT
    if loss == "linear":
        quadratic, slope = xs.T @ xs, -2 * xs.T @ ys
    else:
        quadratic, slope = xs.T @ xs / 8, xs.T @ (0.5 - ys)
    if constants == "original":
        added = np.array([[drawn[0, 0], drawn[0, 1]], [drawn[0, 1], drawn[1, 1]]])
    else:
        added = (drawn + drawn.T) / 2
    ridge = {"original": 4, "author": 5}[constants] * math.sqrt(2) * delta / 4
    expected = np.linalg.solve(quadratic + added + ridge * np.eye(d), -(slope + slope_noise) / 2)
    found = central_fm.fit(x, y, loss=loss, epsilon=epsilon, random=Stream(bytes(32)), constants=constants)
    assert found.weights == pytest.approx(expected, abs=1e-10)


def test_trimming_drops_what_does_not_curve_up() -> None:
    assert central_fm.minimise(np.diag([2.0, -1.0, 0.0]), np.array([4.0, 5.0, 6.0])).tolist() == [-1, 0, 0]
    assert central_fm.minimise(-np.eye(2), np.ones(2)).tolist() == [0, 0]


def test_small_epsilon_never_crashes() -> None:
    x, y = tables.linear(5, 8)
    for _ in range(20):
        w = central_fm.fit(x, y, loss="linear", epsilon=Fraction(1, 100), random=SecureRandom()).weights
        assert np.isfinite(w).all()


@pytest.mark.parametrize("constants", ["original", "author"])
def test_large_epsilon_is_the_exact_solution(constants: str) -> None:
    x, y = tables.linear()
    options = {"epsilon": Fraction(10**7), "random": SecureRandom(), "constants": constants}
    found = central_fm.fit(x, y, loss="linear", **options)  # type: ignore[arg-type]
    assert found.weights == pytest.approx(ols.fit(x, y).weights, abs=1e-4)
    x, y = tables.logistic()
    found = central_fm.fit(x, y, loss="logistic", **options)  # type: ignore[arg-type]
    assert found.weights == pytest.approx(4 * ols.fit(x, y - 0.5).weights, abs=1e-3)  # the Taylor objective's minimum


def test_unknown_constants() -> None:
    x, y = tables.linear(20)
    with pytest.raises(InputError, match="one of original, author"):
        central_fm.fit(x, y, loss="linear", epsilon=ONE, random=SecureRandom(), constants="mine")
