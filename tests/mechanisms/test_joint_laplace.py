"""Joint noise: thresholds, the finite law, its distance and delta by brute force, draws, wrong variants caught."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms import joint_laplace
from mechanisms.joint_laplace import JointLaplace, pack, unpack
from mechanisms.laws import Law, discrete_laplace_law, law_p_value, table_law
from mechanisms.randomness import SecureRandom, Stream

ALPHA = 1e-9
REACH = Fraction(1, 2**56)
SCALES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(7, 3),
    Fraction(16),
    Fraction(65536),
    Fraction(2**40, 7),
    Fraction(2**58),
]


def ideal(scale: Fraction, digit: int) -> Fraction:
    """p_j to 10^-150, by another library than the code's."""
    with localcontext() as context:
        context.prec = 160
        exponent = Decimal(scale.denominator << digit) / Decimal(scale.numerator)
        return Fraction(1 / (1 + exponent.exp())) if exponent < 1000 else Fraction(0)


def exact_mass(scale: Fraction, value: int) -> Fraction:
    """The discrete Laplace probability of a value, to about 10^-150."""
    with localcontext() as context:
        context.prec = 160
        q = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        return Fraction((1 - q) / (1 + q) * q ** abs(value))


def within_one_unit(scale: Fraction, digit: int, threshold: int) -> bool:
    return 0 <= ideal(scale, digit) - Fraction(threshold, 2**64) < Fraction(1, 2**64)


@pytest.mark.parametrize("scale", [Fraction(1, 2**62), *SCALES, Fraction(2**62)], ids=str)
def test_thresholds_are_the_floors(scale: Fraction) -> None:
    thresholds = JointLaplace(scale, 64).thresholds
    assert len(thresholds) == 64
    for digit, threshold in enumerate(thresholds):
        assert within_one_unit(scale, digit, threshold)
        assert not within_one_unit(scale, digit, threshold + 1)  # a threshold off by one does not pass
        assert not within_one_unit(scale, digit, threshold - 1)


@given(st.fractions(Fraction(1, 50), 10**9), st.integers(0, 40))
@settings(max_examples=50)
def test_thresholds_of_any_scale(scale: Fraction, digit: int) -> None:
    assert within_one_unit(scale, digit, JointLaplace(scale, 64).thresholds[digit])


def test_independent_digits_make_a_geometric() -> None:
    """The fact that all of this rests on, with ideal digits."""
    for scale in (Fraction(1), Fraction(5, 2)):
        probabilities = [ideal(scale, digit) for digit in range(12)]
        q = float(np.exp(-1 / float(scale)))
        for value in (0, 1, 2, 7, 20):
            mass = math.prod(p if value >> j & 1 else 1 - p for j, p in enumerate(probabilities))
            assert float(mass) == pytest.approx((1 - q) * q**value, rel=1e-12)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3)], ids=str)
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_distribution_by_enumeration(scale: Fraction, bits: int) -> None:
    law = JointLaplace(scale, bits)
    masses: dict[int, Fraction] = {}
    ones = [Fraction(c, 2**64) for c in law.thresholds]
    for digits in product((0, 1), repeat=2 * bits):
        mass = math.prod(p if b else 1 - p for b, p in zip(digits, ones * 2, strict=True))
        value = sum(b << j for j, b in enumerate(digits[:bits])) - sum(b << j for j, b in enumerate(digits[bits:]))
        masses[value] = masses.get(value, Fraction(0)) + mass
    assert law.distribution() == masses
    assert sum(masses.values()) == 1


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(6)], ids=str)
@pytest.mark.parametrize("bits", [1, 3, 5, 8])
def test_total_variation_bound(scale: Fraction, bits: int) -> None:
    """True distance <= bound; where digits are missing the bound is no more than 2 (1 + q) times the distance."""
    law = JointLaplace(scale, bits)
    table = law.distribution()
    inside = {value: exact_mass(scale, value) for value in table}
    excess = sum((max(Fraction(0), table[value] - inside[value]) for value in table), Fraction(0))
    assert 0 < excess <= law.total_variation
    if law.total_variation > Fraction(1, 2**50):
        assert law.total_variation < 4 * excess
    assert law.total_variation <= 2 * (Fraction(math.exp(-(2**bits) / float(scale))) + bits * Fraction(1, 2**64)) * (
        1 + Fraction(1, 10**9)
    )


