"""Solvers on released numbers: least squares without noise, de-biased with it, weights in the columns' own units."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechanisms.guarantee import Guarantee
from protocols.data_release.fit import RIDGE, SOLVERS, fit, solve
from protocols.data_release.released_data import ReleasedColumn, ReleasedData, join
from protocols.schema import Column, Floats
from smpc import InputError

GUARANTEE = Guarantee.for_release(
    order="shares", epsilon=1, parties=("a", "b"), server="server", dealer=None, mechanism="test"
)
BOUNDS = (Column("x", -2, 6), Column("z", 0, 1), Column("y", 10, 50))
RANGES = ((-1, 1), (0, 1), (0, 1))


def data_of(coded: Floats, variances: tuple[float, ...] = (0, 0, 0), method: str = "dgm") -> ReleasedData:
    columns = tuple(ReleasedColumn(c, *r, v) for c, r, v in zip(BOUNDS, RANGES, variances, strict=True))
    return ReleasedData("r", method, len(coded), "y", columns, np.column_stack([np.ones(len(coded)), coded]), GUARANTEE)


def records(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Values in their own units, (n, 3), and as they are released without noise."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 6, n), rng.uniform(0, 1, n)
    y = 20 + 2 * x + 5 * z + rng.uniform(-1, 1, n)
    own = np.column_stack([x, z, y])
    return own, np.column_stack([(x - 2) / 4, z, (y - 10) / 40])


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_noise_all_solvers_are_least_squares_in_own_units(solver: str) -> None:
    own, coded = records(500)
    exact = np.linalg.lstsq(np.column_stack([np.ones(500), own[:, :2]]), own[:, 2], rcond=None)[0]
    fitted = fit(data_of(coded), solver, ridge=0)
    assert fitted.indefinite == 0 and np.allclose(fitted.weights, exact, atol=1e-9)


def test_ridge_is_added_to_the_second_moments() -> None:
    _, coded = records(500)
    z = np.column_stack([np.ones(500), coded[:, :2]])
    expected = np.linalg.solve(z.T @ z / 500 + 0.5 * np.eye(3), z.T @ coded[:, 2] / 500)
    slopes = fit(data_of(coded), "ols", ridge=0.5).weights[1:]
    assert np.allclose(slopes, expected[1:] * np.array([40 / 4, 40 / 1]))
    assert RIDGE == 1e-5


def test_debiasing_takes_off_what_the_noise_adds() -> None:
    n, variances = 200_000, (0.3, 0.2, 0.5)
    _, coded = records(n)
    rng = np.random.default_rng(1)
    noisy = coded + rng.normal(size=coded.shape) * np.sqrt(variances)
    exact = fit(data_of(coded), "ols").weights
    off = {s: np.abs(fit(data_of(noisy, variances), s).weights / exact - 1)[1:].max() for s in SOLVERS}
    assert off["debiased"] < 0.25 and off["floor"] < 0.25 < 0.5 < off["ols"]  # ols on it is the source's BGM


def test_mixed_rows_are_lifted_by_their_share() -> None:
    """Of k rows instead of n, k / n of the variance stands on the diagonal."""
    rng = np.random.default_rng(2)
    n, k, variances = 100_000, 5_000, (3.0, 2.0, 4.0)
    _, coded = records(n)
    whole = np.column_stack([np.ones(n), coded])
    gram = whole.T @ whole
    rows = rng.normal(size=(k, 4)) @ np.linalg.cholesky(gram / k).T
    rows[:, 1:] += rng.normal(size=(k, 3)) * np.sqrt(variances)
    mixed = ReleasedData("r", "rmgm", n, "y", data_of(coded, variances).columns, rows, GUARANTEE)
    hessian = np.delete(rows, 3, axis=1).T @ np.delete(rows, 3, axis=1) / n
    lift = np.diag(hessian - np.delete(np.delete(gram, 3, 0), 3, 1) / n)[1:]
    assert lift == pytest.approx([k / n * 3, k / n * 2], rel=0.25)
    exact = fit(data_of(coded), "ols").weights
    off = {s: np.abs(fit(mixed, s).weights - exact)[1:].max() for s in ("ols", "debiased")}
    assert off["debiased"] < 0.6 * off["ols"]


def test_shrunk_is_the_posterior_mean_for_weights_of_deviation_one_half() -> None:
    """Ridge on sums: v_y / p^2, and the default where records are mixed."""
    _, coded = records(500)
    data = data_of(coded, (0.0, 0.0, 7.0), method="rmgm")
    z = data.values[:, :3]
    expected = np.linalg.solve(z.T @ z + 7.0 / 0.25 * np.eye(3), z.T @ coded[:, 2])
    found = fit(data, ridge=0)
    assert np.allclose(found.weights[1:], expected[1:] * np.array([40 / 4, 40 / 1]))
    assert np.array_equal(found.weights, fit(data, "shrunk", ridge=0).weights)


def test_floor_bounds_the_weights_where_debiasing_explodes() -> None:
    hessian, lifted = np.diag([1.0, 0.5]), np.array([0.0, 0.4999999])
    raw, none = solve(hessian, np.ones(2), lifted, "debiased", 0.0, 100)
    kept, _ = solve(hessian, np.ones(2), lifted, "floor", 0.0, 100)
    assert raw[1] > 1e6 and none == 0
    assert kept[1] == pytest.approx(1 / (2 * 0.25 * math.sqrt(0.02)), rel=1e-3)
    negative, count = solve(hessian, np.ones(2), np.array([0.0, 0.6]), "debiased", 0.0, 100)
    assert negative[1] == pytest.approx(-10) and count == 1


def test_a_zero_eigenvalue_without_ridge_is_left_out() -> None:
    weights, indefinite = solve(np.diag([1.0, 0.0]), np.ones(2), np.zeros(2), "ols", 0.0, 10)
    assert weights.tolist() == [1.0, 0.0] and indefinite == 1


@pytest.mark.parametrize("ridge", [-1e-9, math.nan, math.inf, True])
def test_bad_ridge(ridge: float) -> None:
    with pytest.raises(InputError, match="ridge = "):
        fit(data_of(records(20)[1]), ridge=ridge)


def test_bad_solver_and_missing_label() -> None:
    data = data_of(records(20)[1])
    with pytest.raises(
        InputError, match="solver = 'lasso': for a dgm release it must be one of ols, shrunk, debiased, floor"
    ):
        fit(data, "lasso")
    with pytest.raises(InputError, match="has no label w"):
        fit(ReleasedData("r", "dgm", 20, "w", data.columns, data.values, GUARANTEE))


def part(data: ReleasedData, *places: int, **changes: object) -> ReleasedData:
    fields = {"release": "r", "method": "dgm", "records": 20, "label": "y", "guarantee": GUARANTEE, **changes}
    columns = tuple(data.columns[i] for i in places)
    values = data.values[:, [0, *(1 + i for i in places)]]
    return ReleasedData(columns=columns, **{"values": values, **fields})  # type: ignore[arg-type]


def test_parts_of_a_release_make_the_whole() -> None:
    data = data_of(records(20)[1])
    whole = join([part(data, 0), part(data, 1, 2)])
    assert whole.names == data.names and np.array_equal(whole.values, data.values)
    assert np.allclose(fit(whole).weights, fit(data).weights, rtol=1e-12)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([(1, 2)], None),
        ([(0, 1, 2)], "column x is given twice"),
        ([(1,)], "no part has the label y"),
    ],
)
def test_parts_must_fit(others: list[tuple[int, ...]], said: str | None) -> None:
    data = data_of(records(20)[1])
    parts = [part(data, 0), *(part(data, *places) for places in others)]
    if said is None:
        join(parts)
    else:
        with pytest.raises(InputError, match=said):
            join(parts)


@pytest.mark.parametrize("changes", [{"release": "s"}, {"method": "rmgm"}, {"records": 21}, {"label": "x"}])
def test_parts_of_two_releases_are_refused(changes: dict[str, object]) -> None:
    data = data_of(records(20)[1])
    with pytest.raises(InputError, match="parts of two releases"):
        join([part(data, 0), part(data, 1, 2, **changes)])


def test_damaged_parts_are_refused() -> None:
    data = data_of(records(20)[1])
    values = data.values.copy()
    values[3, 0] = 2
    with pytest.raises(InputError, match="columns of ones differ"):
        join([part(data, 0), part(data, 1, 2, values=values[:, [0, 2, 3]])])
    values[3, 1] = math.nan
    with pytest.raises(InputError, match="not finite"):
        part(data, 0, values=values[:, :2])
    with pytest.raises(InputError, match="values of shape"):
        part(data, 0, values=values)
