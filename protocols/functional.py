"""Vertically partitioned functional mechanism, linear loss (paper 1; Zhang et al. 2012 for the mechanism).

The objective sum_i (y_i - x_i'w)^2 needs the data only through the Gram matrix of the columns. Its coefficients become
secret shares, get exact Laplace noise, and only then are opened, to the server, which minimises the noisy form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from mechanisms import validate
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.guarantee import Guarantee
from mechanisms.joint_laplace import JointLaplace
from mechanisms.moments import Moments
from protocols.quadratic import Coefficients, Mask, in_original_units, minimise
from protocols.release import Release
from protocols.schema import Floats, Schema, scaled
from smpc import fixedpoint
from smpc.errors import InputError
from smpc.ring import Integers
from smpc.session import Cast, Held, Session, Shared

ROUNDING_SHARE = Fraction(1, 100)  # of the noise's standard deviation: what rounding may add at most
TAIL_PROBABILITY = Fraction(1, 2**40)  # that any noise leaves the room kept for it in the ring
NOISE_ORDERS = ("shares", "joint", "paper")
JOINT_DISTANCE = Fraction(1, 2**56)  # of a joint draw to the exact law: what 64-bit thresholds reach at any scale
JOINT_DELTA = Fraction(1, 2**30)  # the most that this distance may cost: far below one over any number of people


@dataclass(frozen=True)
class Plan:
    """The public numbers of a job: fraction bits, noise, ridge."""

    schema: Schema
    epsilon: Fraction
    noise: str
    bits: int
    mechanism: DiscreteLaplace | JointLaplace

    @classmethod
    def make(cls, schema: Schema, *, epsilon: Fraction, noise: str = "shares", bits: int | None = None) -> Plan:
        """Without `bits`: the fewest at which rounding stays under 1 % of the noise, or what the ring holds."""
        epsilon = validate.epsilon(epsilon, allow_weak=True)
        if noise not in NOISE_ORDERS:
            raise InputError(f"noise = {noise!r}: must be one of {', '.join(NOISE_ORDERS)}")
        if bits is not None:
            plan = cls._with(schema, epsilon, noise, bits)
            plan.check_ring()
            return plan
        # each factor is off by at most 2^-(bits + 1), so a sum over all rows by at most rows * 2^-bits
        allowed = float(ROUNDING_SHARE) * math.sqrt(2) * Moments(len(schema.all_features), 1).record.l1 / float(epsilon)
        wanted = min(max(1, math.ceil(math.log2(schema.rows / allowed))), fixedpoint.MAX_FRACTION_BITS)
        for fewer in range(wanted, 0, -1):
            plan = cls._with(schema, epsilon, noise, fewer)
            try:
                plan.check_ring()
            except InputError:
                continue
            return plan
        raise InputError(f"{schema.rows} rows with epsilon = {epsilon} fit no fixed point: raise epsilon")

    @classmethod
    def _with(cls, schema: Schema, epsilon: Fraction, noise: str, bits: int) -> Plan:
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= fixedpoint.MAX_FRACTION_BITS:
            raise InputError(f"fraction_bits = {bits}: must be a whole number from 1 to {fixedpoint.MAX_FRACTION_BITS}")
        sensitivity = Moments(len(schema.all_features), 1 << bits).record.l1
        scale = Fraction(sensitivity) / epsilon
        try:
            mechanism = JointLaplace.within(scale, JOINT_DISTANCE) if noise == "joint" else DiscreteLaplace(scale)
        except ValueError as error:
            raise InputError(f"fraction_bits = {bits}: {error}") from None
        plan = cls(schema, epsilon, noise, bits, mechanism)
        if plan.delta > JOINT_DELTA:
            raise InputError(
                f"epsilon = {epsilon}: joint noise would cost delta {float(plan.delta):.1e}, at most "
                f"{float(JOINT_DELTA):.1e} is accepted; lower epsilon or take noise = 'shares'"
            )
        return plan

    def check_ring(self) -> None:
        """Raises InputError if a coefficient with its noise could leave the ring."""
        contributors = 1 if self.noise == "joint" else 2
        draws = contributors * len(Coefficients.of(self.schema))
        tail = contributors * self.mechanism.tail(TAIL_PROBABILITY / draws)
        fixedpoint.check_sum(self.schema.rows, Fraction(1), self.bits, tail)

    @property
    def delta(self) -> Fraction:
        """What the finite precision of joint noise costs; 0 for exact noise."""
        if not isinstance(self.mechanism, JointLaplace):
            return Fraction(0)
        return self.mechanism.delta(len(Coefficients.of(self.schema)), self.epsilon)

    def guarantee(self, cast: Cast) -> Guarantee:
        """Who is protected against whom: known before anything is sent."""
        return Guarantee.for_release(
            order=self.noise,
            epsilon=self.epsilon,
            parties=cast.parties,
            server=cast.server,
            dealer=cast.dealer,
            mechanism=str(self.mechanism),
            delta=self.delta,
            accountant="pure sum and distance to the exact law" if self.delta else "pure sum",
        )

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of one draw, in units of the coefficients of columns scaled to [-1, 1]."""
        return self.mechanism.standard_deviation / 4.0**self.bits

    @property
    def ridge(self) -> float:
        """Twice the spectral norm that a symmetric matrix of such noise has about: public, independent of the data."""
        return 4 * self.noise_deviation * math.sqrt(len(self.schema.all_features))

    def prepare(self, party: str, table: Floats) -> Integers:
        """A party's table in fixed point: scaled to [-1, 1], rounded; shape (width, rows)."""
        if table.shape[1:] != (self.schema.rows,):
            raise InputError(f"{party}: the table has {table.shape[1:]} rows, the job {self.schema.rows}")
        return fixedpoint.encode(scaled(self.schema.columns(party), table), self.bits, name=party)

    def solve(self, coefficients: Coefficients, released: Integers) -> Floats:
        """Intercept and weights in the columns' own units, shape (1 + features,)."""
        matrix = coefficients.matrix(self.schema.rows, self.bits, released)
        return in_original_units(self.schema, minimise(matrix, coefficients.label, self.ridge))


