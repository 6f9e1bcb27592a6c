"""Data release in the clear: messages, exactness, the noise's law, use of the data, what a chosen B does to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.randomness import RandomWords, SecureRandom
from protocols.data_release import protocol as data_release
from protocols.data_release.plan import BITS, ReleasePlan
from protocols.data_release.protocol import DataRelease, release
from protocols.data_release.released_data import ReleasedData
from protocols.data_release.sign_matrix import signed_sums
from protocols.schema import Column, Schema
from smpc import Cast, ClearSession, InputError
from smpc.ring import Integers
from smpc.transcript import table
from smpc.values import Held, value_of
from tests.support import held, schema, tables

ONE = Fraction(1)
DELTA = Fraction(1, 10**5)
WIDTHS = {"ann": 2, "bob": 1, "cid": 3}


class Quiet(DiscreteGaussian):
    """A test-only mechanism without noise."""

    def draw(self, count: int, random: RandomWords) -> Integers:
        return np.zeros(count, dtype=np.int64)


def silenced(plan: ReleasePlan) -> ReleasePlan:
    return replace(plan, mechanisms={p: Quiet(Fraction(1, 2**40)) for p in plan.mechanisms})


def run(plan: ReleasePlan, values: Mapping[str, Any]) -> tuple[DataRelease, ClearSession]:
    s = ClearSession(Cast(tuple(plan.schema.features), dealer=None))
    return release(s, held(s, values), plan, "test"), s


def data_at(released: DataRelease, holder: str) -> ReleasedData:
    return value_of(released.data[holder])


@pytest.mark.parametrize(("method", "text"), [("rmgm", data_release._mixed), ("dgm", data_release._added)])
def test_docstring_table_is_what_was_sent(method: str, text: Any) -> None:
    of = schema(50, WIDTHS, "bob")
    _, s = run(ReleasePlan.make(of, epsilon=ONE, delta=DELTA, method=method, rows=20), tables(of))
    assert table(text.__doc__ or "") == s.transcript.steps()


@pytest.mark.parametrize("coding", ["signed", "unit"])
@pytest.mark.parametrize("method", ["rmgm", "dgm"])
def test_without_noise_the_server_has_the_exact_integers(method: str, coding: str) -> None:
    of = schema(300, WIDTHS, "cid")
    values = tables(of)
    plan = silenced(ReleasePlan.make(of, epsilon=ONE, delta=DELTA, method=method, rows=40, ranges=coding))
    seeds: list[bytes] = []

    class Tossing(ClearSession):
        def _toss(self) -> dict[str, Held[bytes]]:
            tossed = super()._toss()
            seeds.append(value_of(tossed["ann"]))
            return tossed

    s = Tossing(Cast(tuple(of.features), dealer=None))
    released = release(s, held(s, values), plan, "test")
    exact = np.vstack([plan.prepare("ann", values["ann"]), *(plan.prepare(p, values[p])[1:] for p in ("bob", "cid"))])
    if method == "rmgm":
        exact = signed_sums(seeds[0], 40, exact)
    data = data_at(released, "server")
    assert np.array_equal(np.round(data.values * plan.unit), exact.T)
    assert data.names == tuple(c.name for p in WIDTHS for c in of.columns(p))
    for party in WIDTHS:
        own = data_at(released, party)
        places = [0, *(1 + data.names.index(name) for name in own.names)]
        assert np.array_equal(own.values, data.values[:, places])
    assert len(seeds) == (method == "rmgm")


@pytest.mark.parametrize("method", ["rmgm", "dgm"])
def test_every_released_number_carries_its_own_full_draw(method: str) -> None:
    """Of constant columns, known exactly: residuals have the stated variance and nothing in common."""
    of = schema(2000, WIDTHS, "bob")
    values = {p: np.full_like(t, 0.25) for p, t in tables(of).items()}
    plan = ReleasePlan.make(of, epsilon=ONE, delta=DELTA, method=method, rows=2000)
    released, _ = run(plan, values)
    data = data_at(released, "server")
    quiet = np.array([np.round(plan.prepare(p, values[p])[1:, 0]) for p in WIDTHS for _ in [0]], dtype=object)
    constants = np.concatenate([np.asarray(part, dtype=float) for part in quiet]) / 2.0**BITS
    residuals = data.values[:, 1:] - data.values[:, :1] * constants
    deviations = np.sqrt([item.noise_variance for item in data.columns])
    count = len(residuals)
    assert np.all(np.abs(residuals.var(axis=0) / deviations**2 - 1) < 6 * math.sqrt(2 / count))
    correlations = np.corrcoef(residuals.T) - np.eye(len(deviations))
    assert np.abs(correlations).max() < 6 / math.sqrt(count)


def test_ones_are_exact_and_nobodys_data() -> None:
    of = schema(64, WIDTHS, "bob")
    for method in ("rmgm", "dgm"):
        released, _ = run(ReleasePlan.make(of, epsilon=ONE, delta=DELTA, method=method, rows=30), tables(of))
        ones = data_at(released, "server").values[:, 0]
        if method == "dgm":
            assert np.array_equal(ones, np.ones(64))
        else:  # sums of 64 signs over sqrt(30)
            sums = ones * math.sqrt(30)
            assert np.allclose(sums, np.round(sums)) and np.all(np.round(sums) % 2 == 0) and np.abs(sums).max() <= 64


def test_mixed_rows_without_noise_give_nearly_least_squares() -> None:
    of = schema(5000, WIDTHS, "bob")
    values = tables(of)
    rng = np.random.default_rng(3)
    x = np.vstack([values["ann"], values["bob"][:1], values["cid"]]).T
    values["bob"][-1] = 2 + 0.3 * x[:, 0] - 0.2 * x[:, 3] + rng.uniform(-0.1, 0.1, 5000)
    released, _ = run(silenced(ReleasePlan.make(of, epsilon=ONE, delta=DELTA, rows=2000)), values)
    exact = np.linalg.lstsq(np.column_stack([np.ones(5000), x]), values["bob"][-1], rcond=None)[0]
    assert np.abs(released.model.values - exact).max() < 0.05
    assert released.model.names == ("intercept", *(c.name for c in of.all_features))
    assert dict(data_at(released, "server").model) == dict(
        zip(released.model.names, released.model.values.tolist(), strict=True)
    )


def test_a_matrix_of_rank_one_picked_by_one_party_destroys_the_fit_and_a_tossed_one_does_not() -> None:
    """The unprotected variant: who draws B draws it of rank one. Then k rows say what one row says."""
    of = schema(5000, WIDTHS, "bob")
    values = tables(of)
    values["bob"][-1] = 2 + values["ann"][0] - values["cid"][1] / 2
    plan = silenced(ReleasePlan.make(of, epsilon=ONE, delta=DELTA, rows=500))
    columns = np.vstack([plan.prepare("ann", values["ann"]), *(plan.prepare(p, values[p])[1:] for p in ("bob", "cid"))])
    rows = 1 - 2 * (SecureRandom().words(9 * 5000).reshape(9, 5000) & np.uint64(1)).astype(np.int64)
    picked = [np.outer(np.ones(500, dtype=np.int64), columns @ row) for row in rows]
    tossed = signed_sums(bytes(32), 500, columns).T
    full = np.linalg.matrix_rank(tossed.astype(float))
    assert {int(np.linalg.matrix_rank(one.astype(float))) for one in picked} == {1} and full == columns.shape[0]
    label = 1 + [c.name for p in WIDTHS for c in of.columns(p)].index("y")

    def error(mixed: Integers) -> float:
        z = mixed / 2.0**BITS
        x, y = columns.T / 2.0**BITS, columns[label] / 2.0**BITS
        keep = np.delete(np.arange(z.shape[1]), label)
        weights = np.linalg.lstsq(z[:, keep], z[:, label], rcond=None)[0]
        return float(np.mean((x[:, keep] @ weights - y) ** 2)) / float(np.var(y))

    assert error(tossed) < 0.01 and np.median([error(one) for one in picked]) > 0.4  # one in 300 rows is lucky


def test_privacy_holds_for_every_matrix() -> None:
    """The worst neighbours move every released integer by the same step, for B all ones, rank one or fair alike."""
    of = Schema(9, {"a": (Column("x", -1, 1),), "b": (Column("z", -1, 1),)}, "b", Column("y", -1, 1))
    plan = ReleasePlan.make(of, epsilon=ONE, delta=DELTA, rows=7)
    first, second = np.full((1, 9), 0.5), np.full((1, 9), 0.5)
    first[0, 4], second[0, 4] = -1, 1
    step = (plan.prepare("a", first) - plan.prepare("a", second))[1]
    for matrix in (
        np.ones((7, 9)),
        np.outer([1, -1] * 3 + [1], np.ones(9)),
        np.sign(np.random.default_rng(0).normal(size=(7, 9))),
    ):
        assert int(((matrix.astype(np.int64) @ step) ** 2).sum()) == plan.loss("a").l2_squared


def test_wrong_tables_are_refused() -> None:
    of = schema(50, WIDTHS, "bob")
    plan = ReleasePlan.make(of, epsilon=ONE, delta=DELTA, rows=20)
    values = tables(of)
    with pytest.raises(InputError, match="ann: table of shape"):
        run(plan, {**values, "ann": values["ann"][:, :-1]})
    values["cid"][0, 7] = 99
    with pytest.raises(InputError, match="column cid0: 1 values outside its bounds"):
        run(plan, values)


def test_noise_is_fresh_in_every_release() -> None:
    of = schema(30, WIDTHS, "bob")
    plan = ReleasePlan.make(of, epsilon=ONE, delta=DELTA, method="dgm")
    one, two = (data_at(run(plan, tables(of))[0], "server").values[:, 1:] for _ in range(2))
    assert not np.any(one == two)


def test_model_of_a_useful_release_is_near_the_truth() -> None:
    """A hundred thousand records, whole-range slopes: better than the mean predictor by far."""
    of = schema(100_000, {"ann": 1, "bob": 1}, "bob")
    values = tables(of)
    values["bob"][-1] = 2 + 1.5 * values["ann"][0]
    released, _ = run(ReleasePlan.make(of, epsilon=ONE, delta=DELTA, method="rmgm"), values)
    assert released.model.values[1] == pytest.approx(1.5, abs=0.5)
