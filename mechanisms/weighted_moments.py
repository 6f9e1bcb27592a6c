"""L1 sensitivity of weighted second moments: some columns count more, and some are indicators of categories.

A record has m features in [-S, S], c categories, a label in [-S, S] and the constant S; integers. A category has two
or more values and an indicator, S or 0, for each value but one: at most one of them is S. Released, each once, are the
products of two different columns (not of two indicators of one category: always 0) and the squares of features; an
indicator's square is S times itself. Before noise every product is multiplied by the weights of its two columns: 1 for
a feature, and public integers s, t, u for the constant, the label and the indicators. Noise of one scale then falls
unevenly on the products, less on those with large weights.

Let k features change, p_a = |x_a - x_a'|, P their sum, Q the sum of squares, and q the change of the label; let g of
the c categories change. As in `moments`, with slope = S (m + 1 + s + t + u (c - g)) for the m features, the constant,
the label and the categories that stay:

    features with features, constant, label, staying categories    slope P - (P^2 + Q) / 2 + q (S m t - t P)
    label with constant and staying categories                     q t S (s + u (c - g))
    a changing category with constant, label, features             at most 2 u S^2 (s + t + m)
    two categories, one or both changing                           at most 2 u^2 S^2

The sum is linear in q <= 2S, so that q = 0 or q = 2S is largest, and the rest is as in `moments`. It is attained
without categories. With them it is an upper bound: it takes |x| + |x'| for 2S also where other terms ask for less.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms import validate


@dataclass(frozen=True)
class Weights:
    """s, t and u: what the constant, the label and indicators count, where a feature counts 1. 0: there is none."""

    constant: int = 1
    label: int = 1
    indicator: int = 1

    def __post_init__(self) -> None:
        for name in ("constant", "label", "indicator"):
            validate.integer(name, getattr(self, name))


@dataclass(frozen=True)
class WeightedMoments:
    """Products of `features` columns, `categories`, label and constant; entries are integers in [-bound, bound]."""

    features: int
    categories: int
    bound: int
    weights: Weights

    def __post_init__(self) -> None:
        validate.integer("features", self.features)
        validate.integer("categories", self.categories)
        validate.integer("bound", self.bound, low=1)

    @property
    def record(self) -> int:
        """One whole record is replaced."""
        return self.part(self.features, self.categories, label=True)

    def part(self, features: int, categories: int, *, label: bool) -> int:
        """One record changes in `features` of the columns, in `categories` of those, and in the label if `label`."""
        for name, changing, all_of_them in (
            ("features", features, self.features),
            ("categories", categories, self.categories),
        ):
            if validate.integer(name, changing) > all_of_them:
                raise ValueError(f"{name}={changing} exceed the {all_of_them} of {self}: count only its columns")
        w, staying = self.weights, self.categories - categories
        around = w.constant + w.indicator * staying
        slope = self.bound * (self.features + 1 + around + w.label)
        largest = self._spread(features, slope)
        if label:
            flipped = 2 * self.bound**2 * w.label * (self.features + around)
            largest = max(largest, flipped + self._spread(features, slope - 2 * self.bound * w.label))
        changing_alone = categories * w.indicator * (w.constant + w.label + self.features)
        changing_pairs = w.indicator**2 * (categories * (categories - 1) // 2 + categories * staying)
        return largest + 2 * self.bound**2 * (changing_alone + changing_pairs)

    def _spread(self, count: int, slope: int) -> int:
        """The maximum of slope P - (P^2 + Q) / 2 over integers 0 <= p_1, ..., p_count <= 2 bound."""
        level, raised = divmod(max(0, slope), count + 1)
        if level >= 2 * self.bound:
            level, raised = 2 * self.bound, 0
        return count * level * slope - count * (count + 1) * level**2 // 2 + raised * (raised - 1) // 2
