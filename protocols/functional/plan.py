"""The public numbers of a functional-mechanism job: fraction bits, groups of coefficients, noise, guarantee."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms import objective_constants, validate
from mechanisms.calibration import MOST_GAUSSIAN_EPSILON
from mechanisms.gamma_norm import GammaNorm
from mechanisms.guarantee import Guarantee
from mechanisms.joint_laplace import JointLaplace
from mechanisms.moments import Moments
from mechanisms.sensitivity import Sensitivity
from protocols.functional import weights
from protocols.functional.groups import Group, blocks, make_groups
from protocols.functional.losses import in_original_units
from protocols.functional.options import Options
from protocols.functional.quadratic import Coefficients, minimise
from protocols.schema import Column, Floats, Schema, check_categories, scaled
from smpc import fixedpoint
from smpc.cast import Cast
from smpc.errors import InputError
from smpc.fixedpoint import RING, Room
from smpc.ring import Integers

ROUNDING_SHARE = Fraction(1, 100)  # of the noise's standard deviation: what rounding may add at most
TAIL_PROBABILITY = Fraction(1, 2**40)  # that any noise leaves the room kept for it in the ring
NOISE_ORDERS = ("shares", "joint", "paper")
JOINT_DELTA = Fraction(1, 2**30)  # the most that finite precision may cost: far below one over any number of people
_LARGEST_DENOMINATOR = 10**300  # a ledger and a guarantee write what follows from it as text
_SOME_BITS = 8  # the noise in real units does not depend on the bits: any number shows it


@dataclass(frozen=True)
class Plan:
    """Everything about a job that is decided before data are touched."""

    schema: Schema
    epsilon: Fraction
    noise: str
    bits: int
    options: Options
    coefficients: Coefficients
    groups: tuple[Group, ...]

    @classmethod
    def make(
        cls,
        schema: Schema,
        *,
        epsilon: Fraction | None = None,
        noise: str = "shares",
        bits: int | None = None,
        options: Options | None = None,
        room: Room = RING,
    ) -> Plan:
        """Without `bits`: the fewest at which rounding stays under 1 % of the noise, or what the backend's room holds.

        Top-down an epsilon is given; bottom-up (`options.budgets`) the achieved one is the budgets' sum.
        """
        options = options or Options()
        if noise not in NOISE_ORDERS:
            raise InputError(f"noise = {noise!r}: must be one of {', '.join(NOISE_ORDERS)}")
        if noise != "shares" and options.mechanism != "laplace":
            raise InputError(f"mechanism = {options.mechanism!r} needs noise = 'shares', not {noise!r}")
        if options.loss == "logistic" and (schema.label.low, schema.label.high) != (0, 1):
            raise InputError(
                f"the label {schema.label.name} of a logistic loss needs the bounds [0, 1]: bring a column of 0 and 1, "
                "or choose loss = 'linear'"
            )
        achieved = _achieved(schema, options, epsilon)
        if options.weights == "balanced":
            schema, _ = weights.balanced(schema)
        if bits is not None:
            plan = cls._with(schema, achieved, noise, bits, options)
            plan.check_room(room)
            return plan
        # each factor is off by at most 2^-(bits + 1), so a sum over all rows by at most rows * 2^-bits
        allowed = float(ROUNDING_SHARE) * cls._with(schema, achieved, "shares", _SOME_BITS, options).least_deviation
        wanted = fixedpoint.MAX_FRACTION_BITS
        if allowed > 0:
            wanted = min(max(1, math.ceil(math.log2(schema.rows) - math.log2(allowed))), wanted)
        for fewer in range(wanted, 1, -1):
            with contextlib.suppress(InputError):
                plan = cls._with(schema, achieved, noise, fewer, options)
                plan.check_room(room)
                return plan
        plan = cls._with(schema, achieved, noise, 1, options)
        plan.check_room(room)
        return plan

    @classmethod
    def _with(cls, schema: Schema, epsilon: Fraction, noise: str, bits: int, options: Options) -> Plan:
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= fixedpoint.MAX_FRACTION_BITS:
            raise InputError(f"fraction_bits = {bits}: must be a whole number from 1 to {fixedpoint.MAX_FRACTION_BITS}")
        coefficients = Coefficients.of(schema, ordered=options.release == "ordered")
        try:
            groups = tuple(make_groups(schema, coefficients, epsilon, noise, 1 << bits, options))
        except ValueError as error:
            raise InputError(f"fraction_bits = {bits}: {error}") from None
        plan = cls(schema, epsilon, noise, bits, options, coefficients, groups)
        if noise == "joint" and plan.delta > JOINT_DELTA:
            raise InputError(
                f"epsilon = {epsilon}: joint noise would cost delta {float(plan.delta):.1e}, at most "
                f"{float(JOINT_DELTA):.1e} is accepted; lower epsilon or take noise = 'shares'"
            )
        return plan

    def check_room(self, room: Room = RING) -> None:
        """Raises InputError if a coefficient with its noise could leave the ring, or another backend's room."""
        draws = 2 * sum(group.size for group in self.groups) << len(self.groups)  # the n-th group may use 2^-n of it
        for group in self.groups:
            if isinstance(group.mechanism, GammaNorm):
                tail = group.mechanism.tail(TAIL_PROBABILITY / draws, group.size)
            else:
                tail = group.mechanism.tail(TAIL_PROBABILITY / draws)
            most = (
                1 if self.noise == "joint" else int(np.add.reduce(list(group.contributors.values()), dtype=int).max())
            )
            fixedpoint.check_sum(self.schema.rows, Fraction(int(group.times.max())), self.bits, most * tail, room)

    @property
    def delta(self) -> Fraction:
        """Of Gaussian noise, or what the finite precision of joint noise costs; 0 for exact pure noise."""
        if self.options.delta is not None:
            return self.options.delta
        parts = [
            group.mechanism.delta(group.size, self.epsilon)
            for group in self.groups
            if isinstance(group.mechanism, JointLaplace)
        ]
        return sum(parts, Fraction(0))

    def guarantee(self, cast: Cast) -> Guarantee:
        """Who is protected against whom: known before anything is sent."""
        names = list(dict.fromkeys(str(group.mechanism) for group in self.groups))
        accountant = "pure sum"
        if self.options.mechanism == "gaussian":
            accountant = "analytic Gaussian or zCDP"
        elif self.delta:
            accountant = "pure sum and distance to the exact law"
        return Guarantee.for_release(
            order=self.noise,
            epsilon=self.epsilon,
            parties=cast.parties,
            server=cast.server,
            dealer=cast.dealer,
            mechanism=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more scales",
            delta=self.delta,
            accountant=accountant,
            per_party=self.per_party,
            assumptions=cast.assumptions,
            quorum=cast.quorum,
        )

    @property
    def per_party(self) -> dict[str, Fraction]:
        """epsilon^(p), at `delta`: for two tables that differ in one record of p's columns; where a rule gives one."""
        features, label = self.schema.features, self.schema.label_holder
        if self.options.budgets:
            return {p: sum((e for pair, e in self.options.budgets.items() if p in pair), Fraction(0)) for p in features}
        if self.options.sensitivity == "tight":
            (group,) = self.groups
            parts = {p: group.epsilon(self._part(c, label=p == label), self.delta) for p, c in features.items()}
            return {p: min(self.epsilon, part) for p, part in parts.items()}
        if self.options.release == "symmetric":
            return {}
        of, m = objective_constants, len(self.schema.all_features)
        constant, part_of = {
            "linear": (of.linear(m + 1), of.linear_party),
            "logistic": (of.logistic(m + 1), of.logistic_party),
        }[self.options.loss]
        # the source counts the constant column among the label holder's
        held = {p: len(c) + (p == label) for p, c in features.items()}
        return {p: self.epsilon * part_of(m + 1, held[p], label=p == label) / constant for p in features}

    def _part(self, columns: tuple[Column, ...], *, label: bool) -> Sensitivity:
        """How far the sums move when one record changes in these columns, and in the label if `label`."""
        unit, used = 1 << self.bits, weights.chosen(self.schema, self.options)
        l1 = weights.moments_of(self.schema, unit, used).part(*weights.shape_of(columns), label=label)
        plain = Moments(len(self.schema.all_features), unit).part(len(columns), label=label)
        return Sensitivity(l1, plain.l2_squared)  # noise that is scaled by the L2 norm has no weights

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of one draw (the largest), in units of sums of products of columns scaled to [-1, 1]."""
        return max(float(group.deviations.max()) for group in self.groups) / 4.0**self.bits

    @property
    def least_deviation(self) -> float:
        """The same of the sum with the least noise."""
        return min(float(group.deviations.min()) for group in self.groups) / 4.0**self.bits

    def check_labels(self, party: str, table: Floats) -> None:
        """Raises InputError if `party` holds the labels, last in its table, and the loss cannot use one of them."""
        if party != self.schema.label_holder or self.options.loss != "logistic":
            return
        others = int(np.count_nonzero(~np.isin(table[-1], (0.0, 1.0))))
        if others:
            raise InputError(
                f"column {self.schema.label.name}: {others} labels are neither 0 nor 1, as a logistic loss needs them"
            )

    def prepare(self, party: str, table: Floats) -> Integers:
        """A party's table in fixed point: scaled to [-1, 1], indicators to 0 or 1, rounded; shape (width, rows)."""
        columns = self.schema.columns(party)
        if table.shape != (len(columns), self.schema.rows):
            wanted = (len(columns), self.schema.rows)
            raise InputError(f"{party}: table of shape {table.shape}: need (columns, rows) = {wanted}")
        self.check_labels(party, table)
        check_categories(columns, table)
        result = np.empty(table.shape, dtype=np.int64)
        for i, column in enumerate(columns):  # one at a time: no third table
            result[i] = fixedpoint.encode(scaled((column,), table[i : i + 1]), self.bits, name=party)[0]
        return result

    def matrix(self, released: list[Integers]) -> Floats:
        """The noisy Gram matrix of (1, columns scaled to [-1, 1]) from the opened groups; the label's square is 0."""
        values = np.zeros(len(self.coefficients))
        for group, opened in zip(self.groups, released, strict=True):
            values[group.entries] = np.ldexp(opened.astype(np.float64), -2 * self.bits) / group.times
        return self.coefficients.matrix(self.schema.rows, values)

    @property
    def deviations(self) -> Floats:
        """Standard deviations of the noise in `matrix`."""
        values = np.zeros(len(self.coefficients))
        for group in self.groups:
            values[group.entries] = group.deviations * np.sqrt(group.draws(self.noise)) / 4.0**self.bits
        return self.coefficients.deviations(values)

    def solve(self, released: list[Integers]) -> Floats:
        """Intercept, weights in the columns' own units, and the number of indefinite directions: (2 + features,)."""
        matrix = self.matrix(released)
        minimum = minimise(matrix, self.coefficients.label, self.options.repair, self.deviations)
        model = in_original_units(self.schema, self.options, minimum.weights)
        return np.concatenate([model, [float(minimum.indefinite)]])


