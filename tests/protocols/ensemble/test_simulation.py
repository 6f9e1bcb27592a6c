"""The comparison in the clear: trained voters, counted votes, methods near their plain accuracy when noise is small."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mechanisms.randomness import SecureRandom
from protocols.ensemble import erm, local, simulation
from protocols.ensemble.auxiliary import unit_rows
from protocols.ensemble.budget import Budget
from protocols.ensemble.simulation import ensemble
from protocols.ensemble.tables import Labelled
from smpc.errors import InputError

QUIET = Budget(Fraction(10**6))


def blobs(classes: int, rows: int = 900) -> Labelled:
    rng = np.random.default_rng(classes)
    y = rng.integers(0, classes, rows)
    centres = rng.normal(size=(classes, 3))
    return Labelled(unit_rows(0.3 * (centres[y] + 0.4 * rng.normal(size=(rows, 3)))), y, classes)


@pytest.fixture(scope="module", params=[2, 3])
def split(request: pytest.FixtureRequest) -> simulation.Ensemble:
    return ensemble(blobs(request.param), voters=30, own=10, auxiliary=200, test=300, seed=1)


def test_rows_of_a_split_are_disjoint_and_sized(split: simulation.Ensemble) -> None:
    assert (len(split.test.y), split.auxiliary.count, len(split.training.y)) == (300, 200, 300)
    everything = np.vstack([split.test.x, split.training.x])
    assert len(np.unique(everything, axis=0)) == 600


def test_counts_are_the_voters_predictions(split: simulation.Ensemble) -> None:
    classes = split.test.classes
    predictions = np.array([erm.predict(w, split.auxiliary.x) for w in split.weights])
    counts = np.array([(predictions == c).sum(axis=0) for c in range(classes)])
    assert np.array_equal(split.counts, counts[1:] if classes == 2 else counts)
    few = split.fewer(7)
    assert few.voters == 7 and few.counts.max() <= 7 and few.batch is split.batch


def test_voters_have_the_minimisers_of_their_own_rows(split: simulation.Ensemble) -> None:
    x, y = split.training.x.reshape(30, 10, -1), split.training.y.reshape(30, 10)
    for own, labels, weights in zip(x, y, split.weights, strict=True):
        expected = local.train(own, labels, split.test.classes, 1e-4)
        assert np.linalg.norm(expected - weights) <= 1e-4 * np.linalg.norm(expected)


def test_single_class_and_repeated_rows_train() -> None:
    x = np.repeat(unit_rows(np.array([[0.5, 0.1]])), 4, axis=0)[None]
    for y in (np.ones((1, 4), dtype=np.int64), np.zeros((1, 4), dtype=np.int64)):
        weights = local.train_many(x, y, 1e-4)
        assert np.isfinite(weights).all() and (x[0] @ weights[0] > 0).all() == bool(y.all())


def test_without_much_noise_every_method_is_as_good_as_without_any(split: simulation.Ensemble) -> None:
    plain, noisy = split.not_private(), split.private(QUIET, SecureRandom())
    assert plain["batch"] > 0.7 and plain["soft"] > 0.6
    for name, other in (
        ("statistic", "soft"),
        ("soft", "soft"),
        ("vote", "vote"),
        ("avg", "avg"),
        ("avg, tight", "avg"),
    ):
        assert abs(noisy[name] - plain[other]) <= 0.05, name
    assert abs(noisy["batch, one row"] - plain["batch"]) <= 0.05
    alone = split.alone(QUIET, SecureRandom())
    assert abs(alone["indiv"] - plain["indiv"]) <= 0.1  # of 20 voters and of 30


def test_with_delta_many_voters_and_few_samples_are_enough_for_noisy_labels() -> None:
    two = ensemble(blobs(2, 4000), voters=300, own=10, auxiliary=50, test=900, seed=1)
    plain, noisy = two.not_private(), two.with_delta(Budget(Fraction(40)), SecureRandom())
    assert abs(noisy["statistic, Gaussian"] - plain["soft"]) <= 0.05
    assert abs(noisy["GNMax"] - plain["vote"]) <= 0.1
    assert noisy["Confident-GNMax"] > 0.5
    drowned = two.with_delta(Budget(Fraction(1, 1000)), SecureRandom())
    assert all(0 <= value <= 1 for value in drowned.values())


def test_noise_hurts_the_papers_methods_where_the_statistic_still_learns() -> None:
    two = ensemble(blobs(2, 4000), voters=200, own=10, auxiliary=800, test=1000, seed=1)
    results = [two.private(Budget(Fraction(2)), SecureRandom()) for _ in range(9)]
    medians = {name: float(np.median([r[name] for r in results])) for name in results[0]}
    assert medians["statistic"] > two.not_private()["soft"] - 0.1
    assert medians["vote"] < medians["statistic"] and medians["soft"] < medians["statistic"]
    assert two.alone(Budget(Fraction(2)), SecureRandom())["indiv"] < two.not_private()["indiv"] - 0.1


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InputError, match=r"900 rows|has 900"):
        ensemble(blobs(2), voters=100, own=10, auxiliary=10, test=10, seed=0)
