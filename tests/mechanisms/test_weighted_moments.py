"""Weighted L1 sensitivities against brute force over all pairs of records of a tiny domain."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from mechanisms.moments import Moments
from mechanisms.weighted_moments import WeightedMoments, Weights

Change = tuple[int, int, bool]


def statistics(records: np.ndarray, features: int, sizes: list[int], bound: int, w: Weights) -> np.ndarray:
    """Records are (features, one code a category, label): released products with their weights, shape (n, sums)."""
    columns = [(records[:, a], 1, f"x{a}") for a in range(features)]
    for c, size in enumerate(sizes):
        codes = records[:, features + c]
        columns += [(bound * (codes == value), w.indicator, f"c{c}") for value in range(1, size)]
    fixed = [(np.full(len(records), bound), w.constant, "one"), (records[:, -1], w.label, "y")]
    pairs = [(a, b) for a, b in combinations([*columns, *fixed], 2) if a[2] != b[2]]
    squares = [(a, a) for a in columns if a[2].startswith("x")]
    return np.stack([a[1] * b[1] * a[0] * b[0] for a, b in pairs + squares], axis=1)


def largest_change(records: np.ndarray, released: np.ndarray, changing: np.ndarray) -> int:
    fixed = records[:, ~changing]
    return max(
        int(np.abs(released[(fixed == fixed[i]).all(axis=1)] - released[i]).sum(axis=1).max())
        for i in range(len(records))
    )


def parts(features: int, categories: int) -> list[Change]:
    return [(k, g, y) for k in range(features + 1) for g in range(categories + 1) for y in (False, True)]


@pytest.mark.parametrize("weights", [Weights(1, 1), Weights(2, 3), Weights(3, 1), Weights(1, 7), Weights(5, 2)])
@pytest.mark.parametrize(("features", "bound"), [(0, 2), (1, 1), (1, 3), (2, 2), (3, 1)])
def test_without_categories_it_is_attained(features: int, bound: int, weights: Weights) -> None:
    records = np.array(list(product(range(-bound, bound + 1), repeat=features + 1)))
    released = statistics(records, features, [], bound, weights)
    of = WeightedMoments(features, 0, bound, weights)
    for k, _, label in parts(features, 0):
        changing = np.array([a < k for a in range(features)] + [label])
        assert of.part(k, 0, label=label) == largest_change(records, released, changing)
    assert of.record == of.part(features, 0, label=True)


@pytest.mark.parametrize("weights", [Weights(1, 1, 1), Weights(2, 3, 2), Weights(1, 4, 1), Weights(3, 1, 2)])
@pytest.mark.parametrize(("features", "sizes", "bound"), [(0, [2], 1), (0, [3, 3], 1), (1, [3], 2), (2, [3, 2], 1)])
def test_with_categories_it_bounds_every_change(features: int, sizes: list[int], bound: int, weights: Weights) -> None:
    values = [range(-bound, bound + 1)] * features + [range(size) for size in sizes] + [range(-bound, bound + 1)]
    records = np.array(list(product(*values)))
    released = statistics(records, features, sizes, bound, weights)
    of = WeightedMoments(features, len(sizes), bound, weights)
    for k, g, label in parts(features, len(sizes)):
        changing = np.array([a < k for a in range(features)] + [c < g for c in range(len(sizes))] + [label])
        found = largest_change(records, released, changing)
        assert found <= of.part(k, g, label=label)
        if not g or (not features and min(sizes) > 2):  # a value that is no reference on both sides: two cells move
            assert found == of.part(k, g, label=label)
    assert (
        largest_change(records, released, np.ones(records.shape[1], dtype=bool)) >= 0.7 * of.record or min(sizes) == 2
    )


def test_categories_are_counted_once_and_not_as_columns() -> None:
    """Adult: 5 numbers and 6 categories with 38 indicators."""
    coded = WeightedMoments(5, 6, 1, Weights()).record
    assert coded == 27 + 2 * 6 * 7 + 2 * 15 and Moments(43, 1).record.l1 == 44 * 47 // 2
    assert 7 * coded < Moments(43, 1).record.l1


@pytest.mark.parametrize("features", [1, 5, 40])
def test_weights_of_one_are_the_plain_moments(features: int) -> None:
    assert WeightedMoments(features, 0, 16, Weights()).record == Moments(features, 16).record.l1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Weights(constant=-1),
        lambda: Weights(label=True),
        lambda: WeightedMoments(-1, 0, 1, Weights()),
        lambda: WeightedMoments(1, 0, 0, Weights()),
        lambda: WeightedMoments(1, 1, 1, Weights()).part(2, 0, label=True),
        lambda: WeightedMoments(1, 1, 1, Weights()).part(0, 2, label=True),
    ],
)
def test_refuses_bad_declarations(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^[\w, ]+=.*: .+$"):
        wrong()  # type: ignore[operator]  # a callable by construction