def divergence(first: dict[int, Fraction], second: dict[int, Fraction], epsilon: Fraction) -> float:
    """The least delta for this epsilon: sum of max(0, P - e^epsilon Q)."""
    with localcontext() as context:
        context.prec = 100
        factor = Fraction((Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp())
    return float(sum(max(Fraction(0), p - factor * second.get(x, Fraction(0))) for x, p in first.items()))


def shifted(table: dict[int, Fraction], by: int) -> dict[int, Fraction]:
    return {value + by: mass for value, mass in table.items()}


@pytest.mark.parametrize(("sensitivity", "epsilon", "bits"), [(1, 1, 3), (2, 1, 4), (1, 3, 2), (3, 2, 4), (1, 1, 6)])
def test_delta_covers_every_shift(sensitivity: int, epsilon: int, bits: int) -> None:
    law = JointLaplace(Fraction(sensitivity, epsilon), bits)
    table = law.distribution()
    worst = max(divergence(table, shifted(table, by), Fraction(epsilon)) for by in range(-sensitivity, sensitivity + 1))
    assert worst <= float(law.delta(1, epsilon))
    if bits < 6:
        assert worst > 0  # pure epsilon is lost: delta is not decoration


def test_delta_covers_two_coordinates() -> None:
    """A change of 2 in L1, spent on two coordinates, with few digits."""
    law = JointLaplace(Fraction(2), 3)
    table = law.distribution()

    def pair(a: int, b: int) -> dict[tuple[int, int], Fraction]:
        return {(x + a, y + b): p * r for x, p in table.items() for y, r in table.items()}

    for a, b in ((1, 1), (1, -1), (2, 0)):
        worst = divergence(pair(0, 0), pair(a, b), Fraction(1))  # type: ignore[arg-type]  # keys are pairs here
        assert 0 < worst <= float(law.delta(2, 1))


def test_delta_is_the_formula_rounded_up() -> None:
    law = JointLaplace.within(Fraction(100), REACH)
    for count, epsilon in ((1, Fraction(1)), (230, Fraction(1, 10)), (7, Fraction(4))):
        formula = count * (1 + math.exp(epsilon)) * float(law.total_variation)
        assert formula <= float(law.delta(count, epsilon)) <= formula * 1.0001
    assert law.delta(1, 50) == 1
    assert law.delta(1, 10**30) == 1
    assert law.delta(10**6, 1) < Fraction(1, 2**30)
    assert 0 < JointLaplace(Fraction(1, 2**62), 1).delta(1, 1) < Fraction(1, 2**400)


@pytest.mark.parametrize("scale", [Fraction(1, 2**62), *SCALES, Fraction(2**62)], ids=str)
def test_fewest_bits(scale: Fraction) -> None:
    law = JointLaplace.within(scale, REACH)
    assert law.total_variation <= REACH
    if law.bits > 1:
        assert JointLaplace(scale, law.bits - 1).total_variation > REACH
    assert law.delta(1000, 1) < Fraction(1, 2**40)
    assert JointLaplace.within(scale, Fraction(1, 2**10)).bits <= law.bits


def test_a_target_out_of_reach_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^total_variation=.* is below .*64-bit thresholds"):
        JointLaplace.within(Fraction(10), Fraction(1, 2**63))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3)], ids=str)
@pytest.mark.parametrize("bits", [2, 6])
def test_standard_deviation_and_tail_from_the_table(scale: Fraction, bits: int) -> None:
    law = JointLaplace(scale, bits)
    table = law.distribution()
    variance = sum(value * value * mass for value, mass in table.items())
    assert law.standard_deviation == pytest.approx(math.sqrt(variance), rel=1e-12)
    for probability in (Fraction(1, 3), Fraction(1, 1000), Fraction(1, 10**9)):
        limit = law.tail(probability)
        assert sum(mass for value, mass in table.items() if abs(value) > limit) <= probability


# draws


def finite_law(law: JointLaplace) -> Law:
    table = law.distribution()
    return table_law(np.array(list(table)), np.array([float(mass) for mass in table.values()]))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_law_of_draws(scale: Fraction) -> None:
    values = JointLaplace.within(scale, REACH).draw(40_000, SecureRandom())
    assert values.shape == (40_000,) and values.dtype == np.int64
    assert law_p_value(values, discrete_laplace_law(scale)) > ALPHA


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_law_with_too_few_digits_is_the_tables(bits: int) -> None:
    """The finite law itself, where it is far from discrete Laplace."""
    law = JointLaplace(Fraction(16), bits)
    values = law.draw(40_000, SecureRandom())
    assert law_p_value(values, finite_law(law)) > ALPHA
    assert law_p_value(values, discrete_laplace_law(law.scale)) < ALPHA


