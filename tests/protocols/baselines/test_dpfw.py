"""Private Frank-Wolfe: the score's sensitivity, the choice's law, the path and its limits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import SecureRandom, Stream
from protocols.baselines import dpfw, ols, pure_composition
from protocols.baselines.inputs import UNIT
from smpc.errors import InputError
from tests.protocols.baselines import tables

ONE, TINY = Fraction(1), Fraction(1, 10**5)


@pytest.mark.parametrize(("loss", "radius"), [("linear", Fraction(1)), ("linear", Fraction(1, 3)), ("logistic", ONE)])
def test_noise_covers_every_pair_of_records(loss: str, radius: Fraction) -> None:
    largest = math.floor(dpfw.lipschitz(loss, radius) * UNIT)
    records = [
        dpfw.scores(np.array([x], dtype=np.float64), np.array([residual], dtype=np.float64))
        for x in product((-UNIT, 0, UNIT), repeat=2)
        for residual in (-largest, 0, largest)
    ]
    worst = max(int(np.abs(a - b).max()) for a in records for b in records)
    assert dpfw.mechanism(loss, radius, ONE).scale == 2 * worst
    assert dpfw.mechanism(loss, radius, Fraction(1, 7)).scale == 14 * worst


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_lipschitz_bounds_every_gradient_in_the_ball(loss: str) -> None:
    rng = np.random.default_rng(0)
    for radius in (Fraction(1, 2), ONE, Fraction(5)):
        bound = float(dpfw.lipschitz(loss, radius))
        for _ in range(300):
            w = rng.dirichlet(np.ones(3)) * float(radius) * rng.choice([-1, 1], 3)
            margin = rng.choice([-1, 1], 3) @ w
            slopes = (
                [margin - y for y in (-1, 1)] if loss == "linear" else [1 / (1 + np.exp(-margin)) - y for y in (0, 1)]
            )
            assert max(map(abs, slopes)) <= bound + 1e-12


def test_residuals_are_clipped_before_they_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the ball only a rounding could exceed the bound; with a bound made too small, every residual does."""
    seen: list[float] = []
    exact = dpfw.scores

    def spy(x: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        seen.append(float(np.abs(residuals).max()))
        return exact(x, residuals)

    monkeypatch.setattr(dpfw, "lipschitz", lambda loss, radius: Fraction(1, 16))
    monkeypatch.setattr(dpfw, "scores", spy)
    dpfw.fit(np.ones((5, 2)), np.ones(5), loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), steps=3)
    assert max(seen) <= UNIT // 16


def test_least_of_noisy_scores_keeps_its_epsilon() -> None:
    """Two vertices, scores s and -s in integers: the probability of the first, by summing the noise's law."""
    change, epsilon = 3, 0.8
    q = math.exp(-epsilon / (2 * change))
    support = np.arange(-400, 401)
    mass = (1 - q) / (1 + q) * q ** np.abs(support)
    below = np.cumsum(mass)

    def first(score: int) -> float:  # score + n1 <= -score + n2, ties to the first
        limit = np.clip(support - 2 * score + 400, -1, 800)
        return float(np.sum(mass * np.where(limit >= 0, below[limit], 0.0)))

    for score in range(-9, 10):
        for moved in range(score - change, score + change + 1):
            p, other = first(score), first(moved)
            assert p <= math.exp(epsilon) * other + 1e-12
            assert 1 - p <= math.exp(epsilon) * (1 - other) + 1e-12


def test_a_step_without_data_chooses_uniformly() -> None:
    x, y, words = np.zeros((1, 2)), np.zeros(1), SecureRandom()
    counts = np.zeros(4)
    for _ in range(2000):
        w = dpfw.fit(x, y, loss="linear", epsilon=ONE, delta=TINY, random=words, steps=1).weights
        counts[2 * int(np.argmax(np.abs(w))) + int(w.sum() > 0)] += 1
    assert np.sum((counts - 500) ** 2 / 500) < 50  # chi-square of 3 degrees beyond 50: 8e-11


def test_first_step_moves_two_thirds_to_a_vertex() -> None:
    x, y = np.ones((100, 2)), np.zeros(100)
    w = dpfw.fit(
        x, y, loss="linear", epsilon=ONE, delta=TINY, random=Stream(bytes(32)), steps=1, radius=ONE * 3
    ).weights
    assert sorted(np.abs(w)) == pytest.approx([0, 2])


def test_weights_stay_in_the_ball() -> None:
    x, y = tables.linear(50, 4)
    for radius in (Fraction(1, 2), Fraction(4)):
        w = dpfw.fit(
            x, y, loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), radius=radius, steps=30
        ).weights
        assert np.abs(w).sum() <= float(radius) * (1 + 1e-12)


def test_without_noise_it_is_frank_wolfe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "draw", lambda self, count, random: np.zeros(count, dtype=np.int64))
    x, y = tables.linear(400, 3)
    w = np.zeros(3)
    for t in range(1, 41):
        gradient = x.T @ (x @ w - y)
        j = int(np.argmax(np.abs(gradient)))
        w = w * (1 - 2 / (t + 2))
        w[j] -= 2 / (t + 2) * np.sign(gradient[j])
    found = dpfw.fit(x, y, loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), steps=40).weights
    assert found == pytest.approx(w, abs=1e-9)


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_large_epsilon_approaches_the_best_of_the_ball(loss: str) -> None:
    x, y = tables.of(loss)
    fitted = dpfw.fit(
        x, y, loss=loss, epsilon=Fraction(10**5), delta=TINY, random=SecureRandom(), radius=Fraction(4), steps=800
    )
    if loss == "linear":
        assert fitted.weights == pytest.approx(ols.fit(x, y).weights, abs=0.02)
    else:
        assert np.mean((fitted.score(x) > 0) != (y == 1)) < 0.3


def test_noise_is_that_of_the_exact_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(self: DiscreteLaplace, count: int, random: object) -> np.ndarray:
        seen.append((self.scale, count))
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(DiscreteLaplace, "draw", spy)
    x, y = tables.linear(30, 3)
    dpfw.fit(x, y, loss="linear", epsilon=Fraction(1, 2), delta=TINY, random=SecureRandom(), steps=7)
    step = pure_composition.step_epsilon(Fraction(1, 2), TINY, 7)
    assert seen == [(2 * 4 * UNIT**2 / step, 6)] * 7


def test_default_steps_and_bad_options() -> None:
    assert dpfw.default_steps(1000, ONE) == 100
    assert dpfw.default_steps(1, Fraction(1, 1000)) == 1
    x, y = tables.linear(30)
    for options, message in (
        ({"steps": 0}, "steps=0"),
        ({"radius": Fraction(0)}, "radius"),
        ({"radius": float("nan")}, "radius"),
    ):
        with pytest.raises(ValueError, match=message):
            dpfw.fit(x, y, loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fewer steps"):
        dpfw.fit(x, y, loss="linear", epsilon=Fraction(1, 10**9), delta=TINY, random=SecureRandom(), steps=10)
