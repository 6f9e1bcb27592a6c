"""The public numbers of a noisy data release: rows, fixed point, noise, who is guaranteed what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms import calibration, validate
from mechanisms.accounting import compose
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gaussian_privacy import GaussianLoss
from mechanisms.guarantee import Guarantee
from mechanisms.sensitivity import signed_sums, sums
from protocols.data_release.mixing_rows import EXPLAINED, expected_error, mixing_rows
from protocols.schema import Column, Floats, Schema, scaled
from smpc import fixedpoint
from smpc.cast import Cast
from smpc.errors import InputError
from smpc.ring import Integers

METHODS = ("rmgm", "dgm")
SIGMAS = ("analytic", "classical")
SENSITIVITIES = ("tight", "paper")
RANGES = {"signed": (-1, 1), "unit": (0, 1)}
BITS = 20  # rounding to 2^-20 is far below the noise, and float64 holds the sums of 2^33 records
_TAIL_PROBABILITY = Fraction(1, 2**40)


@dataclass(frozen=True)
class ReleasePlan:
    """Everything about a release that is decided before data are touched.

    method: `rmgm` releases B D / sqrt(k) + R, `dgm` D + R. epsilon, delta: for one record's columns at one party.
    ranges[p]: the numbers to which p's declared bounds are mapped. rows: released ones, k or n. mechanisms[p]: the
    noise of p's integers.
    """

    schema: Schema
    method: str
    epsilon: Fraction
    delta: Fraction
    ranges: Mapping[str, str]
    rows: int
    mechanisms: Mapping[str, DiscreteGaussian]

    @classmethod
    def make(
        cls,
        schema: Schema,
        *,
        epsilon: Fraction,
        delta: Fraction,
        method: str = "rmgm",
        rows: int | str = "balanced",
        sigma: str = "analytic",
        sensitivity: str = "tight",
        ranges: Mapping[str, str] | str = "signed",
    ) -> ReleasePlan:
        """rows: k, or the rule that chooses it (`mixing_rows`); `dgm` has one row a record.

        sigma: the least variance by the `analytic` curve, or the `classical` formula as printed, epsilon <= 1.
        sensitivity: by each party's own columns (`tight`) or by those of the widest one (`paper`).
        """
        for name, value, known in (
            ("method", method, METHODS),
            ("sigma", sigma, SIGMAS),
            ("sensitivity", sensitivity, SENSITIVITIES),
        ):
            if value not in known:
                raise InputError(f"{name} = {value!r}: must be one of {', '.join(known)}")
        chosen = dict.fromkeys(schema.features, ranges) if isinstance(ranges, str) else dict(ranges)
        for party in schema.features:
            if chosen.get(party) not in RANGES:
                raise InputError(f"range = {chosen.get(party)!r} of {party}: must be one of {', '.join(RANGES)}")
        try:
            wanted, risk = validate.epsilon(epsilon, allow_weak=True), validate.delta(delta)
            unit = _variance(4**BITS, 1, sigma, wanted, risk) / 4**BITS
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from None
        count = schema.rows if method == "dgm" else _count(schema, rows, unit)
        widest = max(schema.widths.values())
        mechanisms = {}
        for party, width in schema.widths.items():
            changed = widest if sensitivity == "paper" else width
            l2_squared = _l2_squared(method, count, changed, chosen[party])
            mechanisms[party] = DiscreteGaussian(_variance(l2_squared, count * changed, sigma, wanted, risk))
        plan = cls(schema, method, wanted, risk, chosen, count, mechanisms)
        plan._check_ring()
        return plan

    def _check_ring(self) -> None:
        draws = self.rows * sum(self.schema.widths.values())
        tail = max(m.tail(_TAIL_PROBABILITY / draws) for m in self.mechanisms.values())
        if self.schema.rows * 2**BITS + tail >= 2**fixedpoint.SAFE_BITS:
            raise InputError(f"epsilon = {self.epsilon}: the noise leaves the ring (2^62); raise epsilon")

    @property
    def unit(self) -> float:
        """A released integer divided by this is a released number: 2^20, and sqrt(k) for mixed rows."""
        return 2.0**BITS * (math.sqrt(self.rows) if self.method == "rmgm" else 1.0)

    def noise_variance(self, party: str) -> float:
        """Of each released number of `party`."""
        return (self.mechanisms[party].standard_deviation / self.unit) ** 2

    def _noise_in_ranges(self) -> dict[str, float]:
        """The same in units of the party's squared range."""
        ends = {party: RANGES[self.ranges[party]] for party in self.mechanisms}
        return {party: self.noise_variance(party) / (high - low) ** 2 for party, (low, high) in ends.items()}

    @property
    def explained(self) -> float:
        """Of mixed rows: what share of the label's variance least squares is expected to explain, of EXPLAINED that the
        features could (`mixing_rows`: of columns that are uniform on their bounds)."""
        features = self.schema.features
        if self.rows <= sum(map(len, features.values())) + 1:
            return 0.0  # fewer rows than weights
        noise = self._noise_in_ranges()
        noises = [Fraction(noise[party]) for party, columns in features.items() for _ in columns]
        error = expected_error(self.rows, self.schema.rows, len(noises), sum(noises, Fraction(0)) / len(noises))
        return max(0.0, float(EXPLAINED - error))

    @property
    def noise_deviation(self) -> float:
        """Of `dgm`: the standard deviation that noise gives a de-biased sum of products of two different columns.

        Columns are scaled to [-1, 1], as in `Plan` of the functional mechanism: with v the noise's variance then, each
        of n products gets at most 2 v from noise times values, and v^2 from noise times noise.
        """
        variance = 4 * max(self._noise_in_ranges().values())
        return math.sqrt(self.schema.rows * (2 * variance + variance**2))

    def loss(self, party: str) -> GaussianLoss:
        """What the release of `party` tells of one record's columns there."""
        width = self.schema.widths[party]
        l2_squared = _l2_squared(self.method, self.rows, width, self.ranges[party])
        return GaussianLoss(Fraction(l2_squared), self.mechanisms[party].variance, self.rows * width)

    def guarantee(self, cast: Cast) -> Guarantee:
        """Rows for a whole record, which stands in every party's release, and for its columns at each party.

        The parties' noises are independent, so their releases are one Gaussian: its squared ratio of sensitivity to
        deviation is the sum of theirs. Nobody's noise depends on B, so every row holds for every B.
        """
        losses = {party: self.loss(party) for party in self.mechanisms}
        per_party = {party: compose([loss], self.delta).epsilon for party, loss in losses.items()}
        least = min(loss.variance for loss in losses.values())
        ratio = sum((loss.l2_squared / loss.variance for loss in losses.values()), Fraction(0))
        whole = GaussianLoss(ratio * least, least, sum(loss.dimension for loss in losses.values()))
        spent = compose([whole], self.delta)
        return Guarantee.for_release(
            order="shares",
            epsilon=spent.epsilon,
            parties=cast.parties,
            server=cast.server,
            dealer=cast.dealer,
            mechanism="discrete Gaussian of each party",
            delta=self.delta,
            accountant=spent.accountant,
            per_party={party: min(self.epsilon, shown) for party, shown in per_party.items()},
        )

    def prepare(self, party: str, table: Floats) -> Integers:
        """A party's columns in fixed point, mapped from their declared bounds to its range: (1 + width, n).

        A column of ones comes first: a model with an intercept needs it, and it is nobody's data.
        """
        columns = self.schema.columns(party)
        if table.shape != (len(columns), self.schema.rows):
            wanted = (len(columns), self.schema.rows)
            raise InputError(f"{party}: table of shape {table.shape}: need (columns, rows) = {wanted}")
        result = np.full((1 + len(columns), self.schema.rows), 1 << BITS, dtype=np.int64)
        for i, column in enumerate(columns):  # one at a time: no third table
            bounds = Column(column.name, column.low, column.high)  # an indicator is a column like others here
            values = scaled((bounds,), table[i : i + 1])[0]
            if self.ranges[party] == "unit":
                values = np.clip((values + 1) / 2, 0, 1)
            result[1 + i] = fixedpoint.encode(values, BITS, name=party)
        return result


