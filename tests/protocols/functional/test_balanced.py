"""Balanced noise, declared categories, and repairs with a prior."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.discrete_laplace import DiscreteLaplace
from protocols.functional import weights
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.functional.quadratic import Coefficients, minimise
from protocols.schema import Column, Floats, Schema
from smpc import InputError
from tests.support import clear_fit, schema, silenced

ONE = Fraction(1)
BALANCED = Options(weights="balanced")


def indicators(category: str, count: int) -> tuple[Column, ...]:
    return tuple(Column(f"{category}{i}", 0.0, 1.0, category) for i in range(1, count + 1))


def coded(rows: int, sizes: dict[str, int], label_holder: str = "ann") -> Schema:
    """Ann holds one number and the first category, bob the others; `sizes`: indicators of each category."""
    first, *others = sizes
    features = {
        "ann": (Column("age", -1.0, 3.0), *indicators(first, sizes[first])),
        "bob": tuple(column for name in others for column in indicators(name, sizes[name])),
    }
    return Schema(rows, features, label_holder, Column("y", -2.0, 2.0))


def coded_tables(of: Schema, seed: int = 0) -> dict[str, Floats]:
    """Random rows with at most one value of each category; the label depends on all columns."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Floats] = {"age": rng.uniform(-1, 3, of.rows)}
    for category in of.categories:
        names = [c.name for c in of.all_features if c.category == category]
        codes = rng.integers(0, len(names) + 1, of.rows)
        columns |= {name: (codes == i + 1).astype(float) for i, name in enumerate(names)}
    effects = np.linspace(-0.5, 0.5, len(columns))
    columns["y"] = np.clip(sum(e * c for e, c in zip(effects, columns.values(), strict=True)), -2, 2)
    return {p: np.vstack([columns[c.name] for c in of.columns(p)]) for p in of.widths}


def lattice_records(of: Schema, unit: int) -> np.ndarray:
    """Every record (1, columns) of integers: numbers in {-unit, 0, unit}, at most one indicator of a category."""
    columns = [c for p in of.widths for c in of.columns(p)]
    choices = [(0, unit) if c.category is not None else (-unit, 0, unit) for c in columns]
    records = np.array(list(product((unit,), *choices)))
    for category in of.categories:
        inside = [1 + i for i, c in enumerate(columns) if c.category == category]
        records = records[(records[:, inside] > 0).sum(axis=1) <= 1]
    return records


@pytest.mark.parametrize("options", [Options(), BALANCED])
@pytest.mark.parametrize("sizes", [{"colour": 2, "town": 1}, {"colour": 1, "town": 3}, {"colour": 3, "town": 3}])
def test_the_scale_covers_every_pair_of_coded_records(sizes: dict[str, int], options: Options) -> None:
    of = coded(10, sizes)
    plan = Plan.make(of, epsilon=ONE, bits=1, options=options)
    (group,) = plan.groups
    records = lattice_records(plan.schema, 2)
    image = records[:, plan.coefficients.first] * records[:, plan.coefficients.second] * group.times
    found = max(int(np.abs(image - row).sum(axis=1).max()) for row in image)
    assert isinstance(group.mechanism, DiscreteLaplace)
    assert found <= group.mechanism.scale <= 1.5 * found
    for party, epsilon in plan.per_party.items():
        own = 1 + np.array([party == p for p in of.widths for _ in of.columns(p)]).nonzero()[0]
        others = np.setdiff1d(np.arange(1, records.shape[1]), own)
        moved = 0
        for row, at in zip(records, image, strict=True):
            same = (records[:, others] == row[others]).all(axis=1)
            moved = max(moved, int(np.abs(image[same] - at).sum(axis=1).max()))
        assert Fraction(moved) / group.mechanism.scale <= epsilon <= 1


@pytest.mark.parametrize("order", ["shares", "joint", "paper"])
@pytest.mark.parametrize("options", [Options(), BALANCED])
def test_without_noise_it_is_least_squares_in_every_coding(options: Options, order: str) -> None:
    of = coded(500, {"colour": 3, "town": 4})
    values = coded_tables(of)
    assert len(weights.balanced(of)[0].categories) == 2
    plan = Plan.make(of, epsilon=ONE, noise=order, bits=20, options=options)
    if order == "joint":
        plan = replace(plan, noise="shares")
    release, _ = clear_fit(of, values, silenced(plan))
    x = np.vstack([np.ones((1, 500)), values["ann"][:-1], values["bob"]]).T
    expected = np.linalg.lstsq(x, values["ann"][-1], rcond=None)[0]
    assert np.allclose(release.values, expected, atol=1e-3)


