"""The law, the exact fallback, the tail and the limits of the discrete Laplace sampler."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms import bernoulli
from mechanisms.discrete_laplace import CHUNK, DiscreteLaplace
from mechanisms.enclosure import ball
from mechanisms.laws import discrete_laplace_law, law_p_value
from mechanisms.randomness import SecureRandom, Stream

SCALES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(3, 2),
    Fraction(2),
    Fraction(10, 3),
    Fraction(1000),
    Fraction(2**40, 7),
    Fraction(2**58),
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_law(scale: Fraction) -> None:
    values = DiscreteLaplace(scale).draw(50_000, SecureRandom())
    assert values.shape == (50_000,)
    assert values.dtype == np.int64
    assert law_p_value(values, discrete_laplace_law(scale)) > 1e-9


def test_law_formula_is_the_textbook_mass_function() -> None:
    law = discrete_laplace_law(Fraction(5, 2))
    mass = [(math.exp(0.4) - 1) / (math.exp(0.4) + 1) * math.exp(-abs(x) * 0.4) for x in range(-200, 201)]
    assert sum(mass) == pytest.approx(1, abs=1e-14)
    assert law.zero == pytest.approx(mass[200], rel=1e-14)
    assert law.even == pytest.approx(sum(mass[::2]), rel=1e-13)
    for x in (-7, -1, 0, 1, 12):
        assert law.cdf(x) == pytest.approx(sum(mass[: x + 201]), rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 3), Fraction(2**40)], ids=str)
def test_exact_fallback_has_the_same_law(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = 0
    below = bernoulli.Uniform.below

    def counted(uniform: bernoulli.Uniform, probability: bernoulli.Ball) -> bool:
        nonlocal resolved
        resolved += 1
        return below(uniform, probability)

    monkeypatch.setattr(bernoulli.Uniform, "below", counted)
    monkeypatch.setattr(bernoulli, "MARGIN", 1 / 16)
    values = DiscreteLaplace(scale).draw(20_000, SecureRandom())
    assert resolved > 2_000
    assert law_p_value(values, discrete_laplace_law(scale)) > 1e-9


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(2**58)], ids=str)
def test_fallback_agrees_with_the_float_path_draw_by_draw(scale: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """While no uniform number needs a second word, the two paths answer alike: the margin only moves the work."""
    fast = DiscreteLaplace(scale).draw(3_000, Stream(bytes(32)))
    monkeypatch.setattr(bernoulli, "MARGIN", 1 / 64)
    assert np.array_equal(DiscreteLaplace(scale).draw(3_000, Stream(bytes(32))), fast)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(2**58) - 1, Fraction(10**18, 7)], ids=str)
def test_float_estimates_keep_within_half_a_margin(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    width = 1 << max(0, math.floor(scale).bit_length() - 1)
    generator = np.random.default_rng(1)
    points = {0, width - 1, *generator.integers(0, width, 300).tolist(), *(width * k for k in range(60))}
    with ctx.workprec(200):
        for point in points:
            estimate = np.exp(-(np.array([point], np.uint64) / float(scale)))[0]
            assert abs(arb(float(estimate)) - noise._decay(point)) < bernoulli.MARGIN / 2**6


class _Words:
    """A source that returns the given words in turn, then zeros."""

    def __init__(self, *words: int) -> None:
        self.queue = list(words)

    def words(self, count: int) -> np.ndarray:
        return np.array([self.queue.pop(0) if self.queue else 0 for _ in range(count)], np.uint64)


def test_uniform_takes_further_words_until_it_can_tell() -> None:
    third = Fraction(1, 3)
    word = 2**64 // 3  # the first 64 digits of 1/3 itself
    assert bernoulli.Uniform(word, _Words(word - 1)).below(lambda: ball(third))
    assert not bernoulli.Uniform(word, _Words(word + 1)).below(lambda: ball(third))
    uniform = bernoulli.Uniform(word, _Words(word, word, word + 1))
    assert not uniform.below(lambda: ball(third))
    assert uniform.bits == 256


@given(st.fractions(Fraction(1, 50), 10**6), st.fractions(Fraction(1, 10**20), Fraction(9, 10)))
@settings(max_examples=60)
def test_tail_is_the_smallest_bound(scale: Fraction, probability: Fraction) -> None:
    bound = DiscreteLaplace(scale).tail(probability)

    def beyond(m: int) -> arb:
        decay = (-ball(1 / scale)).exp()
        return 2 * (-ball((m + 1) / scale)).exp() / (1 + decay)

    with ctx.workprec(300):
        assert beyond(bound) <= ball(probability)
        if bound:
            assert beyond(bound - 1) > ball(probability)


def test_tail_at_the_largest_scale_fits_a_budget() -> None:
    assert DiscreteLaplace(Fraction(2**56)).tail(Fraction(1, 2**40)) < 2**61
    assert DiscreteLaplace(Fraction(1)).tail(Fraction(3)) == 0


@pytest.mark.parametrize("scale", [Fraction(1, 1000), Fraction(1), Fraction(1000), Fraction(2**58)], ids=str)
def test_standard_deviation(scale: Fraction) -> None:
    with ctx.workprec(400):
        decay = (-ball(1 / scale)).exp()
        expected = float((2 * decay).sqrt() / (1 - decay))
    assert DiscreteLaplace(scale).standard_deviation == pytest.approx(expected, rel=1e-12)


def test_wraps_modulo_two_to_the_64() -> None:
    """At scale 2^62 a magnitude beyond 2^63 is common (13 %) and comes out in two's complement."""
    parts = DiscreteLaplace(Fraction(2**62)).draw_parts(CHUNK, SecureRandom())
    exact = [
        (-1 if negative else 1) * (int(low) + (int(high) << parts.shift))
        for negative, low, high in zip(parts.negative, parts.low, parts.high, strict=True)
    ]
    assert max(exact) >= 2**63
    assert [(x + 2**63) % 2**64 - 2**63 for x in exact] == parts.values().tolist()


