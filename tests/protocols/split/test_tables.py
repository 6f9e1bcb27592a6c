"""Tables of the experiments: shapes, rates, codes by a public rule; one run of an experiment."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from protocols.raw_tables import data_directory
from protocols.split import tables
from protocols.split.baselines import max_norm
from protocols.split.experiment import Method, Setting, measure
from protocols.split.perturb import perturbation
from protocols.split.tables import BUCKETS, Coded
from smpc.errors import InputError

torch.set_num_threads(1)


def check(table: Coded, rows: int, numbers: int, categories: int, rate: float) -> None:
    assert table.numbers.shape == (rows, numbers) and table.numbers.dtype == np.float32
    assert table.codes.shape == (rows, categories) and len(table.sizes) == categories
    assert np.isfinite(table.numbers).all() and np.abs(table.numbers).max(initial=0) < 20
    assert table.labels.mean() == pytest.approx(rate, abs=5e-4)
    for i, size in enumerate(table.sizes):
        assert table.codes[:, i].min() >= 0 and table.codes[:, i].max() < size


def test_fair() -> None:
    check(tables.fair(), 6_366, 16, 0, 0.3225)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("criteo", (10_000, 13, 26, 0.2182)),
        ("avazu", (8_999, 0, 22, 0.1737)),
        ("adult", (48_842, 43, 0, 0.2393)),
        pytest.param("kdd99", (494_021, 38, 3, 0.8031), marks=pytest.mark.long),
    ],
)
def test_tables_that_are_at_hand(name: str, shape: tuple[int, int, int, float]) -> None:
    try:
        found = getattr(tables, name)(data_directory())
    except InputError as error:
        pytest.skip(str(error))
    check(found, *shape)


def test_codes_depend_on_column_and_value_alone() -> None:
    values = np.array(["a", "b", "a", ""])
    codes = tables._codes("x", values)
    assert codes[0] == codes[2] != codes[1] and (codes < BUCKETS).all()
    assert np.array_equal(tables._codes("x", values[::-1]), codes[::-1])
    assert (tables._codes("y", values) != codes).any()
    assert tables._number(np.array(["", "-2", "0", "54"])) == pytest.approx([0, 0, 0, math.log(55) / 4])


def test_a_run_is_replayable_and_attacks_see_what_is_sent() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(500, 3)).astype(np.float32)
    labels = (numbers[:, 0] > 0.8).astype(np.int64)
    table = Coded("t", numbers, np.zeros((500, 0), np.int64), (), labels)
    setting, laplace = Setting(2, 50), Method("laplace", perturbation("laplace", 1))
    one, again, other = (measure(table, setting, laplace, seed) for seed in (0, 0, 1))
    assert one == again != other
    plain, changed = (measure(table, setting, m, 0) for m in (Method("none"), Method("max", change=max_norm)))
    assert plain.attacks["shortest distance"] > 0.999 > one.attacks["shortest distance"]
    assert plain.attacks["norm"] > changed.attacks["norm"]