def test_products_within_a_category_are_not_released_but_filled_in() -> None:
    of = coded(200, {"colour": 3, "town": 2})
    values = coded_tables(of)
    plan = Plan.make(of, epsilon=ONE, bits=20)
    coefficients = plan.coefficients
    table = np.vstack([np.ones((1, 200)), *(plan.prepare(p, values[p]) / 2.0**20 for p in of.widths)])
    exact = table @ table.T
    columns = 1 + sum(of.widths.values())
    assert len(coefficients) == columns * (columns + 1) // 2 - 2 - 6 - 3
    matrix = coefficients.matrix(200, exact[coefficients.first, coefficients.second])
    exact[coefficients.label, coefficients.label] = 0
    assert np.allclose(matrix, exact, atol=1e-3)
    noise = coefficients.deviations(np.arange(1.0, len(coefficients) + 1))
    assert np.array_equal(noise, noise.T) and noise[0, 0] == 0
    assert np.array_equal(noise[coefficients.indicators, coefficients.indicators], noise[0, coefficients.indicators])
    assert noise[2, 3] == 0  # two colours


def test_deviations_of_sums_released_twice_are_those_of_their_mean() -> None:
    of = schema(10, {"ann": 1, "bob": 1}, "bob")
    twice = Coefficients.of(of, ordered=True)
    noise = twice.deviations(np.ones(len(twice)))
    assert noise[1, 2] == pytest.approx(np.sqrt(0.5)) and noise[1, 1] == 1 and noise[1, 3] == 1
    rng = np.random.default_rng(0)
    draws = np.array([twice.matrix(10**9, rng.normal(size=len(twice))) for _ in range(4000)])
    assert draws.std(axis=0)[1:, 1:] == pytest.approx(noise[1:, 1:], abs=0.05)


def test_noise_of_a_plan_is_what_its_sums_carry() -> None:
    """Two draws across parties, one within, each divided by the sum's weight."""
    of = schema(10, {"ann": 2, "bob": 1}, "bob")
    plan = Plan.make(of, epsilon=ONE, bits=4, options=BALANCED)
    (group,) = plan.groups
    used = weights.chosen(of, BALANCED)
    one = group.mechanism.standard_deviation / 4**4
    noise = plan.deviations
    assert noise[1, 2] == pytest.approx(one) and noise[1, 3] == pytest.approx(one * np.sqrt(2))
    assert noise[0, 1] == pytest.approx(one / used.constant)
    assert noise[1, 4] == pytest.approx(one * np.sqrt(2) / used.label)
    assert noise[0, 4] == pytest.approx(one / (used.constant * used.label))
    assert plan.noise_deviation == pytest.approx(one)
    assert plan.least_deviation == pytest.approx(one / (used.constant * used.label))


def test_rounding_is_small_beside_the_least_noise() -> None:
    of = schema(10**4, {"ann": 4, "bob": 4}, "bob")
    plan = Plan.make(of, epsilon=ONE, options=BALANCED)
    assert of.rows * 2.0**-plan.bits <= 0.01 * plan.least_deviation


def test_weights_follow_from_the_shape_alone() -> None:
    chosen = {m: weights.chosen(schema(10, {"ann": m - 1, "bob": 1}, "bob"), BALANCED) for m in (2, 9, 43, 100)}
    assert [(w.constant, w.label) for w in chosen.values()] == [(1, 2), (2, 3), (3, 4), (4, 6)]
    of, other = (replace(coded(n, {"colour": 3, "town": 4}, holder)) for n, holder in ((10, "ann"), (10**6, "bob")))
    assert weights.balanced(of)[1] == weights.balanced(other)[1]


