"""A whole release in plain NumPy: clip, sum products, every party's noise, opening, minus what the colluders know.

`Release` is correct. Each subclass in `mutants` overrides one method with one mistake. Attacked on worst-case
neighbours: two records, of which one goes from one corner of the bounds to another; that moves every released sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.audit import Bound, epsilon_lower_bound, events
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.moments import Moments
from mechanisms.randomness import RandomWords, SecureRandom

Integers = npt.NDArray[np.int64]
RAW = np.array([[[9, 9], [2, 2]], [[0, -9], [2, 2]]])  # two tables of two records (x, y), unclipped


@dataclass(frozen=True)
class Release:
    """Second moments of (x, y) and an intercept, epsilon-DP against all parties but one."""

    bound: int = 2
    epsilon: Fraction = Fraction(1)
    parties: int = 2
    colluders: int = 1
    repeats: int = 1

    def sensitivity(self) -> int:
        return Moments(1, self.bound).record.l1

    def scale(self) -> Fraction:
        return self.sensitivity() / self.epsilon

    def statistics(self, table: Integers) -> Integers:
        """Sums of x x, x y, S x, S y over records, shape (4,)."""
        return self.products(np.clip(table, -self.bound, self.bound)).sum(axis=0)

    def products(self, table: Integers) -> Integers:
        x, y = table[:, 0], table[:, 1]
        return np.stack([x * x, x * y, self.bound * x, self.bound * y], axis=1)

    def random(self, party: int) -> RandomWords:
        return SecureRandom()

    def draw(self, party: int, runs: int) -> Integers:
        """One party's noise, shape (runs, repeats, 4)."""
        shape = (runs, self.repeats, 4)
        return DiscreteLaplace(self.scale()).draw(int(np.prod(shape)), self.random(party)).reshape(shape)

    def open(self, table: Integers, draws: list[Integers]) -> Integers:
        return self.statistics(table) + sum(draws)

    def view(self, table: Integers, runs: int) -> tuple[Integers, Integers]:
        """What the colluders make of an opening: minus their own draws; and one draw of theirs."""
        draws = [self.draw(party, runs) for party in range(self.parties)]
        known = draws[self.parties - self.colluders :]
        opened = self.open(table, draws)
        return opened - sum(known), known[0] if known else np.zeros_like(opened)


def attack(release: Release, runs: int = 200_000, alpha: float = 1e-9) -> Bound:
    """The best of the pre-registered projections of the view, each at its part of alpha.

    loss: the exact log-likelihood ratio of the honest party's Laplace noise times its scale; linear: the distance
    along the change; stolen: the loss after subtracting a colluder's draw once more; change: successive repeats.
    """
    honest = Release(release.bound, release.epsilon)
    first, second = (honest.statistics(table) for table in RAW)
    sign = np.sign(second - first)

    def loss(x: Integers) -> Integers:
        return (np.abs(x - first) - np.abs(x - second)).sum(axis=(1, 2))

    def linear(x: Integers) -> Integers:
        return ((2 * x - first - second) * sign).sum(axis=(1, 2))

    projections = {
        "loss": lambda opened, own: loss(opened),
        "linear": lambda opened, own: linear(opened),
        "stolen": lambda opened, own: loss(opened - own),
        "change": lambda opened, own: loss(np.diff(opened, axis=1, prepend=0)[:, -1:]),
    }
    spread = honest.sensitivity() * release.repeats
    views = [release.view(table, runs) for table in RAW]
    bounds = []
    for name, project in projections.items():
        outcomes = [project(*view) for view in views]
        bound = epsilon_lower_bound(outcomes[0], outcomes[1], events(0, spread / 4), alpha=alpha / len(projections))
        bounds.append(Bound(bound.value, f"{name}: {bound.event}", alpha))
    return max(bounds, key=lambda bound: bound.value)