def fit(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> Release:
    """A linear model of vertically split columns, epsilon-DP for one record.

    `tables[p]`, held by p, has shape (width, rows): the columns `plan.schema.columns(p)`. The order of noise and
    opening is `plan.noise`. Returns the same release to every participant.
    """
    coefficients = Coefficients.of(plan.schema)
    orders = {"shares": _noise_on_shares, "joint": _noise_jointly, "paper": _noise_after_opening}
    weights = orders[plan.noise](s, tables, plan, coefficients)
    return Release(
        names=("intercept", *(column.name for column in plan.schema.all_features)),
        values=weights,
        guarantee=plan.guarantee(s.cast),
    )


def _columns(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> dict[str, Held[Integers]]:
    return {party: s.at(party, plan.prepare, party, tables[party]) for party in plan.schema.widths}


def _gram(s: Session, columns: dict[str, Held[Integers]], plan: Plan) -> Shared:
    return s.gram(columns, rows=plan.schema.rows, widths=plan.schema.widths, bits=plan.bits)


def _noise_on_shares(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan, coefficients: Coefficients) -> Floats:
    """Noise before opening: block (k, k) by P_k, block (k, l) by P_k and by P_l, one full draw each.

    step  from -> to      message             the receiver learns
    1     dealer -> P_k   corrections         nothing: uniform
    2     P_k -> P_l      masked columns      nothing: uniform without the dealer's seeds
    3     P_k -> server   noisy coefficients  their sum, epsilon-DP; no single share, no single party's noise
    4     server -> all   model               post-processing of step 3
    """
    noise = s.draw_noise(plan.mechanism, coefficients.holders)
    gram = _gram(s, _columns(s, tables, plan), plan)  # 1, 2
    noisy = s.add_noise(s.take(gram, coefficients.first, coefficients.second), noise)
    released = s.reveal(noisy, to=s.cast.server, message="noisy coefficients")  # 3
    model = s.at(s.cast.server, plan.solve, coefficients, released)
    return s.publish(model, shape=(1 + len(plan.schema.all_features),), message="model")  # 4


def _noise_jointly(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan, coefficients: Coefficients) -> Floats:
    """Noise before opening, one draw a coefficient, made on shares by all parties and known to nobody.

    step  from -> to      message             the receiver learns
    1     dealer -> P_k   corrections         nothing: uniform
    2     P_k -> P_l      masked columns      nothing: uniform without the dealer's seeds
    3     dealer -> P_k   corrections         nothing: uniform
    4     P_k -> P_l      masked noise bits   nothing: uniform without the dealer's seeds
    5     P_k -> server   noisy coefficients  their sum, (epsilon, delta)-DP; no single share, none of the noise
    6     server -> all   model               post-processing of step 5
    """
    gram = _gram(s, _columns(s, tables, plan), plan)  # 1, 2
    mechanism = cast(JointLaplace, plan.mechanism)  # as Plan.make has it for this order
    noisy = s.add_joint_noise(s.take(gram, coefficients.first, coefficients.second), mechanism)  # 3, 4
    released = s.reveal(noisy, to=s.cast.server, message="noisy coefficients")  # 5
    model = s.at(s.cast.server, plan.solve, coefficients, released)
    return s.publish(model, shape=(1 + len(plan.schema.all_features),), message="model")  # 6


def _noise_after_opening(
    s: Session, tables: Mapping[str, Held[Floats]], plan: Plan, coefficients: Coefficients
) -> Floats:
    """The paper's order (Algorithm 1): a party sees its exact blocks, adds the noise, and knows the noise.

    step  from -> to      message             the receiver learns
    1     dealer -> P_k   corrections         nothing: uniform
    2     P_k -> P_l      masked columns      nothing: uniform without the dealer's seeds
    3     P_l -> P_k      exact block         the exact coefficients of its columns with P_l's: no privacy against it
    4     P_k -> server   noisy block         epsilon-DP coefficients
    5     server -> all   model               post-processing of step 4
    """
    first_holder = _first_holder(coefficients)
    noise = s.draw_noise(plan.mechanism, first_holder)
    gram = _gram(s, _columns(s, tables, plan), plan)  # 1, 2
    exact = {}
    for party, mask in first_holder.items():
        block = s.take(gram, coefficients.first[mask], coefficients.second[mask])
        exact[party] = s.reveal(block, to=party, message="exact block", unprotected=True)  # 3
    sent = []
    for party, mask in first_holder.items():
        noisy = s.at(party, _perturb, exact[party], noise.draws[party], mask)
        sent.append(s.send(noisy, to=s.cast.server, shape=(int(mask.sum()),), message="noisy block"))  # 4

    def assemble(blocks: list[Integers]) -> Floats:
        released = np.zeros(len(coefficients), dtype=np.int64)
        for mask, block in zip(first_holder.values(), blocks, strict=True):
            released[mask] = block
        return plan.solve(coefficients, released)

    model = s.at(s.cast.server, assemble, sent)
    return s.publish(model, shape=(1 + len(plan.schema.all_features),), message="model")  # 5


def _perturb(block: Integers, draws: Integers, mask: Mask) -> Integers:
    return block + draws[mask]


def _first_holder(coefficients: Coefficients) -> dict[str, Mask]:
    """For every party the coefficients that it opens and perturbs: of two holders, the first."""
    taken = np.zeros(len(coefficients), dtype=np.bool_)
    mine = {}
    for party, mask in coefficients.holders.items():
        mine[party] = mask & ~taken
        taken |= mask
    return mine
