"""Epsilon, and delta for Gaussian noise: what a release may cost, and the vector noise that it buys."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from mechanisms import calibration, validate
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gamma_norm import GammaNorm
from smpc.errors import InputError

TAIL_PROBABILITY = Fraction(1, 2**40)  # that any noise leaves the room kept for it in the ring


@dataclass(frozen=True)
class Budget:
    """Without `delta` pure epsilon, by noise of density exp(-|x| / scale); with it discrete Gaussian noise."""

    epsilon: Fraction
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        try:
            validate.epsilon(self.epsilon, allow_weak=True)
            if self.delta is not None:
                validate.delta(self.delta)
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from None

    def noise(self, l2: Fraction, dimension: int) -> GammaNorm | DiscreteGaussian:
        """For integer vectors of L2 sensitivity `l2`."""
        if not l2:
            raise InputError("sensitivity = 0: every auxiliary sample is zero, so that there is nothing to learn")
        try:
            if self.delta is None:
                return calibration.gamma_norm(l2, self.epsilon)
            return calibration.gaussian(l2**2, dimension, self.epsilon, self.delta)
        except ValueError as error:
            raise InputError(str(error)) from None

    @property
    def accountant(self) -> str:
        return "pure sum" if self.delta is None else "analytic Gaussian or zCDP"


def tail(noise: GammaNorm | DiscreteGaussian, dimension: int, draws: int) -> int:
    """What no coordinate of any of `draws` vectors exceeds, but for a probability of 2^-40."""
    if isinstance(noise, GammaNorm):
        return noise.tail(TAIL_PROBABILITY / draws, dimension)
    return noise.tail(TAIL_PROBABILITY / (draws * dimension))
