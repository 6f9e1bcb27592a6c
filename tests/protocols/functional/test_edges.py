"""The functional mechanism where tables are odd and where parties are many: K from 1 to 16, d from 1 to 800."""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.laws import Law, discrete_laplace_law, law_p_value, table_law
from protocols.functional import protocol as functional
from protocols.functional.options import REPAIRS, Options
from protocols.functional.plan import NOISE_ORDERS, Plan
from protocols.schema import Column, Floats, Schema
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.ring import Integers
from smpc.values import Held, Shared, value_of
from tests.support import clear_fit, schema, tables

ONE = Fraction(1)
BEST = {
    "linear": Options(weights="balanced", repair="posterior"),
    "logistic": Options(loss="logistic", weights="balanced", repair="rescaled"),
}


class Opening(ClearSession):
    """Keeps what the server is shown."""

    def __init__(self, cast: Cast) -> None:
        super().__init__(cast)
        self.opened: list[Integers] = []

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        held = super()._reveal(shared, to)
        self.opened += [value_of(held)] if to == self.cast.server else []
        return held

    def _send(self, held: Held[Integers], to: str, shape: tuple[int, ...], message: str) -> Held[Integers]:
        self.opened += [value_of(held)] if to == self.cast.server else []
        return super()._send(held, to, shape, message)


def fitted(plan: Plan, values: dict[str, Floats]) -> tuple[Floats, Opening]:
    s = Opening(Cast(tuple(plan.schema.widths)))
    return functional.fit(s, {p: Held(p, t) for p, t in values.items()}, plan).values, s


def two_draws(scale: Fraction) -> Law:
    """The law of the sum of two independent discrete Laplace draws."""
    support = np.arange(-60 * int(scale + 1), 60 * int(scale + 1) + 1)
    distance, q = np.abs(support), np.exp(-1 / float(scale))
    return table_law(support, (distance + (1 + q * q) / (1 - q * q)) * q**distance)