def _achieved(schema: Schema, options: Options, epsilon: Fraction | None) -> Fraction:
    """The epsilon of the whole record."""
    if not options.budgets:
        total = validate.epsilon(epsilon, allow_weak=True)
        if options.mechanism == "gaussian" and total > MOST_GAUSSIAN_EPSILON:
            raise InputError(
                f"epsilon = {total}: is above {MOST_GAUSSIAN_EPSILON}, the most for Gaussian noise; lower it"
            )
        return total
    if epsilon is not None:
        raise InputError(f"epsilon = {epsilon}: bottom-up it is the sum of the budgets; leave it out")
    wanted = blocks(schema)
    given = {pair: validate.epsilon(value, allow_weak=True) for pair, value in options.budgets.items()}
    odd = [pair for pair in [*wanted, *given] if (pair in given) != (pair in wanted)]
    if odd:
        word = "is missing" if odd[0] in wanted else f"is none of {', '.join('-'.join(pair) for pair in wanted)}"
        raise InputError(f"budget {'-'.join(odd[0])} {word}; every party (p-p) and every pair needs one")
    total = sum(given.values(), Fraction(0))
    if total.denominator > _LARGEST_DENOMINATOR:
        raise InputError("the budgets' sum has a denominator of over 300 digits: write them with fewer digits")
    return total
