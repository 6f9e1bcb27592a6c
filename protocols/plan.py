"""The public numbers of a functional-mechanism job: fraction bits, groups of coefficients, noise, guarantee."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from mechanisms import calibration, objective_constants, validate
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.gamma_norm import GammaNorm
from mechanisms.guarantee import Guarantee
from mechanisms.joint_laplace import JointLaplace
from mechanisms.moments import Moments, cross_block
from protocols.losses import in_original_units
from protocols.options import Options, Pair
from protocols.quadratic import Coefficients, Mask, minimise
from protocols.schema import Floats, Schema, scaled
from smpc import fixedpoint
from smpc.errors import InputError
from smpc.fixedpoint import RING, Room
from smpc.ring import Integers
from smpc.session import Cast

ROUNDING_SHARE = Fraction(1, 100)  # of the noise's standard deviation: what rounding may add at most
TAIL_PROBABILITY = Fraction(1, 2**40)  # that any noise leaves the room kept for it in the ring
NOISE_ORDERS = ("shares", "joint", "paper")
JOINT_DISTANCE = Fraction(1, 2**56)  # of a joint draw to the exact law: what 64-bit thresholds reach at any scale
JOINT_DELTA = Fraction(1, 2**30)  # the most that this distance may cost: far below one over any number of people
_SOME_BITS = 8  # the noise in real units does not depend on the bits: any number shows it

Exact = DiscreteLaplace | DiscreteGaussian | GammaNorm


@dataclass(frozen=True)
class Group:
    """Coefficients that are perturbed and opened together, at public positions.

    `times`: public factors (the source's weights). `contributors[p]`: to which of them p adds a full draw.
    """

    entries: Mask
    times: Integers
    mechanism: Exact | JointLaplace
    contributors: Mapping[str, Mask]

    @property
    def size(self) -> int:
        return len(self.times)


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
            raise InputError(f"the label {schema.label.name} of a logistic loss needs the bounds [0, 1]")
        achieved = _achieved(schema, options, epsilon)
        if bits is not None:
            plan = cls._with(schema, achieved, noise, bits, options)
            plan.check_room(room)
            return plan
        # each factor is off by at most 2^-(bits + 1), so a sum over all rows by at most rows * 2^-bits
        allowed = float(ROUNDING_SHARE) * cls._with(schema, achieved, "shares", _SOME_BITS, options).noise_deviation
        wanted = min(max(1, math.ceil(math.log2(schema.rows / allowed))), fixedpoint.MAX_FRACTION_BITS)
        for fewer in range(wanted, 1, -1):
            plan = cls._with(schema, achieved, noise, fewer, options)
            with contextlib.suppress(InputError):
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
            groups = tuple(_groups(schema, coefficients, epsilon, noise, 1 << bits, options))
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
        """epsilon^(p): for two tables that differ in one record of p's columns only; where a pure rule gives one."""
        features, label = self.schema.features, self.schema.label_holder
        if self.options.budgets:
            return {p: sum((e for pair, e in self.options.budgets.items() if p in pair), Fraction(0)) for p in features}
        if self.options.mechanism != "laplace" or self.delta:
            return {}
        m = len(self.schema.all_features)
        if self.options.sensitivity == "tight":
            moments = Moments(m, 1 << self.bits)  # not 1: the largest change may lie inside the lattice
            parts = {p: Fraction(moments.part(len(c), label=p == label).l1) for p, c in features.items()}
            return {p: self.epsilon * part / moments.record.l1 for p, part in parts.items()}
        if self.options.release == "symmetric":
            return {}
        of = objective_constants
        constant, part_of = {
            "linear": (of.linear(m + 1), of.linear_party),
            "logistic": (of.logistic(m + 1), of.logistic_party),
        }[self.options.loss]
        # the source counts the constant column among the label holder's
        held = {p: len(c) + (p == label) for p, c in features.items()}
        return {p: self.epsilon * part_of(m + 1, held[p], label=p == label) / constant for p in features}

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of one draw (the largest), in units of sums of products of columns scaled to [-1, 1]."""
        return max(_deviation(group) for group in self.groups) / 4.0**self.bits

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
        """A party's table in fixed point: scaled to [-1, 1], rounded; shape (width, rows)."""
        columns = self.schema.columns(party)
        if table.shape != (len(columns), self.schema.rows):
            wanted = (len(columns), self.schema.rows)
            raise InputError(f"{party}: table of shape {table.shape}: need (columns, rows) = {wanted}")
        self.check_labels(party, table)
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

    def solve(self, released: list[Integers]) -> Floats:
        """Intercept, weights in the columns' own units, and the number of indefinite directions: (2 + features,)."""
        matrix = self.matrix(released)
        minimum = minimise(matrix, self.coefficients.label, self.options.repair, self.noise_deviation)
        model = in_original_units(self.schema, self.options, minimum.weights)
        return np.concatenate([model, [float(minimum.indefinite)]])


def _deviation(group: Group) -> float:
    if isinstance(group.mechanism, GammaNorm):  # of a coordinate: the length is Gamma(d), the direction uniform
        return float(group.mechanism.scale) * math.sqrt(group.size + 1)
    return group.mechanism.standard_deviation


def _achieved(schema: Schema, options: Options, epsilon: Fraction | None) -> Fraction:
    """The epsilon of the whole record."""
    if not options.budgets:
        return validate.epsilon(epsilon, allow_weak=True)
    if epsilon is not None:
        raise InputError(f"epsilon = {epsilon}: bottom-up it is the sum of the budgets; leave it out")
    wanted = _blocks(schema)
    given = {pair: validate.epsilon(value, allow_weak=True) for pair, value in options.budgets.items()}
    odd = [pair for pair in [*wanted, *given] if (pair in given) != (pair in wanted)]
    if odd:
        word = "is missing" if odd[0] in wanted else f"is none of {', '.join('-'.join(pair) for pair in wanted)}"
        raise InputError(f"budget {'-'.join(odd[0])} {word}; every party (p-p) and every pair needs one")
    return sum(given.values(), Fraction(0))


def _blocks(schema: Schema) -> list[Pair]:
    return [*((p, p) for p in schema.features), *combinations(schema.features, 2)]


def _groups(
    schema: Schema, coefficients: Coefficients, epsilon: Fraction, noise: str, unit: int, options: Options
) -> Iterator[Group]:
    """Top-down one group of everything; bottom-up one for every block."""
    times = np.where(coefficients.labelled, _label_weight(options), 1).astype(np.int64)
    if not options.budgets:
        everything = np.ones(len(coefficients), dtype=np.bool_)
        contributors = coefficients.holders
        if options.mechanism == "gamma-norm":  # a vector draw is one whole
            contributors = dict.fromkeys(schema.features, everything)
        mechanism = _mechanism(schema, len(coefficients), epsilon, noise, unit, options)
        yield Group(everything, times, mechanism, contributors)
        return
    for k, l in _blocks(schema):
        entries = coefficients.holders[k] & coefficients.holders[l]
        if k == l:  # what is k's alone
            for other in (mask for p, mask in coefficients.holders.items() if p != k):
                entries = entries & ~other
        scale = Fraction(_block_sensitivity(schema, k, l, unit)) / options.budgets[k, l]
        whole = np.ones(int(entries.sum()), dtype=np.bool_)
        yield Group(entries, times[entries], _laplace(scale, noise), dict.fromkeys((k, l), whole))


def _label_weight(options: Options) -> int:
    """The source's coefficients: x_a x_b and -2 y x_a (linear); x_a x_b / 8 and (1/2 - y) x_a, 1 to 4 (logistic)."""
    if options.sensitivity == "tight":
        return 1
    return 2 if options.loss == "linear" else 4


def _mechanism(
    schema: Schema, size: int, epsilon: Fraction, noise: str, unit: int, options: Options
) -> Exact | JointLaplace:
    m = len(schema.all_features)
    if options.sensitivity == "paper":
        ordered = options.release == "ordered"
        real = (
            objective_constants.linear(m + 1, ordered=ordered)
            if options.loss == "linear"
            else 8 * objective_constants.logistic(m + 1, ordered=ordered)
        )
        l1 = real * unit**2
    else:
        sensitivity = Moments(m, unit).record
        if options.mechanism == "gaussian" and options.delta is not None:
            return calibration.gaussian(sensitivity.l2_squared, size, epsilon, options.delta)
        if options.mechanism == "gamma-norm":
            return calibration.gamma_norm(sensitivity.l2, epsilon)
        l1 = Fraction(sensitivity.l1)
    return _laplace(l1 / epsilon, noise)


def _laplace(scale: Fraction, noise: str) -> DiscreteLaplace | JointLaplace:
    return JointLaplace.within(scale, JOINT_DISTANCE) if noise == "joint" else DiscreteLaplace(scale)


def _block_sensitivity(schema: Schema, k: str, l: str, unit: int) -> Fraction:
    """L1, of the block of k alone (its columns with each other and with the constant) or of the pair's products."""
    features, holder = schema.features, schema.label_holder
    if k == l:
        return Fraction(Moments(len(features[k]), unit, label=k == holder).record.l1)
    return Fraction(cross_block(len(features[k]) + (k == holder), len(features[l]) + (l == holder), unit).l1)
