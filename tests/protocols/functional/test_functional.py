"""The functional mechanism in the clear: plan, contributors, exactness, noise law, edge cases."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.laws import discrete_laplace_law, law_p_value
from mechanisms.moments import Moments
from mechanisms.randomness import SecureRandom
from protocols.functional import protocol as functional
from protocols.functional.options import Options
from protocols.functional.plan import NOISE_ORDERS, Plan
from protocols.functional.protocol import fit
from protocols.functional.quadratic import Coefficients
from smpc import Cast, ClearSession, InputError
from smpc.ring import Integers
from smpc.transcript import table
from smpc.values import Held, Noise, value_of
from tests.support import clear_fit, held, schema, silenced, tables

ONE = Fraction(1)
WIDTHS = {"ann": 2, "bob": 1, "cid": 3}


@pytest.mark.parametrize("noise", NOISE_ORDERS)
def test_docstring_table_is_what_was_sent(noise: str) -> None:
    of = schema(50, WIDTHS, "bob")
    _, s = clear_fit(of, tables(of), Plan.make(of, epsilon=ONE, noise=noise))
    orders = {
        "shares": functional._noise_on_shares,
        "joint": functional._noise_jointly,
        "paper": functional._noise_after_opening,
    }
    doc = orders[noise]
    assert table(doc.__doc__ or "") == s.transcript.steps()


@pytest.mark.parametrize("noise", ["shares", "paper"])
@pytest.mark.parametrize("holder", list(WIDTHS))
def test_without_noise_and_ridge_it_is_least_squares(noise: str, holder: str) -> None:
    of = schema(400, WIDTHS, holder)
    values = tables(of, 3)
    plan = Plan.make(of, epsilon=ONE, noise=noise, bits=20)
    release, _ = clear_fit(of, values, silenced(plan))
    assert release.indefinite == 0
    features = [values[p][: len(of.features[p])] for p in of.widths]
    x = np.vstack([np.ones((1, 400)), *features]).T
    expected = np.linalg.lstsq(x, values[holder][-1], rcond=None)[0]
    assert np.allclose(release.values, expected, atol=1e-4)
    assert release.names == ("intercept", *(c.name for c in of.all_features))


def test_each_pair_of_columns_is_released_once() -> None:
    of = schema(10, WIDTHS, "bob")
    coefficients = Coefficients.of(of)
    pairs = list(zip(coefficients.first, coefficients.second, strict=True))
    columns = 1 + sum(of.widths.values())
    everything = {(a, b) for a in range(columns) for b in range(a, columns)}
    label = 1 + 2 + 1
    assert coefficients.label == label
    assert len(pairs) == len(set(pairs)) and set(pairs) == everything - {(0, 0), (label, label)}


def test_every_coordinate_of_an_honest_party_has_its_draw() -> None:
    of = schema(10, WIDTHS, "bob")
    coefficients = Coefficients.of(of)
    owner = ["", "ann", "ann", "bob", "bob", "cid", "cid", "cid"]
    for party, mask in coefficients.holders.items():
        expected = [party in (owner[a], owner[b]) for a, b in zip(coefficients.first, coefficients.second, strict=True)]
        assert mask.tolist() == expected


@pytest.mark.parametrize("noise", ["shares", "paper"])
def test_released_noise_has_the_stated_law_whatever_colluders_subtract(noise: str) -> None:
    """Every coefficient minus all draws but one honest holder's is the exact value plus one full draw."""
    of = schema(3, {"ann": 4, "bob": 4}, "bob")  # many coefficients: few runs give many draws
    plan = Plan.make(of, epsilon=Fraction(400), noise=noise, bits=2)
    drawn: list[Integers] = []
    (group,) = plan.groups
    masks = group.contributors if noise == "shares" else functional._first_holder(group)

    class Watching(ClearSession):
        def draw_noise(self, mechanism, contributors):  # type: ignore[no-untyped-def]
            result: Noise = super().draw_noise(mechanism, contributors)
            drawn.append(np.concatenate([value_of(result.draws[p])[m] for p, m in masks.items()]))
            return result

    for _ in range(500):
        fit(Watching(Cast(("ann", "bob"))), held_tables(of), plan)
    values = np.concatenate(drawn)
    assert isinstance(group.mechanism, DiscreteLaplace)
    assert group.mechanism.scale == Fraction(Moments(8, 4).record.l1) / 400
    assert len(values) > 25_000
    assert law_p_value(values, discrete_laplace_law(group.mechanism.scale)) > 1e-9


def held_tables(of):  # type: ignore[no-untyped-def]
    return {p: Held(p, t) for p, t in tables(of).items()}


