"""k-ary randomised response, exact: the truth with probability e^epsilon / (e^epsilon + k - 1), else another category.

It is epsilon-DP for a change of the answer (Kairouz, Oh and Viswanath 2014; the discrete mechanism of paper 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from flint import arb

from mechanisms import validate
from mechanisms.bernoulli import bernoulli_near, uniform_integers
from mechanisms.enclosure import ball
from mechanisms.randomness import RandomWords


@dataclass(frozen=True)
class RandomizedResponse:
    """Randomises answers 0 .. categories - 1 at `epsilon`."""

    epsilon: Fraction
    categories: int = 2

    def __post_init__(self) -> None:
        validate.epsilon(validate.fraction("epsilon", self.epsilon), allow_weak=True)
        validate.integer("categories", self.categories, low=2)

    def __str__(self) -> str:
        return f"{self.categories}-ary randomised response, epsilon {float(self.epsilon):.6g}"

    @property
    def truth_probability(self) -> float:
        """Rounded; good to 2^-48, as `bernoulli_near` needs."""
        return 1 / (1 + (self.categories - 1) * float(np.exp(-min(float(self.epsilon), 700.0))))

    def respond(self, answers: npt.NDArray[np.int64], random: RandomWords) -> npt.NDArray[np.int64]:
        """Randomised answers, shape (n,) as given. Raises ValueError for an answer that is no category."""
        if answers.size and not (answers.min() >= 0 and answers.max() < self.categories):
            raise ValueError(f"answers={answers.min()}..{answers.max()} leave 0..{self.categories - 1}: code them so")
        truthful = bernoulli_near(np.full(len(answers), self.truth_probability), self._truth, random)
        shift = 1 + uniform_integers(self.categories - 1, len(answers), random)
        return np.where(truthful, answers, (answers + shift) % self.categories)

    def _truth(self, _: int) -> arb:
        return 1 / (1 + (self.categories - 1) * (-ball(self.epsilon)).exp())
