"""The functional mechanism's choices: logistic loss, bottom-up budgets, sensitivities, mechanisms, repairs."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms import objective_constants
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.gaussian_privacy import GaussianLoss, analytic_delta, zcdp_epsilon
from mechanisms.moments import Moments
from protocols.functional.losses import TAYLOR_CURVATURE, curvature
from protocols.functional.options import REPAIRS, Options
from protocols.functional.plan import Plan
from protocols.functional.quadratic import Coefficients, minimise
from protocols.schema import Column, Floats, Schema
from smpc import Cast, InputError
from tests.support import clear_fit, schema, silenced, tables

ONE = Fraction(1)
WIDTHS = {"ann": 2, "bob": 1, "cid": 2}


def binary(rows: int, widths: dict[str, int], holder: str) -> tuple[Schema, dict[str, Floats]]:
    """A table whose label depends on the features by a logistic model."""
    of = schema(rows, widths, holder)
    of = Schema(rows, of.features, holder, Column("y", 0.0, 1.0))
    values = tables(of, 1)
    rng = np.random.default_rng(2)
    x = np.vstack([values[p][: len(of.features[p])] for p in widths])
    weights = np.linspace(-1.5, 1.5, len(x))
    y = (rng.random(rows) < 1 / (1 + np.exp(-(weights @ x)))).astype(float)
    values[holder][-1] = y
    return of, values


def test_logistic_without_noise_minimises_the_taylor_objective() -> None:
    of, values = binary(2000, WIDTHS, "bob")
    plan = Plan.make(of, epsilon=ONE, bits=20, options=Options(loss="logistic"))
    release, _ = clear_fit(of, values, silenced(plan))
    x = np.vstack([np.ones((1, 2000)), *(values[p][: len(of.features[p])] for p in of.widths)]).T
    y = values["bob"][-1]
    gradient = (0.5 - y) @ x + 2 * TAYLOR_CURVATURE * (x.T @ x) @ release.values
    assert np.abs(gradient).max() < 0.05


def test_logistic_labels_must_be_zero_or_one() -> None:
    of, values = binary(50, WIDTHS, "bob")
    plan = Plan.make(of, epsilon=ONE, options=Options(loss="logistic"))
    values["bob"][-1, 3] = 0.5
    with pytest.raises(InputError, match="neither 0 nor 1"):
        clear_fit(of, values, plan)
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        Plan.make(schema(50, WIDTHS, "bob"), epsilon=ONE, options=Options(loss="logistic"))


def test_least_squares_quadratic_has_the_curvature_of_a_dense_fit() -> None:
    margin = 4.0
    x = np.cos(np.pi * (np.arange(5000) + 0.5) / 5000) * margin
    dense = np.polynomial.polynomial.polyfit(x, np.logaddexp(0, x), 2)
    assert curvature(Options(loss="logistic", expansion="chebyshev", margin=margin)) == pytest.approx(
        dense[2], rel=1e-6
    )
    assert dense[1] == pytest.approx(0.5)
    assert curvature(Options(loss="logistic", expansion="chebyshev", margin=0.01)) == pytest.approx(1 / 8, rel=1e-4)


def brute_force(of: Schema, options: Options, block: tuple[str, str] | None = None) -> Fraction:
    """The largest L1 change of the released integers over all pairs of records with values in {-1, 0, 1}."""
    coefficients = Coefficients.of(of, ordered=options.release == "ordered")
    plan = Plan.make(of, epsilon=None if options.budgets else ONE, bits=1, options=options)
    parties = list(of.features)
    groups = plan.groups
    if block is not None:
        blocks = [*((p, p) for p in parties), *((k, l) for i, k in enumerate(parties) for l in parties[i + 1 :])]
        groups = (plan.groups[blocks.index(block)],)
    width = sum(of.widths.values())
    records = np.array(list(product((-1, 0, 1), repeat=width)))
    if options.loss == "logistic":
        records = records[records[:, coefficients.label - 1] != 0]
    full = np.hstack([np.ones((len(records), 1), dtype=np.int64), records])
    images = []
    for group in groups:
        a, b = coefficients.first[group.entries], coefficients.second[group.entries]
        images.append(full[:, a] * full[:, b] * group.times)
    image = np.hstack(images)
    return Fraction(max(int(np.abs(image - row).sum(axis=1).max()) for row in image))


@pytest.mark.parametrize("loss", ["linear", "logistic"])
@pytest.mark.parametrize(
    ("sensitivity", "release"), [("tight", "symmetric"), ("paper", "symmetric"), ("paper", "ordered")]
)
def test_top_down_scale_covers_every_pair_of_records(loss: str, sensitivity: str, release: str) -> None:
    of, _ = binary(10, {"ann": 1, "bob": 2}, "bob")
    options = Options(loss=loss, sensitivity=sensitivity, release=release)
    plan = Plan.make(of, epsilon=Fraction(2), bits=3, options=options)
    (group,) = plan.groups
    assert isinstance(group.mechanism, DiscreteLaplace)
    found = brute_force(of, options)
    claimed = group.mechanism.scale * 2 / 4**3
    assert found <= claimed
    if sensitivity == "tight" and loss == "linear":
        assert found == claimed


def test_paper_constants_are_the_papers() -> None:
    of, _ = binary(10, {"ann": 1, "bob": 2}, "bob")
    for loss, constant, unit in (
        ("linear", objective_constants.linear(4), 1),
        ("logistic", objective_constants.logistic(4), 8),
    ):
        plan = Plan.make(of, epsilon=ONE, bits=3, options=Options(loss=loss, sensitivity="paper", release="ordered"))
        (group,) = plan.groups
        assert isinstance(group.mechanism, DiscreteLaplace)
        assert group.mechanism.scale == constant * unit * 4**3


BUDGETS = {
    ("ann", "ann"): Fraction(1, 2),
    ("bob", "bob"): Fraction(1),
    ("cid", "cid"): Fraction(1, 4),
    ("ann", "bob"): Fraction(1, 3),
    ("ann", "cid"): Fraction(1, 5),
    ("bob", "cid"): Fraction(2, 3),
}


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_bottom_up_achieves_the_budgets_sum_and_every_block_is_covered(loss: str) -> None:
    of, values = binary(60, {"ann": 1, "bob": 1, "cid": 1}, "bob")
    options = Options(loss=loss, budgets=BUDGETS)
    plan = Plan.make(of, bits=4, options=options)
    assert plan.epsilon == sum(BUDGETS.values())
    assert plan.per_party["ann"] == Fraction(1, 2) + Fraction(1, 3) + Fraction(1, 5)
    for (block, budget), group in zip(
        sorted(BUDGETS.items(), key=lambda item: order(item[0])), plan.groups, strict=True
    ):
        assert isinstance(group.mechanism, DiscreteLaplace)
        claimed = group.mechanism.scale * budget / 4**4
        assert brute_force(of, options, block) <= claimed
        assert set(group.contributors) == set(block)
    entries = np.vstack([group.entries for group in plan.groups])
    assert (entries.sum(axis=0) == 1).all()
    release, s = clear_fit(of, values, plan)
    assert np.isfinite(release.values).all()
    assert [step for step, _ in s.transcript.steps()] == [
        "dealer -> P_k",
        "P_k -> P_l",
        "P_k -> server",
        "server -> all",
    ]


def order(block: tuple[str, str]) -> tuple[bool, tuple[str, str]]:
    return block[0] != block[1], block


def test_budgets_whose_sum_no_ledger_could_write_are_refused() -> None:
    of, _ = binary(60, {"ann": 1, "bob": 1, "cid": 1}, "bob")
    odd = {pair: Fraction(1, 10**60 + 2 * number + 1) for number, pair in enumerate(BUDGETS)}
    with pytest.raises(InputError, match=r"denominator of over 300 digits: write them with fewer digits$"):
        Plan.make(of, options=Options(budgets=odd))


def test_bottom_up_needs_every_block_once() -> None:
    of, _ = binary(60, {"ann": 1, "bob": 1, "cid": 1}, "bob")
    some = {pair: e for pair, e in BUDGETS.items() if pair != ("ann", "cid")}
    with pytest.raises(InputError, match="budget ann-cid is missing"):
        Plan.make(of, options=Options(budgets=some))
    with pytest.raises(InputError, match="ann-eve"):
        Plan.make(of, options=Options(budgets={**BUDGETS, ("ann", "eve"): ONE}))
    with pytest.raises(InputError, match="leave it out"):
        Plan.make(of, epsilon=ONE, options=Options(budgets=BUDGETS))


@pytest.mark.parametrize(
    ("widths", "columns"),
    [({"ann": 1, "bob": 1}, {"ann": [1], "bob": [2, 3]}), ({"ann": 2, "bob": 0}, {"ann": [1, 2], "bob": [3]})],
)
def test_per_party_guarantees_are_brute_forced(widths: dict[str, int], columns: dict[str, list[int]]) -> None:
    """epsilon^(p) = epsilon Delta^p / Delta: no pair of records that differ at p only moves the release further.

    All values of the lattice: the largest change is not at its ends only.
    """
    of, _ = binary(10, widths, "bob")
    risk = Fraction(1, 10**6)
    plan, gamma, gaussian = (
        Plan.make(of, epsilon=ONE, bits=1, options=options)
        for options in (Options(), Options(mechanism="gamma-norm"), Options(mechanism="gaussian", delta=risk))
    )
    coefficients, unit = plan.coefficients, 2
    values = np.array(list(product(range(-unit, unit + 1), repeat=3)))
    records = np.hstack([np.full((len(values), 1), unit, dtype=np.int64), values])
    image = records[:, coefficients.first] * records[:, coefficients.second]
    whole = Moments(2, unit).record
    for party, own in columns.items():
        others = [c for c in (1, 2, 3) if c not in own]
        moves = np.vstack(
            [image[(records[:, others] == records[i, others]).all(axis=1)] - image[i] for i in range(len(records))]
        )
        worst, squared = int(np.abs(moves).sum(axis=1).max()), int((moves**2).sum(axis=1).max())
        assert Fraction(worst, whole.l1) == plan.per_party[party]
        assert gamma.per_party[party] == pytest.approx(math.sqrt(Fraction(squared, whole.l2_squared)), rel=1e-9)
        variance = gaussian.groups[0].mechanism.variance
        loss = GaussianLoss(Fraction(squared), variance, len(coefficients))
        found = gaussian.per_party[party]
        assert zcdp_epsilon(loss.rho, risk) >= found
        assert analytic_delta(found, [loss]) <= risk < analytic_delta(found * Fraction(99, 100), [loss])
    if widths["bob"]:
        assert plan.per_party["bob"] == Fraction(11, 12)


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_a_party_may_hold_nothing_but_the_label(loss: str) -> None:
    of, values = binary(400, {"ann": 2, "bob": 0, "cid": 1}, "bob")
    elsewhere = Schema(400, {"ann": of.features["ann"], "cid": of.features["cid"]}, "ann", of.label)
    moved = {"ann": np.vstack([values["ann"], values["bob"]]), "cid": values["cid"]}
    for budgets in ({}, BUDGETS):
        options = Options(loss=loss, repair="none", budgets=budgets)
        plan = silenced(Plan.make(of, epsilon=None if budgets else ONE, bits=20, options=options))
        reference = Plan.make(elsewhere, epsilon=ONE, bits=20, options=Options(loss=loss, repair="none"))
        release, expected = clear_fit(of, values, plan)[0], clear_fit(elsewhere, moved, silenced(reference))[0]
        assert release.names == expected.names
        np.testing.assert_allclose(release.values, expected.values, rtol=1e-9)


@pytest.mark.parametrize("mechanism", ["gaussian", "gamma-norm"])
def test_vector_mechanisms_use_the_l2_sensitivity(mechanism: str) -> None:
    of, values = binary(3000, WIDTHS, "bob")
    delta = Fraction(1, 10**6) if mechanism == "gaussian" else None
    plan = Plan.make(of, epsilon=ONE, options=Options(mechanism=mechanism, delta=delta))
    (group,) = plan.groups
    l2 = float(Moments(5, 1 << plan.bits).record.l2)
    if mechanism == "gaussian":
        assert isinstance(group.mechanism, DiscreteGaussian)
        assert group.mechanism.standard_deviation == pytest.approx(4.2247 * l2, rel=1e-3)
    else:
        assert all(mask.all() for mask in group.contributors.values()) and set(group.contributors) == set(WIDTHS)
    laplace = Plan.make(of, epsilon=ONE)
    assert plan.noise_deviation < laplace.noise_deviation
    guarantee = plan.guarantee(Cast(tuple(WIDTHS)))
    assert {row.delta for row in guarantee.rows if row.epsilon == 1} == {delta or Fraction(0)}
    release, _ = clear_fit(of, values, plan)
    assert np.isfinite(release.values).all()


@pytest.mark.parametrize("repair", REPAIRS)
def test_no_repair_crashes_and_indefinite_forms_are_told(repair: str) -> None:
    of, values = binary(300, WIDTHS, "bob")
    plan = Plan.make(of, epsilon=Fraction(1, 20), options=Options(repair=repair))
    releases = [clear_fit(of, values, plan)[0] for _ in range(2)]
    assert all(np.isfinite(release.values).all() for release in releases)
    assert all(release.indefinite > 0 for release in releases)


@pytest.mark.parametrize("repair", REPAIRS)
def test_repairs_leave_a_clean_form_alone(repair: str) -> None:
    rng = np.random.default_rng(0)
    x = np.vstack([np.ones(500), rng.uniform(-1, 1, (4, 500))])
    matrix = x @ x.T
    found = minimise(matrix, 4, repair, noise=0.0)
    expected = np.linalg.lstsq(x[:4].T, x[4], rcond=None)[0]
    assert np.allclose(found.weights, expected, atol=1e-6) and found.indefinite == 0


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"loss": "hinge"}, "one of linear, logistic"),
        ({"release": "ordered"}, "sensitivity = 'paper'"),
        ({"sensitivity": "paper", "mechanism": "gamma-norm"}, "say 'tight'"),
        ({"expansion": "chebyshev"}, "loss = 'logistic'"),
        ({"mechanism": "gaussian"}, "needs one in"),
        ({"delta": Fraction(1, 10)}, "needs one in"),
        ({"mechanism": "gaussian", "delta": Fraction(2)}, "delta"),
        ({"margin": 0.0}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"budgets": BUDGETS, "sensitivity": "paper"}, "bottom-up"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(choice: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Options(**choice)  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", ["joint", "paper"])
def test_vector_noise_needs_shares(noise: str) -> None:
    of, _ = binary(50, WIDTHS, "bob")
    with pytest.raises(InputError, match="needs noise = 'shares'"):
        Plan.make(of, epsilon=ONE, noise=noise, options=Options(mechanism="gamma-norm"))
