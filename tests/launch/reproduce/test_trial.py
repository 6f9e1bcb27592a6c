"""Trials: how columns are shared out, that the protocol's own text runs, and that equal draws give equal errors."""

from __future__ import annotations

from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

from launch.reproduce import functional_methods as methods
from launch.reproduce.synthetic import NOISE, NORM, synthetic
from launch.reproduce.trial import RememberingSession, Trial, shared_out
from mechanisms.randomness import RandomWords
from protocols.baselines import ols, trivial
from protocols.baselines.model import Model
from protocols.functional import protocol as functional
from protocols.functional.options import Options
from protocols.public_coding import Category, Numeric, encode
from protocols.schema import Column, Floats
from smpc.clear import ClearSession
from smpc.errors import InputError

ONE = Fraction(1)
PLAIN = tuple(Column(f"x{i}", 0, 1) for i in range(7))
CODED = (*PLAIN[:2], *(Column(f"c{i}", 0, 1, "c") for i in range(5)), *(Column(f"d{i}", 0, 1, "d") for i in range(2)))


@pytest.mark.parametrize("columns", [PLAIN, CODED])
@pytest.mark.parametrize("parties", [1, 2, 3, 4])
def test_columns_are_shared_out_whole(columns: tuple[Column, ...], parties: int) -> None:
    places = shared_out(columns, parties)
    assert len(places) == parties and all(columns[place] for place in places)
    assert sum((columns[place] for place in places), ()) == columns
    for category in ("c", "d"):
        assert sum(any(c.category == category for c in columns[place]) for place in places) == any(
            c.category == category for c in columns
        )
    if columns is PLAIN:
        assert max(p.stop - p.start for p in places) - min(p.stop - p.start for p in places) <= 1


def test_more_parties_than_columns_are_refused() -> None:
    with pytest.raises(InputError, match="parties = 5: 4 columns and whole categories"):
        shared_out(CODED, 5)


def test_synthetic_data_have_the_stated_errors() -> None:
    data = synthetic(20_000, 10, 0.5, seed=3)
    x, y = data.scaled()
    assert np.array_equal(x, data.x) and np.abs(x).max() <= 1 and np.abs(y).max() <= 1
    exact = ols.fit(x, y)
    assert (np.abs(exact.weights) > 0.1).sum() == 5
    assert np.mean((y - exact.score(x)) ** 2) == pytest.approx(NOISE**2, rel=0.03)
    assert np.mean(y**2) == pytest.approx(NORM**2 / 3 + NOISE**2, rel=0.03)


def coded_trial() -> Trial:
    rng = np.random.default_rng(1)
    n = 600
    table = {"age": rng.uniform(0, 10, n), "town": rng.choice(["a", "b", "c", "d"], n)}
    table["rich"] = np.where(table["age"] + 3 * (table["town"] == "b") > 6, "yes", "no")
    features = (Numeric("age", 0, 10), Category("town", ("a", "b", "c", "d")))
    return Trial(encode(table, features, Category("rich", ("no", "yes"))), 0)


@pytest.mark.parametrize("noise", ["shares", "joint", "paper"])
def test_with_a_large_epsilon_the_protocol_is_least_squares(noise: str) -> None:
    trial = Trial(synthetic(3_000, 4), 5)
    exact = trial.baseline("least squares", lambda x, y, words: ols.fit(x, y))
    assert trial.protocol(Fraction(10), Options(), noise=noise) < 1.5 * exact
    assert trial.protocol(Fraction(10), methods.best("linear"), noise=noise, parties=4) < 1.1 * exact
    assert trial.baseline("zero", lambda x, y, words: trivial.zero(x.shape[1])) > 10 * exact


@pytest.mark.parametrize("categories", [True, False])
def test_classes_are_learnt_in_both_codings(categories: bool) -> None:
    trial = coded_trial()
    assert trial.protocol(Fraction(10), methods.best("logistic"), categories=categories) < 0.15


def test_the_protocols_text_is_what_runs_and_a_product_is_made_once() -> None:
    trial = coded_trial()
    with (
        patch.object(functional, "fit", wraps=functional.fit) as fit,
        patch.object(ClearSession, "_gram", autospec=True, side_effect=ClearSession._gram) as gram,
    ):
        for _ in range(2):
            trial.protocol(ONE, methods.best("logistic"))
    assert fit.call_count == 2 and gram.call_count == 1
    assert isinstance(fit.call_args.args[0], RememberingSession)


def test_draws_repeat_and_differ_between_methods_orders_and_numbers() -> None:
    trial = Trial(synthetic(500, 3), 0)
    first = trial.protocol(ONE, Options())
    assert first == Trial(synthetic(500, 3), 0).protocol(ONE, Options()) == trial.again(0).protocol(ONE, Options())
    others = [
        trial.again(1).protocol(ONE, Options()),
        trial.protocol(ONE, Options(), parties=3),
        trial.protocol(ONE, Options(), noise="joint"),
        Trial(synthetic(500, 3), 1).protocol(ONE, Options()),
    ]
    assert len({first, *others}) == 5


def test_baselines_see_training_rows_and_are_scored_on_the_others() -> None:
    trial = coded_trial()
    seen: list[Floats] = []

    def fit(x: Floats, y: Floats, words: RandomWords) -> Model:
        seen.append(x)
        return trivial.majority(x, y)

    trial.baseline("m", fit)
    trial.baseline("m", fit, signed=False)
    assert all(len(x) == 480 and (x[:, -1] == 1).all() for x in seen)
    assert set(np.unique(seen[0][:, 1:4])) == {-1, 1} and set(np.unique(seen[1][:, 1:4])) == {0, 1}
    majority = max(np.mean(trial.y[trial.train]), 1 - np.mean(trial.y[trial.train]))
    assert trial.baseline("m", fit) == pytest.approx(1 - majority, abs=0.06)
