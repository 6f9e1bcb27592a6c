"""Discrete Laplace noise from biased bits: drawn on secret shares, known to nobody, close to its law to a stated delta.

The binary digits of a geometric G, P(G = g) = (1 - q) q^g with q = e^{-1/t}, are independent (Dwork, Kenthapadi,
McSherry, Mironov and Naor 2006, section 3.1):

    P(b_j = 1) = p_j = 1 / (1 + e^{2^j / t}),   G = sum_j 2^j b_j,   X = G1 - G2 is discrete Laplace of scale t.

No rejection, so the work says nothing about the value, and no comparison but "a uniform 64-bit number is below a public
threshold" c_j = floor(2^64 p_j). Digits 0 .. l-1 are drawn; the law of the result, an integer modulo 2^64, is exact and
finite, and differs from discrete Laplace in two ways. Let TV be the total variation distance.

- Each digit has P(b_j = 1) = c_j / 2^64, less than 2^-64 below p_j.
- The digits from l on are missing. One of them is set with probability P(G >= 2^l) = e^{-2^l / t}. For l = 64 nothing
  is missing: higher digits are multiples of 2^64.

Couple each digit to its ideal one by the same uniform number, and the missing ones to zero: the two G differ with
probability at most the sum of all this, and X is a function of two independent G, hence

    TV <= 2 (e^{-2^l / t} [l < 64] + sum_{j<l} (p_j - c_j / 2^64)).

From TV to delta. Let M be a release of d coordinates with exact noise, epsilon-DP, and M' the same with this noise, all
coordinates drawn independently: TV(M(D), M'(D)) <= d TV =: r for every D. For neighbours D, D' and every event S

    P(M'(D) in S) <= P(M(D) in S) + r <= e^epsilon P(M(D') in S) + r <= e^epsilon (P(M'(D') in S) + r) + r,

so M' is (epsilon, delta)-DP with delta = d (1 + e^epsilon) TV.

Sixty-four draws share a machine word: word k of plane i holds bit i of the uniform numbers of 64 draws, so that every
operation on words works on 64 draws and no bit of a word is idle. The planes are uniform words; who draws them jointly
takes the exclusive or of everybody's words, uniform if anybody's are (`smpc.engine.joint_noise`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from flint import ctx

from mechanisms import validate
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.enclosure import ball, upper
from mechanisms.randomness import RandomWords

WORD = 64  # bits of a ring element, of a threshold, and draws that share a word
_PIECE_DIGITS = 1 << 20  # digits drawn at once: 8 MB of uniform words
_CAP = 512  # larger exponents y are replaced by it: e^-y is below 2^-64 before and after, and no float underflows
_TABLE_BITS = 12


@dataclass(frozen=True)
class JointLaplace:
    """The noise X = G1 - G2 modulo 2^64 with `bits` digits a geometric, 1 .. 64; scale in [2^-62, 2^62]."""

    scale: Fraction
    bits: int

    def __post_init__(self) -> None:
        validate.scale(self.scale)
        if validate.integer("bits", self.bits, low=1) > WORD:
            raise ValueError(f"bits={self.bits} is above {WORD}, the bits of the ring: give 1 to {WORD}")

    def __str__(self) -> str:
        return f"joint discrete Laplace, scale {float(self.scale):.6g}, {self.bits} bits"

    @classmethod
    def within(cls, scale: Fraction, total_variation: Fraction) -> JointLaplace:
        """The fewest bits that keep `total_variation`. Any scale reaches 2^-56; ValueError if this is not reached."""
        target = validate.positive("total_variation", total_variation)
        for bits in range(1, WORD + 1):
            law = cls(scale, bits)
            if law.total_variation <= target:
                return law
        least = float(law.total_variation)
        raise ValueError(f"total_variation={float(target):.3g} is below {least:.3g}, what 64-bit thresholds reach here")

    @property
    def thresholds(self) -> tuple[int, ...]:
        """c_j = floor(2^64 p_j) for j = 0 .. bits - 1, never increasing."""
        return tuple(threshold for threshold, _ in _digits(self.scale)[: self.bits])

    @property
    def total_variation(self) -> Fraction:
        """A rational upper bound of the distance of one draw to DiscreteLaplace(scale), both modulo 2^64."""
        missing = Fraction(0)
        if self.bits < WORD:
            with ctx.workprec(2 * WORD):
                missing = upper((-ball(_exponent(self.scale, self.bits))).exp())
        return 2 * (missing + sum(excess for _, excess in _digits(self.scale)[: self.bits]))

    def delta(self, coordinates: int, epsilon: object) -> Fraction:
        """A rational >= d (1 + e^epsilon) TV for d `coordinates`, at most 1, of 16 binary digits."""
        count = validate.integer("coordinates", coordinates, low=1)
        exponent = validate.epsilon(epsilon, allow_weak=True)
        if exponent > _CAP:
            return Fraction(1)
        with ctx.workprec(2 * WORD):
            bound = count * (1 + upper(ball(exponent).exp())) * self.total_variation
        unit = Fraction(2) ** (math.frexp(float(bound))[1] - 16)
        return min(Fraction(1), math.ceil(bound / unit) * unit)

    def distribution(self) -> dict[int, Fraction]:
        """The exact probability of every value, for at most 12 bits: 2^(bits + 1) - 1 values."""
        if self.bits > _TABLE_BITS:
            raise ValueError(f"bits={self.bits} is above {_TABLE_BITS}: the table would be too large")
        masses = {0: 1}
        for digit, set_ in enumerate(self.thresholds):
            unset = (1 << WORD) - set_
            longer: dict[int, int] = {}
            for value, mass in masses.items():
                for step, weight in ((-1, set_ * unset), (0, set_ * set_ + unset * unset), (1, set_ * unset)):
                    key = value + (step << digit)
                    longer[key] = longer.get(key, 0) + mass * weight
            masses = longer
        return {value: Fraction(mass, 1 << (2 * WORD * self.bits)) for value, mass in sorted(masses.items())}

    @property
    def standard_deviation(self) -> float:
        """Of the drawn law, before reduction modulo 2^64."""
        ones = [Fraction(threshold, 1 << WORD) for threshold in self.thresholds]
        return math.sqrt(2 * sum(4**digit * p * (1 - p) for digit, p in enumerate(ones)))

    def tail(self, probability: Fraction) -> int:
        """An m with P(|X| > m) <= probability.

        |X| <= max(G1, G2), digits are set no more often than the ideal ones, so P(|X| > m) <= 2 q^(m+1), and
        DiscreteLaplace bounds 2 q^(m+1) / (1 + q) > q^(m+1).
        """
        return DiscreteLaplace(self.scale).tail(probability / 2)

    # the layout that a joint draw and a draw in the clear have in common

    def pieces(self, count: int) -> Iterator[int]:
        """`count` draws in portions that bound the memory: whole words of draws, except in the last."""
        most = max(1, _PIECE_DIGITS // (2 * self.bits * WORD)) * WORD
        for start in range(0, count, most):
            yield min(most, count - start)

    def shape(self, count: int) -> tuple[int, int, int]:
        """Of the planes for `count` draws: bits of a number (high first), digits of G1 and then of G2, words."""
        return (WORD, 2 * self.bits, -(-count // WORD))

    @property
    def threshold_planes(self) -> npt.NDArray[np.int64]:
        """The thresholds' bits as words that are all ones or all zeros, shape (64, 2 bits, 1)."""
        shifts = np.arange(WORD - 1, -1, -1, dtype=np.uint64)[:, None]
        bits = (np.array(self.thresholds * 2, dtype=np.uint64) >> shifts) & np.uint64(1)
        planes: npt.NDArray[np.int64] = -bits.astype(np.int64)
        return planes[:, :, None]

    @property
    def weights(self) -> npt.NDArray[np.int64]:
        """What each digit counts for modulo 2^64: 2^j in G1, -2^j in G2; shape (2 bits,)."""
        powers = np.left_shift(np.uint64(1), np.arange(self.bits, dtype=np.uint64)).view(np.int64)
        return np.concatenate([powers, -powers])

    def draw(self, count: int, random: RandomWords) -> npt.NDArray[np.int64]:
        """`count` independent draws by one source of uniform words, shape (count,): for tests and simulations."""
        validate.integer("count", count)
        drawn = [np.empty(0, np.int64)]
        for size in self.pieces(count):
            planes = random.words(math.prod(self.shape(size))).view(np.int64).reshape(self.shape(size))
            below = np.zeros(planes.shape[1:], dtype=np.int64)
            for plane, threshold in zip(planes[::-1], self.threshold_planes[::-1], strict=True):  # low bits first
                below = (threshold & ~plane) | (~(threshold ^ plane) & below)
            drawn.append((self.weights @ unpack(below))[:size])
        return np.concatenate(drawn)