def test_categories_stay_declared_only_where_that_lowers_the_noise() -> None:
    many, few = coded(10, {"colour": 9, "town": 9}), coded(10, {"colour": 1, "town": 1})
    assert weights.balanced(many)[0] == many
    assert weights.balanced(few) == weights.balanced(weights.without_categories(few))
    assert not weights.balanced(few)[0].categories
    assert Plan.make(few, epsilon=ONE, options=BALANCED).schema.categories == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["bob"].__setitem__((0, 3), 0.5), "category town: 1 entries are neither 0 nor 1"),
        (lambda t: t["bob"].__setitem__((slice(None), 7), 1.0), "category town: 0 entries .* 1 rows have two values"),
    ],
)
def test_rows_with_two_values_of_a_category_are_refused(change, message: str) -> None:
    of = coded(50, {"colour": 3, "town": 3})
    values = coded_tables(of)
    change(values)
    with pytest.raises(InputError, match=message):
        clear_fit(of, values, Plan.make(of, epsilon=ONE))


def test_declarations_that_cannot_hold_are_refused() -> None:
    with pytest.raises(InputError, match=r"bounds of c1 are \[0.0, 2.0\]: an indicator has \[0, 1\]"):
        Column("c1", 0.0, 2.0, "c")
    split = {"ann": (Column("c1", 0, 1, "c"),), "bob": (Column("c2", 0, 1, "c"),)}
    with pytest.raises(InputError, match="category c is split between ann and bob"):
        Schema(10, split, "ann", Column("y", 0, 1))
    with pytest.raises(InputError, match="the label y has the category c"):
        Schema(10, {"ann": (Column("x", 0, 1),)}, "ann", Column("y", 0, 1, "c"))


@pytest.mark.parametrize(
    "others", [{"sensitivity": "paper"}, {"mechanism": "gamma-norm"}, {"budgets": {("ann", "ann"): ONE}}]
)
def test_balanced_noise_is_for_laplace_top_down(others: dict[str, object]) -> None:
    with pytest.raises(InputError, match="weights = 'balanced' needs"):
        Options(weights="balanced", **others)  # type: ignore[arg-type]


def noisy(scale: float, seed: int = 0, rows: int = 400, m: int = 6) -> tuple[Floats, Floats]:
    """A Gram matrix with symmetric Gaussian noise of deviation `scale`, and the weights of its data."""
    rng = np.random.default_rng(seed)
    x = np.vstack([np.ones(rows), rng.uniform(-1, 1, (m, rows))])
    w = np.array([0.2, *np.linspace(-0.3, 0.3, m)])
    x = np.vstack([x, np.clip(w @ x, -1, 1)])
    noise = np.triu(rng.normal(scale=scale, size=(m + 2, m + 2))) if scale else np.zeros((m + 2, m + 2))
    matrix = x @ x.T + noise + np.triu(noise, 1).T
    matrix[0, 0] = rows
    return matrix, w


@pytest.mark.parametrize("repair", ["posterior", "rescaled"])
def test_priors_vanish_with_the_noise_and_win_when_it_is_all_there_is(repair: str) -> None:
    clean, w = noisy(0.0)
    assert minimise(clean, 7, repair, 0.0).weights == pytest.approx(w, abs=1e-6)
    worst = []
    for seed in range(20):
        matrix, _ = noisy(1e6, seed)
        found = minimise(matrix, 7, repair, 1e6)
        assert np.isfinite(found.weights).all() and found.indefinite > 0
        worst.append(np.abs(found.weights).max())
    assert max(worst) < 1e-2 if repair == "posterior" else np.isfinite(max(worst))


def test_posterior_has_less_error_than_ridge_and_no_repair_at_every_noise() -> None:
    def error(repair: str, scale: float) -> float:
        found = [
            minimise(noisy(scale, seed)[0], 7, repair, scale).weights - noisy(scale, seed)[1] for seed in range(40)
        ]
        return float(np.median([w[0] ** 2 + (w[1:] ** 2).sum() / 3 for w in found]))

    for scale in (3.0, 30.0, 300.0):
        assert error("posterior", scale) < 1.05 * min(error("ridge", scale), error("none", scale))


def test_rescaled_weights_are_as_long_as_least_squares_along_them() -> None:
    """The shrunk score's own regression on the label would not lengthen it any more."""
    matrix, _ = noisy(20.0, 3)
    weights_, shorter = (minimise(matrix, 7, repair, 20.0).weights[1:] for repair in ("rescaled", "ridge"))
    assert np.linalg.norm(weights_) > np.linalg.norm(shorter)