@pytest.mark.parametrize(("scale", "count"), [(Fraction(3), 1), (Fraction(3), 200), (Fraction(2**58), 65)])
def test_draws_one_by_one(scale: Fraction, count: int) -> None:
    """Each uniform number read off the planes as an integer and compared with the threshold."""
    law = JointLaplace.within(scale, REACH)
    planes = Stream(bytes(32)).words(math.prod(law.shape(count))).reshape(law.shape(count))
    expected = []
    for draw in range(count):
        word, place = divmod(draw, 64)
        value = 0
        for digit in range(2 * law.bits):
            uniform = sum((int(planes[i, digit, word]) >> place & 1) << (63 - i) for i in range(64))
            if uniform < law.thresholds[digit % law.bits]:
                value += (1 if digit < law.bits else -1) << (digit % law.bits)
        expected.append((value + 2**63) % 2**64 - 2**63)
    assert law.draw(count, Stream(bytes(32))).tolist() == expected


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 5000])
def test_pieces(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    law = JointLaplace(Fraction(2), 7)
    monkeypatch.setattr(joint_laplace, "_PIECE_DIGITS", 14 * 64 * 3 + 5)
    sizes = list(law.pieces(count))
    assert sum(sizes) == count and all(size == 192 for size in sizes[:-1])
    assert law.draw(count, SecureRandom()).shape == (count,)


def test_pieces_have_the_law_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_laplace, "_PIECE_DIGITS", 1)
    values = JointLaplace(Fraction(5), 9).draw(20_000, SecureRandom())
    assert law_p_value(values, discrete_laplace_law(Fraction(5))) > ALPHA


def test_pack_and_unpack() -> None:
    words = SecureRandom().words(30).view(np.int64).reshape(2, 15)
    bits = unpack(words)
    assert bits.shape == (2, 960) and set(np.unique(bits)) == {0, 1}
    assert [int(words[1, 3]) >> i & 1 for i in range(64)] == bits[1, 192:256].tolist()
    assert np.array_equal(pack(bits), words)


# wrong variants


class FirstGeometricOnly(JointLaplace):
    @property
    def weights(self) -> np.ndarray:
        return np.concatenate([super().weights[: self.bits], np.zeros(self.bits, np.int64)])


class NextDigitsThresholds(JointLaplace):
    @property
    def thresholds(self) -> tuple[int, ...]:
        return JointLaplace(self.scale / 2, self.bits).thresholds


class FlippedBit(JointLaplace):
    """One bit of one threshold is wrong. (Of the last bits no draw can tell: the floors are tested one by one.)"""

    @property
    def thresholds(self) -> tuple[int, ...]:
        first, *others = super().thresholds
        return (first ^ (1 << 62), *others)


class BiasedSign(JointLaplace):
    """A digit of the subtracted geometric is lost."""

    @property
    def weights(self) -> np.ndarray:
        return np.where(super().weights == -8, 0, super().weights)


class TooFewDigits(JointLaplace):
    @property
    def weights(self) -> np.ndarray:
        return np.where(np.abs(super().weights) >= 1 << 6, 0, super().weights)


class SameWords:
    """The second geometric gets the words of the first."""

    def __init__(self, law: JointLaplace) -> None:
        self.law = law

    def words(self, count: int) -> np.ndarray:
        planes = SecureRandom().words(count).reshape(64, 2 * self.law.bits, -1)
        planes[:, self.law.bits :] = planes[:, : self.law.bits]
        return planes.ravel()


class OneSided(JointLaplace):
    @property
    def weights(self) -> np.ndarray:
        return np.abs(super().weights)


WRONG: list[Callable[[Fraction, int], JointLaplace]] = [
    FirstGeometricOnly,
    NextDigitsThresholds,
    FlippedBit,
    BiasedSign,
    TooFewDigits,
    OneSided,
]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_variants_are_caught(wrong: Callable[[Fraction, int], JointLaplace]) -> None:
    right = JointLaplace.within(Fraction(16), REACH)
    values = wrong(right.scale, right.bits).draw(40_000, SecureRandom())
    assert law_p_value(values, discrete_laplace_law(right.scale)) < ALPHA


def test_words_used_twice_are_caught() -> None:
    law = JointLaplace.within(Fraction(16), REACH)
    values = law.draw(10_000, SameWords(law))
    assert law_p_value(values, discrete_laplace_law(law.scale)) < ALPHA


# refusals


@pytest.mark.parametrize(
    ("scale", "bits"),
    [
        (1.5, 3),
        (Fraction(0), 3),
        (Fraction(2**62 + 1), 3),
        (True, 3),
        (Fraction(1), 0),
        (Fraction(1), 65),
        (Fraction(1), True),
        (Fraction(1), 3.0),
        (Fraction(1), -1),
    ],
)
def test_refuses_bad_parameters(scale: object, bits: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^(scale|bits)=[^\n]+: [^\n]+$"):
        JointLaplace(scale, bits)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("coordinates", "epsilon"), [(0, 1), (True, 1), (1.0, 1), (1, 0), (1, float("nan")), (1, math.inf), (1, -1)]
)
def test_delta_refuses(coordinates: object, epsilon: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^(coordinates|epsilon)="):
        JointLaplace(Fraction(1), 6).delta(coordinates, epsilon)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("target", [0, -1, float("nan"), True])
def test_within_refuses(target: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^total_variation="):
        JointLaplace.within(Fraction(1), target)  # type: ignore[arg-type]  # wrong on purpose


def test_large_tables_and_bad_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="bits=13 is above 12"):
        JointLaplace(Fraction(1), 13).distribution()
    with pytest.raises(ValueError, match="count=-1"):
        JointLaplace(Fraction(1), 6).draw(-1, SecureRandom())