def _count(schema: Schema, rows: int | str, variance: Fraction) -> int:
    if isinstance(rows, str):
        widths = schema.widths
        # a released number's noise in squared ranges: sensitivity is sqrt(columns) ranges, whatever the range
        noises = [variance * widths[party] for party, columns in schema.features.items() for _ in columns]
        noise = sum(noises, Fraction(0)) / len(noises)
        return mixing_rows(rows, schema.rows, len(noises), widest=max(widths.values()), variance=variance, noise=noise)
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= schema.rows:
        raise InputError(f"rows = {rows}: must be a whole number from 1 to the number of records, {schema.rows}")
    return rows


def _l2_squared(method: str, rows: int, width: int, coding: str) -> int:
    """Of a party's released integers, when its `width` columns of one record change as far as they can."""
    low, high = (end << BITS for end in RANGES[coding])
    if method == "dgm":
        return sums([(low, high)] * width).l2_squared
    return signed_sums(rows, width, (high - low) // 2).l2_squared


def _variance(l2_squared: int, dimension: int, sigma: str, epsilon: Fraction, delta: Fraction) -> Fraction:
    if sigma == "classical":
        return calibration.classical_variance(l2_squared, epsilon, delta)
    return calibration.gaussian(l2_squared, dimension, epsilon, delta).variance