@pytest.mark.parametrize("count", [1, 2, 5, 16])
@pytest.mark.parametrize("order", NOISE_ORDERS)
def test_noise_has_the_same_law_for_every_number_of_parties(order: str, count: int) -> None:
    """`joint` and `paper`: one draw on every sum. `shares`: one within a party, two across; never more."""
    parties = [f"p{k}" for k in range(count)]
    of = schema(3, dict.fromkeys(parties, 32 // count), parties[-1])
    values = tables(of)
    plan = Plan.make(of, epsilon=Fraction(10), noise=order, bits=1)
    coefficients = plan.coefficients
    columns = np.vstack([np.full((1, 3), 2), *(plan.prepare(p, values[p]) for p in of.widths)])
    exact = (columns @ columns.T)[coefficients.first, coefficients.second]
    (group,) = plan.groups
    noise = []
    for _ in range(8):
        s = fitted(plan, values)[1]
        if order == "paper":
            opened = np.zeros(len(exact), dtype=np.int64)
            masks = functional._first_holder(group).values()
            for mask, part in zip(masks, s.opened, strict=True):
                opened[mask] = part
        else:
            (opened,) = s.opened
        noise.append(opened - exact)
    draws = group.draws(order)
    one, two = (np.stack(noise)[:, draws == n].ravel() for n in (1, 2))
    assert isinstance(group.mechanism, DiscreteLaplace) or order == "joint"
    scale = group.mechanism.scale  # type: ignore[union-attr]  # Laplace in every order
    assert law_p_value(one, discrete_laplace_law(scale)) > 1e-9
    assert set(draws) <= {1, 2} and (len(two) > 0) == (order == "shares" and count > 1)
    if len(two):
        assert law_p_value(two, two_draws(scale)) > 1e-9


def odd_tables(case: str, loss: str) -> tuple[Schema, dict[str, Floats]]:
    widths = {"one feature in all": {"ann": 1, "bob": 0}, "one column each": {"ann": 1, "bob": 1}}
    of = schema(
        4 if case == "fewer rows than columns" else 120, widths.get(case, {"ann": 2, "bob": 1, "cid": 3}), "bob"
    )
    if loss == "logistic":
        of = replace(of, label=Column("y", 0.0, 1.0))
    values = tables(of)
    label = values["bob"][-1]
    label[:] = (label > 0.5) if loss == "logistic" else label
    if case == "constant columns":
        values["ann"][:] = 0.5
        values["cid"][:] = 0.25
    elif case == "collinear columns":
        values["cid"][:] = values["ann"][0]
        values["ann"][1] = values["ann"][0]
    elif case.startswith("equal labels"):
        label[:] = of.label.high if case.endswith("high") else of.label.low
    return of, values


@pytest.mark.parametrize("loss", ["linear", "logistic"])
@pytest.mark.parametrize(
    "case",
    [
        "one feature in all",
        "one column each",
        "constant columns",
        "collinear columns",
        "equal labels, high",
        "equal labels, low",
        "fewer rows than columns",
    ],
)
def test_odd_tables_give_a_bounded_model_in_every_order_and_repair(case: str, loss: str) -> None:
    """On rows within the bounds no prediction is further off than a few label ranges, unless nothing was repaired."""
    of, values = odd_tables(case, loss)
    corners = np.array([[c.low, c.high] for c in of.all_features])
    for order in NOISE_ORDERS:
        for epsilon in (Fraction(1, 10), Fraction(8)):
            for options in (BEST[loss], *(Options(loss=loss, repair=repair) for repair in REPAIRS)):
                found, _ = fitted(Plan.make(of, epsilon=epsilon, noise=order, options=options), values)
                assert np.isfinite(found).all()
                most = np.abs(found[0]) + (np.abs(found[1:]) * np.abs(corners).max(axis=1)).sum()
                if options.repair in ("ridge", "posterior"):
                    assert most < 100 * (of.label.high - of.label.low)


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_equal_labels_are_learnt(loss: str) -> None:
    of, values = odd_tables("equal labels, high", loss)
    found = clear_fit(of, values, Plan.make(of, epsilon=Fraction(10), options=BEST[loss]))[0].values  # known draws
    scores = found[0] + found[1:] @ np.vstack([values[p][: len(of.features[p])] for p in of.widths])
    assert (np.mean(scores > 0) > 0.95) if loss == "logistic" else (np.abs(scores - of.label.high).mean() < 0.5)


def test_sixteen_parties_with_a_column_each_learn_what_one_would() -> None:
    rng = np.random.default_rng(0)
    parties = [f"p{k}" for k in range(16)]
    of = Schema(4000, {p: (Column(f"x_{p}", -1.0, 1.0),) for p in parties}, parties[3], Column("y", -1.0, 1.0))
    x = rng.uniform(-1, 1, (16, 4000))
    y = np.clip(np.linspace(-0.3, 0.3, 16) @ x, -1, 1)
    values = {p: x[k : k + 1] for k, p in enumerate(parties)}
    values[parties[3]] = np.vstack([x[3], y])
    found, _ = fitted(Plan.make(of, epsilon=Fraction(10), options=BEST["linear"]), values)
    assert np.mean((found[0] + found[1:] @ x - y) ** 2) < 0.05 * np.mean(y**2)


@pytest.mark.long
def test_eight_hundred_columns_fit_into_time_and_memory() -> None:
    """Prints both; the bounds are several times what they should be, for busy machines."""
    rng = np.random.default_rng(0)
    rows, each = 10_000, 200
    parties = [f"p{k}" for k in range(4)]
    features = {p: tuple(Column(f"{p}{j}", -1.0, 1.0) for j in range(each)) for p in parties}
    of = Schema(rows, features, "p0", Column("y", -1.0, 1.0))
    values: dict[str, Floats] = {p: rng.uniform(-1, 1, (each, rows)) for p in parties}
    values["p0"] = np.vstack([values["p0"], rng.uniform(-1, 1, rows)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    plan = Plan.make(of, epsilon=ONE, options=BEST["linear"])
    found, _ = fitted(plan, values)
    seconds = time.process_time() - start
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"d = 800, {rows} rows, {len(plan.coefficients)} sums: {seconds:.1f} s of processor time, {more:.0f} MB more")
    assert len(plan.coefficients) == 802 * 803 // 2 - 2
    assert np.isfinite(found).all() and np.abs(found).max() < 1
    assert seconds < 120 and more < 1500


@pytest.mark.long
def test_breast_cancer_table() -> None:
    """569 rows, 30 columns, from scikit-learn where it is installed. Bounds: powers of two, for this test only."""
    data = pytest.importorskip("sklearn.datasets", exc_type=ImportError).load_breast_cancer()
    x, y = data.data, data.target.astype(float)
    high = 2.0 ** np.ceil(np.log2(x.max(axis=0)))
    columns = tuple(Column(str(n), 0.0, float(h)) for n, h in zip(data.feature_names, high, strict=True))
    of = Schema(len(y), {"clinic": columns[:15], "laboratory": columns[15:]}, "clinic", Column("benign", 0.0, 1.0))
    values = {"clinic": np.vstack([x[:, :15].T, y]), "laboratory": x[:, 15:].T}
    wrong = {}
    for epsilon in (Fraction(1), Fraction(10)):
        plan = Plan.make(of, epsilon=epsilon, options=BEST["logistic"])
        errors = []
        for _ in range(15):
            found, _ = fitted(plan, values)
            errors.append(np.mean(((found[0] + x @ found[1:]) > 0) != (y == 1)))
        wrong[epsilon] = float(np.median(errors))
    print(f"breast cancer, wrong rows: {wrong}; majority {1 - y.mean():.3f}")
    assert wrong[Fraction(10)] < 0.25 and wrong[Fraction(1)] < 0.5
