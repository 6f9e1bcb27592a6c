"""Which sums get the less noise: public weights of columns, chosen from the public shape of a job alone.

A gradient's noise, at weights w of the features, is that of the label's sums and |w| times that of the features'. A
weight t of the label makes the former smaller and the sensitivity, and so the latter, larger; a weight s of the
constant does the same for the columns' means and the label's. `balanced` takes the whole numbers for which

    sensitivity(s, t)^2 (1 / t^2 + |w|^2) (1 + 1 / s^2),   |w| = 1/2

is least. An indicator counts 2, so that the two values of a category are as far apart as the ends of a feature.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from mechanisms.weighted_moments import WeightedMoments, Weights
from protocols.functional.options import Options
from protocols.functional.quadratic import PRIOR_NORM
from protocols.schema import Column, Schema
from smpc.ring import Integers

EQUAL = Weights()
_LARGEST = 16
_FINE = 64  # lattice steps of a column: the choice is the same for every number of bits
_INDICATOR = 2


def chosen(schema: Schema, options: Options) -> Weights:
    """The weights of a job with these options, once `balanced` has settled its schema."""
    return balanced(schema)[1] if options.weights == "balanced" else EQUAL


def balanced(schema: Schema) -> tuple[Schema, Weights]:
    """Weights, and the schema that they are for: categories stay declared only where that lowers the noise."""
    (ours, noise), (plain_ours, plain_noise) = (
        _best(*shape_of(schema.all_features)),
        _best(len(schema.all_features), 0),
    )
    return (schema, ours) if noise <= plain_noise else (without_categories(schema), plain_ours)


def without_categories(schema: Schema) -> Schema:
    """The same columns, indicators as any other column with bounds 0 and 1."""
    features = {p: tuple(replace(column, category=None) for column in held) for p, held in schema.features.items()}
    return replace(schema, features=features)


def shape_of(columns: tuple[Column, ...]) -> tuple[int, int]:
    """How many columns are no indicators, and how many categories the others belong to."""
    categories = [column.category for column in columns]
    return categories.count(None), len({category for category in categories if category is not None})


def moments_of(schema: Schema, bound: int, weights: Weights) -> WeightedMoments:
    """The released sums of a schema with entries in [-bound, bound]."""
    return WeightedMoments(*shape_of(schema.all_features), bound, weights)


def of_columns(schema: Schema, weights: Weights) -> Integers:
    """The weight of each column of the Gram matrix: the constant, then every party's columns; shape (1 + D,)."""
    result = [weights.constant]
    for party in schema.widths:
        result += [1 if column.category is None else weights.indicator for column in schema.features[party]]
        result += [weights.label] if party == schema.label_holder else []
    return np.array(result, dtype=np.int64)


@cache
def _best(features: int, categories: int) -> tuple[Weights, float]:
    """The best weights, and what they leave of the quantity above."""

    def noise(weights: Weights) -> float:
        sensitivity = WeightedMoments(features, categories, _FINE, weights).record / _FINE**2
        return sensitivity**2 * (1 / weights.label**2 + PRIOR_NORM**2) * (1 + 1 / weights.constant**2)

    numbers = range(1, _LARGEST + 1)
    best = min((Weights(s, t, _INDICATOR) for s in numbers for t in numbers), key=noise)
    return best, noise(best)
