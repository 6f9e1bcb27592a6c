"""Coefficients that are perturbed and opened together: their noise, and who adds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from mechanisms import calibration, objective_constants
from mechanisms.accounting import compose
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.gamma_norm import GammaNorm
from mechanisms.gaussian_privacy import GaussianLoss
from mechanisms.joint_laplace import JointLaplace
from mechanisms.moments import Moments, cross_block
from mechanisms.sensitivity import Sensitivity
from protocols.functional import weights
from protocols.functional.options import Options, Pair
from protocols.functional.quadratic import Coefficients, Mask
from protocols.schema import Floats, Schema
from smpc.ring import Integers

JOINT_DISTANCE = Fraction(1, 2**56)  # of a joint draw to the exact law: what 64-bit thresholds reach at any scale

Exact = DiscreteLaplace | DiscreteGaussian | GammaNorm


@dataclass(frozen=True)
class Group:
    """Coefficients that are perturbed and opened together, at public positions.

    `times`: public factors (the source's weights, or ours). `contributors[p]`: to which of them p adds a full draw.
    """

    entries: Mask
    times: Integers
    mechanism: Exact | JointLaplace
    contributors: Mapping[str, Mask]

    @property
    def size(self) -> int:
        return len(self.times)

    @property
    def deviations(self) -> Floats:
        """Standard deviations of one draw on each coefficient, divided by its factor; in units of the lattice."""
        if isinstance(self.mechanism, GammaNorm):
            one = self.mechanism.standard_deviation(self.size)
        else:
            one = self.mechanism.standard_deviation
        deviations: Floats = one / self.times
        return deviations

    def epsilon(self, change: Sensitivity, delta: Fraction) -> Fraction:
        """What the sums under one draw tell, at `delta`, of a change of this size."""
        if isinstance(self.mechanism, DiscreteGaussian):
            loss = GaussianLoss(Fraction(change.l2_squared), self.mechanism.variance, self.size)
            return compose([loss], delta).epsilon
        if isinstance(self.mechanism, GammaNorm):
            return change.l2 / self.mechanism.scale
        return change.l1 / self.mechanism.scale

    def draws(self, noise: str) -> Integers:
        """How many draws fall on each coefficient; shape (size,)."""
        if noise != "shares":
            return np.ones(self.size, dtype=np.int64)
        return np.asarray(np.add.reduce([mask.astype(np.int64) for mask in self.contributors.values()]))


def blocks(schema: Schema) -> list[Pair]:
    """Every party's own block, then every pair's."""
    return [*((p, p) for p in schema.features), *combinations(schema.features, 2)]


def make_groups(
    schema: Schema, coefficients: Coefficients, epsilon: Fraction, noise: str, unit: int, options: Options
) -> Iterator[Group]:
    """Top-down one group of everything; bottom-up one for every block."""
    times = _times(schema, coefficients, options)
    if not options.budgets:
        everything = np.ones(len(coefficients), dtype=np.bool_)
        contributors = coefficients.holders
        if options.mechanism == "gamma-norm":  # a vector draw is one whole
            contributors = dict.fromkeys(schema.features, everything)
        mechanism = _mechanism(schema, len(coefficients), epsilon, noise, unit, options)
        yield Group(everything, times, mechanism, contributors)
        return
    for k, l in blocks(schema):
        entries = coefficients.holders[k] & coefficients.holders[l]
        if k == l:  # what is k's alone
            for other in (mask for p, mask in coefficients.holders.items() if p != k):
                entries = entries & ~other
        scale = Fraction(_block_sensitivity(schema, k, l, unit)) / options.budgets[k, l]
        whole = np.ones(int(entries.sum()), dtype=np.bool_)
        yield Group(entries, times[entries], _laplace(scale, noise), dict.fromkeys((k, l), whole))


def _times(schema: Schema, coefficients: Coefficients, options: Options) -> Integers:
    """Ours (see `weights`), or the source's: x_a x_b and -2 y x_a (linear), x_a x_b / 8 and (1/2 - y) x_a."""
    if options.sensitivity == "tight":
        columns = weights.of_columns(schema, weights.chosen(schema, options))
        return columns[coefficients.first] * columns[coefficients.second]
    label = 2 if options.loss == "linear" else 4
    return np.where(coefficients.labelled, label, 1).astype(np.int64)


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
    elif options.mechanism == "laplace":
        l1 = Fraction(weights.moments_of(schema, unit, weights.chosen(schema, options)).record)
    else:
        sensitivity = Moments(m, unit).record
        if options.mechanism == "gaussian" and options.delta is not None:
            return calibration.gaussian(sensitivity.l2_squared, size, epsilon, options.delta)
        return calibration.gamma_norm(sensitivity.l2, epsilon)
    return _laplace(l1 / epsilon, noise)


def _laplace(scale: Fraction, noise: str) -> DiscreteLaplace | JointLaplace:
    return JointLaplace.within(scale, JOINT_DISTANCE) if noise == "joint" else DiscreteLaplace(scale)


def _block_sensitivity(schema: Schema, k: str, l: str, unit: int) -> Fraction:
    """L1, of the block of k alone (its columns with each other and with the constant) or of the pair's products."""
    features, holder = schema.features, schema.label_holder
    if k == l:
        return Fraction(Moments(len(features[k]), unit, label=k == holder).record.l1)
    return Fraction(cross_block(len(features[k]) + (k == holder), len(features[l]) + (l == holder), unit).l1)