def pack(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Zeros and ones, shape (..., 64 n), as words, shape (..., n)."""
    return np.packbits(bits.astype(np.uint8), axis=-1, bitorder="little").view("<i8").astype(np.int64, copy=False)


def unpack(words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Words, shape (..., n), as zeros and ones, shape (..., 64 n)."""
    octets = np.ascontiguousarray(words, dtype="<i8").view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little").astype(np.int64)


def _exponent(scale: Fraction, digit: int) -> Fraction:
    return min(Fraction(1 << digit) / scale, Fraction(_CAP))


@lru_cache(maxsize=64)
def _digits(scale: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """(c_j, upper bound of p_j - c_j / 2^64) for j = 0 .. 63, in ball arithmetic."""
    return tuple(_digit(_exponent(scale, digit)) for digit in range(WORD))


def _digit(exponent: Fraction) -> tuple[int, Fraction]:
    """It ends: p is irrational (e^y is, for rational y > 0), so 2^64 p is no integer."""
    precision = 2 * WORD
    while True:
        with ctx.workprec(precision):
            probability = 1 / (1 + ball(exponent).exp())
            threshold = (probability * (1 << WORD)).floor().unique_fmpz()
            if threshold is not None:
                return int(threshold), upper(probability) - Fraction(int(threshold), 1 << WORD)
        precision *= 2
