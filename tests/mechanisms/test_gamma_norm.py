"""Rounded gamma-norm vectors: radius law, direction, tails, and one dimension against its closed form."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.gamma_norm import GammaNorm
from mechanisms.laws import Law, law_p_value
from mechanisms.randomness import SecureRandom


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(5, 3), Fraction(1000)], ids=str)
def test_one_dimension_is_rounded_laplace(scale: Fraction) -> None:
    noise, random, rate = GammaNorm(scale), SecureRandom(), float(1 / scale)
    values = np.concatenate([noise.draw(1, random) for _ in range(8_000)])

    def cdf(x: int) -> float:
        edge = (x + 0.5) * rate
        return math.exp(edge) / 2 if x < 0 else 1 - math.exp(-edge) / 2

    even = math.fsum(cdf(x) - cdf(x - 1) for x in range(-2 * math.ceil(40 * scale), 2 * math.ceil(40 * scale) + 1, 2))
    assert law_p_value(values, Law(cdf, even, cdf(0) - cdf(-1))) > 1e-9


@pytest.mark.parametrize("dimension", [2, 3, 10])
def test_radius_and_direction(dimension: int) -> None:
    scale, random = 2**40, SecureRandom()
    vectors = np.stack([GammaNorm(Fraction(scale)).draw(dimension, random) for _ in range(3_000)]) / scale
    radius = np.linalg.norm(vectors, axis=1)
    assert stats.kstest(radius, stats.gamma(dimension).cdf).pvalue > 1e-9
    cosine = vectors[:, 0] / radius
    assert stats.kstest((cosine + 1) / 2, stats.beta((dimension - 1) / 2, (dimension - 1) / 2).cdf).pvalue > 1e-9
    assert abs(stats.spearmanr(radius, cosine).statistic) < 0.15
    assert stats.kstest(vectors[:, -1], vectors[:, 0]).pvalue > 1e-9
    stated = GammaNorm(Fraction(scale)).standard_deviation(dimension) / scale
    assert vectors.std() == pytest.approx(stated, rel=0.1)


def test_largest_scale_is_exact_to_the_last_digit() -> None:
    values = np.concatenate([GammaNorm(Fraction(2**58)).draw(50, SecureRandom()) for _ in range(40)])
    assert stats.binomtest(int((values % 2 == 0).sum()), 2000).pvalue > 1e-9
    assert np.abs(values.astype(float)).max() > 2.0**58


class _Words:
    """Gives the queued words first, then secure ones, and counts."""

    def __init__(self, *words: int) -> None:
        self.queue, self.random, self.drawn = list(words), SecureRandom(), 0

    def words(self, count: int) -> np.ndarray:
        self.drawn += count
        out = self.random.words(count)
        for i in range(count):
            if self.queue:
                out[i] = self.queue.pop(0)
        return out


def test_more_digits_are_drawn_while_the_rounding_is_open() -> None:
    plain, open_ended = _Words(), _Words(*[0] * 6)
    GammaNorm(Fraction(10)).draw(2, plain)
    assert plain.drawn == 3 * 4
    GammaNorm(Fraction(10)).draw(2, open_ended)  # uniforms that start with 64 and 128 zeros are fine
    zero = _Words(*[0] * 12)  # all digits so far zero: the logarithm is unbounded
    assert np.isfinite(GammaNorm(Fraction(10)).draw(2, zero)).all()
    assert zero.drawn > 12


@pytest.mark.parametrize("dimension", [1, 5, 100])
def test_tail(dimension: int) -> None:
    bound = GammaNorm(Fraction(1000)).tail(Fraction(1, 2**40), dimension)
    assert stats.gamma(dimension).sf((bound - 0.5) / 1000) <= 2.0**-40
    assert stats.gamma(dimension).sf((bound / 2 - 0.5) / 1000) > 2.0**-40


def test_edges() -> None:
    assert GammaNorm(Fraction(3)).draw(0, SecureRandom()).shape == (0,)
    with pytest.raises(TypeError, match="scale=3"):
        GammaNorm(3)  # type: ignore[arg-type]  # the wrong type is the test
    with pytest.raises(ValueError, match="count=-1"):
        GammaNorm(Fraction(3)).draw(-1, SecureRandom())
