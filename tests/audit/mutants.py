"""Wrong releases, each with one mistake of the kind found in published systems. All of them must be caught."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.moments import Moments
from mechanisms.randomness import RandomWords, SecureRandom, Stream
from tests.audit.pipeline import Integers, Release


class HalfNoise(Release):
    def scale(self) -> Fraction:
        return super().scale() / 2


class NoiseOverRootTwo(Release):
    def scale(self) -> Fraction:
        return super().scale() / Fraction(math.sqrt(2))


class L2ForL1(Release):
    def sensitivity(self) -> int:
        return math.isqrt(Moments(1, self.bound).record.l2_squared)


class AddRemoveForReplace(Release):
    def scale(self) -> Fraction:
        return Fraction(self.bound**2 * 4) / self.epsilon  # the largest L1 norm of one record, not of a change


class HalvedInteger(Release):
    def sensitivity(self) -> int:
        return super().sensitivity() // 2


class LowerBoundTwice(Release):
    def sensitivity(self) -> int:
        low, high = -1, self.bound  # bounds (low, low) reach the formula instead of (low, high)
        return Moments(1, max(abs(low), abs(min(low, high)))).record.l1


class ClampAfterSum(Release):
    def statistics(self, table: Integers) -> Integers:
        limit = len(table) * self.bound**2
        return np.clip(self.products(table).sum(axis=0), -limit, limit)


class NoiseOnOneCoordinate(Release):
    def draw(self, party: int, runs: int) -> Integers:
        noise = super().draw(party, runs)
        noise[:, :, 1:] = 0
        return noise


class DroppedShare(Release):
    """The honest party's share of noise is lost; the colluders subtract theirs."""

    def open(self, table: Integers, draws: list[Integers]) -> Integers:
        return super().open(table, draws[1:])


class NoiseSplitBetweenParties(Release):
    """1/K of the scale each, as if nobody colluded."""

    def scale(self) -> Fraction:
        return super().scale() / self.parties


class SameSeedEverywhere(Release):
    """Every party draws the same noise; a colluder subtracts its own once more for the honest party."""

    def draw(self, party: int, runs: int) -> Integers:
        if party == 0:
            SHARED.clear()
        if not SHARED:
            SHARED.append(super().draw(party, runs))
        return SHARED[0]


SHARED: list[Integers] = []


class ConstantSeed(Release):
    """A seed fixed in the code: everybody who has the code subtracts the noise."""

    def random(self, party: int) -> RandomWords:
        return Stream(bytes(32))

    def view(self, table: Integers, runs: int) -> tuple[Integers, Integers]:
        opened, _ = super().view(table, runs)
        return opened - self.draw(0, runs), np.zeros_like(opened)


@dataclass(frozen=True)
class FreshNoiseForOneCharge(Release):
    """A sample used in four rounds with fresh noise, epsilon charged once (no memo)."""

    repeats: int = 4


@dataclass(frozen=True)
class NoiseReusedForTwoReleases(Release):
    """One draw hides two openings, the second of other data: their difference is exact."""

    repeats: int = 2

    def draw(self, party: int, runs: int) -> Integers:
        noise = super().draw(party, runs)
        noise[:, 1] = noise[:, 0]
        return noise

    def open(self, table: Integers, draws: list[Integers]) -> Integers:
        opened = super().open(table, draws)
        opened[:, 0] -= self.statistics(table)  # the first opening is of an empty table
        return opened


MUTANTS = [
    HalfNoise,
    NoiseOverRootTwo,
    L2ForL1,
    AddRemoveForReplace,
    HalvedInteger,
    LowerBoundTwice,
    ClampAfterSum,
    NoiseOnOneCoordinate,
    DroppedShare,
    NoiseSplitBetweenParties,
    SameSeedEverywhere,
    ConstantSeed,
    FreshNoiseForOneCharge,
    NoiseReusedForTwoReleases,
]


def _exact(scale: Fraction, n: int) -> Integers:
    return DiscreteLaplace(scale).draw(n, SecureRandom())


def _rescaled(share: Fraction):
    return lambda scale, n: _exact(scale * share, n)


def _some_zero(scale: Fraction, n: int) -> Integers:
    return np.where(np.random.default_rng().random(n) < 0.02, 0, _exact(scale, n))


def _clipped(scale: Fraction, n: int) -> Integers:
    return np.clip(_exact(scale, n), -int(3 * scale), int(3 * scale))


def _double_zero(scale: Fraction, n: int) -> Integers:
    """The sign is drawn without rejecting minus zero."""
    magnitude = np.random.default_rng().geometric(-math.expm1(-1 / scale), n) - 1
    return magnitude * np.random.default_rng().choice([-1, 1], n)


def _of_deviation(draw):
    return lambda scale, n: np.rint(draw(np.random.default_rng(), DiscreteLaplace(scale).standard_deviation, n)).astype(
        int
    )


# sampler(scale, n): draws that only resemble the discrete Laplace law
WRONG_SAMPLERS = {
    "half the scale": _rescaled(Fraction(1, 2)),
    "scale over root two": _rescaled(Fraction(7, 10)),
    "0.9 of the scale": _rescaled(Fraction(9, 10)),
    "one-sided": lambda scale, n: np.abs(_exact(scale, n)),
    "normal of equal variance": _of_deviation(lambda g, s, n: g.normal(0, s, n)),
    "uniform of equal variance": _of_deviation(lambda g, s, n: g.uniform(-s * math.sqrt(3), s * math.sqrt(3), n)),
    "rounded float Laplace": lambda scale, n: np.rint(np.random.default_rng().laplace(0, float(scale), n)).astype(int),
    "two percent zeros": _some_zero,
    "clipped at three scales": _clipped,
    "even values only": lambda scale, n: 2 * _exact(scale / 2, n),
    "minus zero kept": _double_zero,
    "one seed for every draw": lambda scale, n: np.repeat(DiscreteLaplace(scale).draw(1, Stream(bytes(32))), n),
}