@given(rows=st.integers(2, 10**7), epsilon=st.fractions(Fraction(1, 100), 50), m=st.integers(1, 40))
@settings(max_examples=60)
def test_planned_bits_keep_rounding_small_or_fill_the_ring(rows: int, epsilon: Fraction, m: int) -> None:
    of = schema(rows, {"ann": m, "bob": 1}, "bob")
    plan = Plan.make(of, epsilon=epsilon)
    plan.check_room()
    rounding = rows * 2.0**-plan.bits
    if rounding > 0.01 * plan.noise_deviation * 1.0001:
        if plan.bits < 30:
            with pytest.raises(InputError):
                Plan.make(of, epsilon=epsilon, bits=plan.bits + 1)
    elif plan.bits > 1:
        fewer = Plan.make(of, epsilon=epsilon, bits=plan.bits - 1)
        assert 2 * rounding > 0.01 * fewer.noise_deviation * 0.999


@pytest.mark.parametrize("bits", [0, -1, 31, True, 2.0, "3"])
def test_bits_out_of_range_are_refused_with_the_range(bits: object) -> None:
    of = schema(10, {"ann": 1, "bob": 1}, "bob")
    with pytest.raises(InputError, match="1 to 30"):
        Plan.make(of, epsilon=ONE, bits=bits)  # type: ignore[arg-type]


def test_overflow_is_found_before_anything_runs_and_names_what_fits() -> None:
    of = schema(10**6, {"ann": 1, "bob": 1}, "bob")
    with pytest.raises(InputError, match=r"fraction_bits = 28.*fraction_bits = \d+ fits"):
        Plan.make(of, epsilon=ONE, bits=28)


@pytest.mark.parametrize(("rows", "epsilon"), [(10**8, 1), (10**9, Fraction(1, 10)), (1000, 10**10), (10**9, 10**15)])
def test_large_jobs_and_epsilons_find_bits_that_fit(rows: int, epsilon: Fraction | int) -> None:
    plan = Plan.make(schema(rows, {"ann": 2, "bob": 2}, "bob"), epsilon=Fraction(epsilon))
    assert plan.bits > 1


def test_gaussian_noise_has_a_largest_epsilon() -> None:
    options = Options(mechanism="gaussian", delta=Fraction(1, 10**6))
    with pytest.raises(InputError, match=r"^epsilon = 1001: is above 1000, the most for Gaussian noise; lower it$"):
        Plan.make(schema(50, {"ann": 2, "bob": 2}, "bob"), epsilon=Fraction(1001), options=options)


def test_unknown_order_is_refused() -> None:
    with pytest.raises(InputError, match=r"noise = 'none'.*shares"):
        Plan.make(schema(10, {"ann": 1, "bob": 1}, "bob"), epsilon=ONE, noise="none")


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 10), ONE])
def test_tiny_epsilon_neither_crashes_nor_explodes(epsilon: Fraction) -> None:
    """Indefinite noisy forms: predictions on the declared domain stay within a few label ranges."""
    of = schema(300, WIDTHS, "bob")
    plan = Plan.make(of, epsilon=epsilon)
    for seed in range(20):
        s = ClearSession(Cast(tuple(of.widths)), random=dict.fromkeys(("ann", "bob", "cid", "server"), SecureRandom()))
        release = fit(s, held(s, tables(of, seed)), plan)
        assert np.isfinite(release.values).all()
        slopes = release.values[1:] * np.array([c.half for c in of.all_features])
        assert np.abs(slopes).sum() < 50 * of.label.half


@pytest.mark.parametrize(
    "case", ["one column each", "constant columns", "collinear columns", "equal labels", "fewer rows than columns"]
)
def test_edge_tables_give_a_finite_model(case: str) -> None:
    of = schema(
        3 if case.startswith("fewer") else 100, WIDTHS if case != "one column each" else {"ann": 1, "bob": 1}, "bob"
    )
    values = tables(of)
    if case == "constant columns":
        values["ann"][:] = 0.5
    if case == "collinear columns":
        values["cid"][1] = values["cid"][0]
    if case == "equal labels":
        values["bob"][-1] = 4.0
    release, _ = clear_fit(of, values, Plan.make(of, epsilon=Fraction(50)))
    assert np.isfinite(release.values).all()


def test_values_outside_bounds_and_wrong_shapes_are_refused() -> None:
    of = schema(10, {"ann": 1, "bob": 1}, "bob")
    plan = Plan.make(of, epsilon=ONE)
    values = tables(of)
    values["ann"][0, 3] = 1.5
    with pytest.raises(InputError, match="column ann0: 1 values outside"):
        clear_fit(of, values, plan)
    values["ann"][0, 3] = np.nan
    with pytest.raises(InputError, match="column ann0: 1 values outside"):
        clear_fit(of, values, plan)
    with pytest.raises(InputError, match="rows"):
        clear_fit(of, {**values, "ann": np.zeros((1, 9))}, plan)
    with pytest.raises(InputError, match="need"):
        clear_fit(of, {**values, "ann": np.zeros((2, 10))}, plan)
