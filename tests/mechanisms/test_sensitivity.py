"""Every sensitivity against brute force over all pairs of records of a tiny domain."""

from itertools import combinations, product

import numpy as np
import pytest

from mechanisms.moments import Moments, cross_block
from mechanisms.sensitivity import Sensitivity, signed_sums, sums, vote_counts


def brute_force(statistics: np.ndarray, records: np.ndarray, changing: np.ndarray, chunk: int = 128) -> tuple[int, int]:
    """Largest L1 and squared L2 distance of the statistics of two records that agree outside `changing`."""
    l1 = l2 = 0
    fixed = records[:, ~changing]
    for start in range(0, len(records), chunk):
        same = (fixed[start : start + chunk, None] == fixed[None]).all(axis=2)
        change = np.abs(statistics[start : start + chunk, None] - statistics[None]) * same[:, :, None]
        l1 = max(l1, int(change.sum(axis=2).max()))
        l2 = max(l2, int((change**2).sum(axis=2).max()))
    return l1, l2


def moments_of(records: np.ndarray, features: int, label: bool, intercept: bool, bound: int) -> np.ndarray:
    columns = [records[:, a] for a in range(features)]
    named = columns + ([np.full(len(records), bound)] if intercept else []) + ([records[:, features]] if label else [])
    released = [a * b for a, b in combinations(named, 2)] + [x * x for x in columns]
    return np.stack(released, axis=1)


CASES = [
    (features, bound, label, intercept)
    for features, bound in [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1)]
    for label in (True, False)
    for intercept in (True, False)
    if features + label + intercept >= 2 or features == 1
]


@pytest.mark.parametrize(("features", "bound", "label", "intercept"), CASES)
def test_moments(features: int, bound: int, label: bool, intercept: bool) -> None:
    width = features + label
    records = np.array(list(product(range(-bound, bound + 1), repeat=width)))
    statistics = moments_of(records, features, label, intercept, bound)
    moments = Moments(features, bound, label=label, intercept=intercept)
    for changed in range(features + 1):
        for label_changes in {False, label}:
            changing = np.array([a < changed for a in range(features)] + [label_changes] * label, dtype=bool)
            expected = moments.part(changed, label=label_changes)
            assert (expected.l1, expected.l2_squared) == brute_force(statistics, records, changing)
    assert moments.record == moments.part(features, label=label)
    if label:
        assert moments.label_flip == moments.part(0, label=True)


@pytest.mark.parametrize(("features", "bound"), [(1, 1), (2, 1), (3, 1), (2, 2)])
def test_moments_with_a_binary_label_are_as_sensitive(features: int, bound: int) -> None:
    """The logistic objective's label is +-S: the same constants hold and are attained."""
    records = np.array([(*x, y) for x in product(range(-bound, bound + 1), repeat=features) for y in (-bound, bound)])
    for intercept in (True, False):
        statistics = moments_of(records, features, True, intercept, bound)
        expected = Moments(features, bound, intercept=intercept).record
        assert (expected.l1, expected.l2_squared) == brute_force(statistics, records, np.ones(features + 1, dtype=bool))


@pytest.mark.parametrize("features", [1, 2, 7, 13, 800])
def test_moments_closed_form_of_a_whole_record(features: int) -> None:
    bound, d = 2**10, features + 1
    assert Moments(features, bound).record.l1 == bound**2 * d * (d + 3) // 2
    assert Moments(features, bound).record.l2_squared == 4 * bound**4 * ((features + 2) ** 2 // 4)
    real = bound**2 * features * (features + 2) ** 2 / (2 * (features + 1))
    assert real - (features + 1) / 8 <= Moments(features, bound, intercept=False).record.l1 <= real


@pytest.mark.parametrize(("rows", "columns", "bound"), [(1, 1, 1), (1, 2, 2), (2, 2, 1), (1, 3, 1), (1, 1, 4)])
def test_cross_block(rows: int, columns: int, bound: int) -> None:
    records = np.array(list(product(range(-bound, bound + 1), repeat=rows + columns)))
    statistics = (records[:, :rows, None] * records[:, None, rows:]).reshape(len(records), -1)
    expected = cross_block(rows, columns, bound)
    assert (expected.l1, expected.l2_squared) == brute_force(statistics, records, np.ones(rows + columns, dtype=bool))
    for held in (slice(0, rows), slice(rows, rows + columns)):
        changing = np.zeros(rows + columns, dtype=bool)
        changing[held] = True
        assert (expected.l1, expected.l2_squared) == brute_force(statistics, records, changing)


def test_blocks_of_two_parties_never_fall_below_the_whole() -> None:
    """Released block by block, a record is charged for each block: the sum bounds the joint change."""
    whole = Moments(5, 3).record
    blocks = Moments(2, 3).record + Moments(3, 3, label=False).record + cross_block(3, 3, 3)
    assert blocks.l1 >= whole.l1
    assert blocks.l2_squared >= whole.l2_squared


@pytest.mark.parametrize("bounds", [[(0, 1)], [(-2, 1), (0, 3)], [(5, 5), (-1, 1)]])
def test_sums(bounds: list[tuple[int, int]]) -> None:
    records = np.array(list(product(*(range(low, high + 1) for low, high in bounds))))
    expected = sums(bounds)
    assert (expected.l1, expected.l2_squared) == brute_force(records, records, np.ones(len(bounds), dtype=bool))


@pytest.mark.parametrize(("queries", "classes"), [(1, 2), (3, 2), (1, 3), (2, 4)])
def test_vote_counts(queries: int, classes: int) -> None:
    votes = np.array(list(product(range(classes), repeat=queries)))
    one_hot = np.eye(classes, dtype=int)[votes]
    released = (one_hot[:, :, 1:] if classes == 2 else one_hot).reshape(len(votes), -1)
    expected = vote_counts(queries, classes)
    assert (expected.l1, expected.l2_squared) == brute_force(released, votes, np.ones(queries, dtype=bool))


@pytest.mark.parametrize(("rows", "columns", "bound"), [(1, 1, 1), (2, 1, 3), (2, 2, 2)])
def test_signed_sums(rows: int, columns: int, bound: int) -> None:
    records = np.array(list(product(range(-bound, bound + 1), repeat=columns)))
    expected = signed_sums(rows, columns, bound)
    for signs in product((-1, 1), repeat=rows):
        released = (np.array(signs)[None, :, None] * records[:, None, :]).reshape(len(records), -1)
        assert (expected.l1, expected.l2_squared) == brute_force(released, records, np.ones(columns, dtype=bool))


def test_l2_is_an_upper_bound() -> None:
    assert Sensitivity(3, 9).l2 == 3
    root = Sensitivity(2, 2).l2
    assert root**2 >= 2
    assert root**2 - 2 < 2**-100


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Moments(-1, 1),
        lambda: Moments(2, 0),
        lambda: Moments(2, True),
        lambda: Moments(2, 1).part(3, label=False),
        lambda: Moments(2, 1, label=False).part(1, label=True),
        lambda: Moments(2, 1, label=False).label_flip,
        lambda: cross_block(1, 1, 0),
        lambda: sums([(1, 0)]),
        lambda: vote_counts(1, 1),
        lambda: signed_sums(0, 1, 1),
    ],
)
def test_refuses_bad_declarations(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^[\w, ]+=.*: .+$"):
        wrong()  # type: ignore[operator]  # a callable by construction
