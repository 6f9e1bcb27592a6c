"""Labels perturbed once, on an integer lattice, before any gradient exists (paper 4's GradPerturb, Algorithms 2 and 4).

The printed form g_y + u (g_{1-y} - g_y), computed in floats, reveals y: the rounding differs. With t = y + noise it
equals g_0 + t (g_1 - g_0), and multi-class g_y + sum_j u_j g_j equals sum_j s_j g_j with s = onehot(y) + u. (The
printed expansion in differences has a wrong sign: u = e_i - e_y must give g_i.) So t, or s, is drawn exactly, once,
and all else is a function of it. Units: LATTICE is one. A scalar t has width 1; s has a column for each class.

Exact laws, for a change of one label: t moves by LATTICE, s by 2 LATTICE in L1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms import calibration, validate
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomized_response import RandomizedResponse
from mechanisms.randomness import RandomWords
from protocols.schema import Floats
from smpc.errors import InputError
from smpc.ring import Integers

LATTICE = 1 << 16
MAX_CLASSES = 1000
LAWS = ("laplace", "discrete", "multiclass-laplace", "gaussian")


@dataclass(frozen=True)
class Perturbation(ABC):
    """(epsilon, delta)-DP for the change of one label."""

    epsilon: Fraction
    classes: int
    width: int
    delta: Fraction = Fraction(0)

    @property
    def text(self) -> str:
        """The law in full: what was drawn is kept under it for good, so no word of it may ever change."""
        return (
            f"{self._distribution}; epsilon {self.epsilon}; delta {self.delta}; classes {self.classes}; "
            f"width {self.width}; lattice {LATTICE}"
        )

    @property
    @abstractmethod
    def _distribution(self) -> str:
        """What a value is drawn from, with its exact parameters."""

    @abstractmethod
    def draw(self, labels: Integers, random: RandomWords) -> Integers:
        """Perturbed labels on the lattice, shape (n, width). InputError for a label outside 0 .. classes - 1."""

    @abstractmethod
    def log_likelihood(self, released: Integers) -> Floats:
        """ln P(released | label), up to a constant of the record: (n, width) gives (n, classes)."""

    def unbiased(self, released: Integers) -> Floats:
        """Values whose mean is the label (width 1) or its indicators, shape (n, width)."""
        return released / LATTICE


@dataclass(frozen=True)
class AddedNoise(Perturbation):
    """The label, or its indicators, plus independent integer noise."""

    mechanism: DiscreteLaplace | DiscreteGaussian = DiscreteLaplace(Fraction(LATTICE))  # noqa: RUF009  # frozen

    def __str__(self) -> str:
        return f"{self.mechanism} on labels in units of 1/{LATTICE}, width {self.width}"

    @property
    def _distribution(self) -> str:
        if isinstance(self.mechanism, DiscreteLaplace):
            return f"discrete Laplace noise, scale {self.mechanism.scale}"
        return f"discrete Gaussian noise, variance {self.mechanism.variance}"

    def draw(self, labels: Integers, random: RandomWords) -> Integers:
        exact = on_lattice(labels, self.classes, self.width)
        return exact + self.mechanism.draw(exact.size, random).reshape(exact.shape)

    def log_likelihood(self, released: Integers) -> Floats:
        values = released.astype(np.float64)  # the noise's density at a distance, no integer to be kept
        result = np.empty((len(values), self.classes))
        for label in range(self.classes):
            distance = values - on_lattice(np.array([label]), self.classes, self.width)
            if isinstance(self.mechanism, DiscreteLaplace):
                result[:, label] = -np.abs(distance).sum(axis=1) / float(self.mechanism.scale)
            else:
                result[:, label] = -(distance**2).sum(axis=1) / (2 * float(self.mechanism.variance))
        return result


@dataclass(frozen=True)
class Response(Perturbation):
    """k-ary randomised response: the truth, or any other class with equal probability."""

    def __str__(self) -> str:
        return str(RandomizedResponse(self.epsilon, self.classes))

    @property
    def _distribution(self) -> str:
        return "randomised response"

    def draw(self, labels: Integers, random: RandomWords) -> Integers:
        _check(labels, self.classes)
        answers = RandomizedResponse(self.epsilon, self.classes).respond(labels, random)
        return on_lattice(answers, self.classes, self.width)

    @property
    def _lie(self) -> float:
        """The probability of each wrong class."""
        return 1 / (math.exp(self.epsilon) + self.classes - 1)

    def log_likelihood(self, released: Integers) -> Floats:
        answers = released[:, 0] // LATTICE if self.width == 1 else released.argmax(axis=1)
        chosen: Floats = np.eye(self.classes)[answers]
        return chosen * float(self.epsilon)

    def unbiased(self, released: Integers) -> Floats:
        return (released / LATTICE - self._lie) / (1 - self.classes * self._lie)


def perturbation(law: str, epsilon: object, classes: int = 2, delta: object = None) -> Perturbation:
    """One of LAWS at `epsilon`; `delta` for "gaussian" alone.

    "laplace": Algorithm 2's scalar, two classes, scale 1/epsilon. "multiclass-laplace": Algorithm 4, scale 2/epsilon a
    class. "discrete": randomised response of any number of classes. "gaussian": the scalar along g_1 - g_0, with the
    least exact variance. Raises InputError.
    """
    if law not in LAWS:
        raise InputError(f"law = {law!r}: must be one of {', '.join(LAWS)}")
    try:
        wanted = validate.epsilon(epsilon)
        count = validate.integer("classes", classes, low=2)
        risk = None if delta is None else validate.delta(delta)
        if count > MAX_CLASSES:
            raise InputError(f"classes = {count}: at most {MAX_CLASSES}")
        if (risk is not None) != (law == "gaussian"):
            told = "delta is missing" if delta is None else f"delta = {delta}"
            raise InputError(f"{told}: law = 'gaussian' needs one in (0, 1), the others have none")
        if law in ("laplace", "gaussian") and count > 2:
            raise InputError(
                f"law = {law!r} with classes = {count}: it is for 2; say 'multiclass-laplace' or 'discrete'"
            )
        if risk is not None:
            noise = calibration.gaussian(LATTICE**2, 1, wanted, risk)
            return AddedNoise(wanted, 2, 1, risk, mechanism=noise)
        if law == "discrete":
            return Response(wanted, count, 1 if count == 2 else count)
        moves, width = (1, 1) if law == "laplace" else (2, count)
        return AddedNoise(wanted, count, width, mechanism=DiscreteLaplace(moves * LATTICE / wanted))
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, InputError) else InputError(str(error)) from None


def on_lattice(labels: Integers, classes: int, width: int) -> Integers:
    """Labels without noise in lattice units: themselves (width 1) or their indicators, shape (n, width)."""
    _check(labels, classes)
    if width == 1:
        return np.asarray(labels.reshape(-1, 1) * LATTICE, dtype=np.int64)
    indicators: Integers = np.eye(width, dtype=np.int64)[labels] * LATTICE
    return indicators


def _check(labels: Integers, classes: int) -> None:
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(f"labels are {labels.dtype} of shape {labels.shape}: need integers of shape (records,)")
    if labels.size and not (labels.min() >= 0 and labels.max() < classes):
        raise InputError(f"labels {labels.min()}..{labels.max()} leave 0..{classes - 1}: code the classes so")