def test_extreme_scales() -> None:
    assert not DiscreteLaplace(Fraction(1, 2**62)).draw(1000, SecureRandom()).any()
    assert DiscreteLaplace(Fraction(1, 2**62)).standard_deviation == 0
    assert DiscreteLaplace(Fraction(1)).draw(0, SecureRandom()).shape == (0,)


@pytest.mark.parametrize(
    ("scale", "error"),
    [
        (1.5, TypeError),
        (float("nan"), TypeError),
        (True, TypeError),
        (1, TypeError),
        (Fraction(0), ValueError),
        (Fraction(-1), ValueError),
        (Fraction(2**62 + 1), ValueError),
        (Fraction(1, 2**63), ValueError),
        (Fraction(10**400), ValueError),
    ],
)
def test_refuses_a_bad_scale(scale: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^scale=.*: .+$"):
        DiscreteLaplace(scale)  # type: ignore[arg-type]  # the wrong type is the test


@pytest.mark.parametrize("count", [-1, 1.0, True])
def test_refuses_a_bad_count(count: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^count="):
        DiscreteLaplace(Fraction(1)).draw(count, SecureRandom())  # type: ignore[arg-type]  # the wrong type is the test


def test_bernoulli_shares_and_limits() -> None:
    random = SecureRandom()
    assert bernoulli.bernoulli(Fraction(1), 1000, random).all()
    assert not bernoulli.bernoulli(Fraction(0), 1000, random).any()
    assert bernoulli.bernoulli_exp(Fraction(0), 1000, random).all()
    assert not bernoulli.bernoulli_exp(Fraction(10**30), 1000, random).any()
    n = 100_000
    for drawn, p in [
        (bernoulli.bernoulli(Fraction(1, 3), n, random), 1 / 3),
        (bernoulli.bernoulli_exp(Fraction(7, 10), n, random), math.exp(-0.7)),
    ]:
        assert abs(drawn.sum() - n * p) < 6.2 * math.sqrt(n * p * (1 - p))
    with pytest.raises(ValueError, match="probability=3/2"):
        bernoulli.bernoulli(Fraction(3, 2), 1, random)
    with pytest.raises(ValueError, match="exponent=-1"):
        bernoulli.bernoulli_exp(Fraction(-1), 1, random)
