"""Noisy gradients: lengths exactly bounded, sampling, the noise's law, the limits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.laws import discrete_laplace_law, law_p_value
from mechanisms.randomness import SecureRandom
from protocols.baselines import dpsgd, logistic, ols, poisson_accounting
from protocols.baselines.inputs import UNIT
from smpc.errors import InputError
from tests.protocols.baselines import tables

ONE, TINY = Fraction(1), Fraction(1, 10**5)


@given(
    st.lists(st.integers(-UNIT, UNIT), min_size=1, max_size=5),
    st.floats(-1e6, 1e6) | st.sampled_from([math.inf, -math.inf]),
    st.integers(UNIT, 8 * UNIT**2),
    st.sampled_from([1, 2]),
)
def test_no_gradient_is_longer_than_the_bound(row: list[int], residual: float, bound: int, order: int) -> None:
    x = np.array([row], dtype=np.float64)
    lengths = np.linalg.norm(x, ord=order, axis=1)
    gradient = [int(v) for v in dpsgd.clipped_sum(x, np.array([residual]), lengths, bound)]
    if order == 1:
        assert sum(map(abs, gradient)) <= bound
    else:
        assert sum(v * v for v in gradient) <= bound * bound


def test_clipping_keeps_short_gradients_and_directions() -> None:
    x = np.array([[3.0, 4.0]]) * 1000
    short = dpsgd.clipped_sum(x, np.array([0.25]), np.array([5000.0]), UNIT**2)
    assert short.tolist() == [3000 * UNIT / 4, 4000 * UNIT / 4]
    long = dpsgd.clipped_sum(x, np.array([-1e9]), np.array([5000.0]), UNIT**2)
    assert long / np.linalg.norm(long) == pytest.approx([-0.6, -0.8])
    assert np.linalg.norm(long) == pytest.approx(UNIT**2, rel=1e-4)


def test_each_variant_clips_in_the_norm_of_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    for mechanism in (DiscreteGaussian, DiscreteLaplace):
        monkeypatch.setattr(mechanism, "draw", lambda self, count, random: np.zeros(count, dtype=np.int64))
    options = {"loss": "linear", "epsilon": ONE, "random": SecureRandom(), "steps": 1, "learning_rate": 1.0}
    x, y = np.ones((3, 4)), np.ones(3)  # gradients of L2 norm 2 and L1 norm 4, against a clip of 1
    assert dpsgd.fit(x, y, delta=TINY, sampling=ONE, **options).weights == pytest.approx([1 / 2] * 4, rel=1e-3)  # type: ignore[arg-type]
    assert dpsgd.fit_laplace(x, y, **options).weights == pytest.approx([1 / 4] * 4, rel=1e-3)  # type: ignore[arg-type]


def test_laplace_noise_has_its_law() -> None:
    """No data, one step: the weights are the noise of scale 2 clip T / epsilon, in units of learning rate / n."""
    d, clip, epsilon = 20_000, Fraction(1, 2), Fraction(3)
    model = dpsgd.fit_laplace(
        np.zeros((1, d)), np.zeros(1), loss="linear", epsilon=epsilon, random=SecureRandom(), steps=1, clip=clip,
        learning_rate=1.0,
    )  # fmt: skip
    noise = np.rint(-model.weights * UNIT**2).astype(np.int64)
    scale = 2 * clip * UNIT**2 / epsilon
    assert law_p_value(noise, discrete_laplace_law(scale)) > 1e-9
    assert law_p_value(noise, discrete_laplace_law(scale * Fraction(4, 5))) < 1e-9
    assert f"{float(scale):.6g}" in model.statement.mechanism


def test_gaussian_noise_has_its_law() -> None:
    d, share, clip = 20_000, Fraction(1, 4), Fraction(2)
    variance = poisson_accounting.variance(ONE, TINY, sampling=share, steps=1, dimension=d, bound=2 * UNIT**2)
    model = dpsgd.fit(
        np.zeros((1, d)), np.zeros(1), loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), steps=1,
        sampling=share, clip=clip, learning_rate=1.0,
    )  # fmt: skip
    noise = -model.weights * UNIT**2 * float(share)
    assert stats.kstest(noise / math.sqrt(variance), "norm").pvalue > 1e-9
    assert stats.kstest(noise / math.sqrt(variance) * 1.25, "norm").pvalue < 1e-9
    assert np.array_equal(noise, np.rint(noise))


def test_composition_scales_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Fraction] = []

    def spy(self: DiscreteLaplace, count: int, random: object) -> np.ndarray:
        seen.append(self.scale)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(DiscreteLaplace, "draw", spy)
    x, y = tables.linear(20)
    dpsgd.fit_laplace(x, y, loss="linear", epsilon=Fraction(1, 2), random=SecureRandom(), steps=30)
    assert seen == [2 * UNIT**2 * 30 * 2] * 30


def test_a_record_joins_a_step_with_the_sampling_probability(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    exact = dpsgd.clipped_sum

    def spy(x: np.ndarray, residual: np.ndarray, *rest: object) -> np.ndarray:
        sizes.append(int(np.count_nonzero(residual)))
        return exact(x, residual, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(dpsgd, "clipped_sum", spy)
    x, y = tables.linear(1000, 1)
    dpsgd.fit(x, y, loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), steps=200, sampling=Fraction(3, 10))
    assert stats.binomtest(sum(sizes), 200_000, 0.3).pvalue > 1e-9
    assert np.var(sizes) == pytest.approx(210, rel=0.7)  # 1000 x 0.3 x 0.7; of a fixed size it would be 0


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_large_epsilon_finds_the_exact_solution(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteGaussian, "draw", lambda self, count, random: np.zeros(count, dtype=np.int64))
    x, y = tables.of(loss)
    options = {"loss": loss, "epsilon": Fraction(40), "random": SecureRandom(), "clip": Fraction(4), "steps": 500}
    exact = (ols if loss == "linear" else logistic).fit(x, y).weights
    noiseless = dpsgd.fit(x, y, delta=TINY, sampling=ONE, **options)  # type: ignore[arg-type]
    assert noiseless.weights == pytest.approx(exact, abs=2e-3)
    options |= {"epsilon": Fraction(10**6)}
    assert dpsgd.fit_laplace(x, y, **options).weights == pytest.approx(exact, abs=5e-3)  # type: ignore[arg-type]


def test_small_epsilon_is_near_the_exact_solution() -> None:
    x, y = tables.linear(20_000)
    found = dpsgd.fit(x, y, loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), steps=100)
    assert found.weights == pytest.approx(ols.fit(x, y).weights, abs=0.05)


def test_default_learning_rates_do_not_diverge() -> None:
    ones = np.ones((50, 30))
    for loss in ("linear", "logistic"):
        model = dpsgd.fit_laplace(
            ones, np.ones(50), loss=loss, epsilon=Fraction(10**6), random=SecureRandom(), steps=50
        )
        assert np.abs(model.weights).max() < 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps=0"),
        ({"steps": True}, "steps=True"),
        ({"sampling": Fraction(3, 2)}, "sampling=3/2"),
        ({"sampling": Fraction(0)}, "sampling"),
        ({"clip": Fraction(0)}, "clip"),
        ({"clip": Fraction(1, 10**9)}, "clip"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
    ],
)
def test_options_out_of_range(options: dict[str, object], message: str) -> None:
    x, y = tables.linear(20)
    with pytest.raises((ValueError, TypeError), match=message):
        dpsgd.fit(x, y, loss="linear", epsilon=ONE, delta=TINY, random=SecureRandom(), **options)  # type: ignore[arg-type]


def test_a_clip_beyond_exact_sums_is_refused() -> None:
    x, y = tables.linear(20)
    with pytest.raises(InputError, match="sums of gradients"):
        dpsgd.fit_laplace(x, y, loss="linear", epsilon=ONE, random=SecureRandom(), clip=Fraction(2**30))
