"""Plans of data releases: k rules, sensitivities brute-forced, printed guarantees, refusals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms.coalition import Coalition
from mechanisms.gaussian_privacy import analytic_delta, continuous_delta
from mechanisms.guarantee import INFINITE
from mechanisms.neighbours import ReplaceRecord
from protocols.data_release.mixing_rows import RULES, expected_error, mixing_rows
from protocols.data_release.plan import BITS, RANGES, ReleasePlan, _l2_squared
from protocols.data_release.protocol import release
from protocols.schema import Column, Schema
from smpc import Cast, ClearSession, Held, InputError

DELTA = Fraction(1, 10**5)
ONE = Fraction(1)


def six_parties(rows: int) -> Schema:
    """The source's synthetic setting: five parties with two features, a sixth with the label. Ours needs a feature
    beside the label, so the label stands with one of two features: 11 columns, at most 2 a party."""
    features = {f"p{i}": tuple(Column(f"x{2 * i + j}", -1, 1) for j in range(2)) for i in range(4)}
    features |= {"p4": (Column("x8", -1, 1), Column("x9", -1, 1))}
    return Schema(rows, {**features, "p5": (Column("x10", -1, 1),)}, "p5", Column("y", -1, 1))


# k rules


@pytest.mark.parametrize(
    ("rule", "n", "expected"), [("printed", 10**4, 21), ("official", 10**4, 207), ("official", 10**6, 2065)]
)
def test_the_sources_rules_give_its_numbers(rule: str, n: int, expected: int) -> None:
    variance = Fraction(2 * math.log(1.25e5))
    assert mixing_rows(rule, n, 10, widest=2, variance=variance, noise=ONE) == expected


def test_theorems_rule() -> None:
    assert mixing_rows("theorem", 10**6, 10, widest=2, variance=Fraction(25), noise=ONE) == math.ceil(5**0.5 * 200)


def test_a_root_that_is_whole_is_not_rounded_further() -> None:
    for variance, expected in ((Fraction(4), 50), (4 + Fraction(1, 2**80), 50), (4 - Fraction(1, 2**80), 51)):
        assert mixing_rows("printed", 10**4, 10, widest=2, variance=variance, noise=ONE) == expected


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [12, 13, 100, 10**4, 3 * 10**6])
@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(25), Fraction(2500)])
def test_k_is_between_features_plus_two_and_the_records(rule: str, n: int, variance: Fraction) -> None:
    k = mixing_rows(rule, n, 10, widest=2, variance=variance, noise=2 * variance)
    assert isinstance(k, int) and 12 <= k <= n


@pytest.mark.parametrize("n", [30, 1000, 10**5])
@pytest.mark.parametrize("noise", [Fraction(1, 1000), ONE, Fraction(300)])
def test_balanced_is_the_fewest_rows_near_the_best_of_all_k(n: int, noise: Fraction) -> None:
    every = np.arange(12.0, n + 1)
    relative = every * float(noise) * 12 / n
    errors = 0.5 * (relative / (1 + relative)) ** 2
    errors += 10 / ((every - 11) * (1 + relative)) * (0.5 * relative / (1 + relative) + 0.5 + relative)
    chosen = mixing_rows("balanced", n, 10, widest=2, variance=ONE, noise=noise)
    assert float(expected_error(chosen, n, 10, noise)) == pytest.approx(errors[chosen - 12], rel=1e-12)
    assert errors[chosen - 12] <= errors.min() * 1.101
    fewer = int(chosen * 0.98)
    assert fewer <= 12 or errors[fewer - 12] > errors.min() * 1.099


def test_k_is_decided_without_a_float(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines' floats may differ in their last digit; all parties must come to the same k."""

    def no_float(_: Fraction) -> float:
        raise AssertionError("a float")

    monkeypatch.setattr(Fraction, "__float__", no_float)
    variance = Fraction(2**200 + 1, 2**200 - 1)
    for rule in RULES:
        assert mixing_rows(rule, 10**5, 10, widest=3, variance=variance, noise=2 * variance) >= 12


def test_balanced_does_not_depend_on_data_and_stands_in_the_plan() -> None:
    plans = [ReleasePlan.make(six_parties(10**5), epsilon=ONE, delta=DELTA) for _ in range(2)]
    assert plans[0] == plans[1] and 12 < plans[0].rows < 10**4


# sensitivity and noise


def released(rows: int, record: tuple[int, ...], signs: tuple[int, ...]) -> np.ndarray:
    return np.outer(signs, record).ravel()


@pytest.mark.parametrize("coding", list(RANGES))
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (2, 1), (3, 2)])
def test_sensitivity_is_attained_for_every_matrix(coding: str, rows: int, width: int) -> None:
    """On a lattice of 3 points a column, both ends among them: all pairs of records, all signs of the record."""
    low, high = (end << BITS for end in RANGES[coding])
    records = list(product((low, (low + high) // 2, high), repeat=width))
    for method, all_signs in (("rmgm", list(product((-1, 1), repeat=rows))), ("dgm", [(1,)])):
        for signs in all_signs:
            views = [released(rows, record, signs) for record in records]
            worst = max(int(((a - b) ** 2).sum()) for a in views for b in views)
            assert worst == _l2_squared(method, rows, width, coding)


@pytest.mark.parametrize("method", ["rmgm", "dgm"])
@pytest.mark.parametrize("coding", list(RANGES))
def test_released_noise_is_what_the_formula_says(method: str, coding: str) -> None:
    """Classical: variance of a released number = range^2 d_j sigma^2, with range^2 = 4 as printed."""
    plan = ReleasePlan.make(
        six_parties(1000),
        epsilon=Fraction(3, 10),
        delta=DELTA,
        method=method,
        sigma="classical",
        ranges=coding,
        rows=50,
    )
    sigma_squared = 2 * math.log(1.25e5) / 0.09
    squared_range = {"signed": 4, "unit": 1}[coding]
    for party, width in plan.schema.widths.items():
        assert plan.noise_variance(party) == pytest.approx(squared_range * width * sigma_squared, rel=1e-9)


def test_own_columns_cost_less_than_the_widest_partys() -> None:
    schema = Schema(100, {"a": (Column("x", -1, 1),), "b": (Column("z", -1, 1),)}, "b", Column("y", -1, 1))
    tight, paper = (
        ReleasePlan.make(schema, epsilon=Fraction(1, 2), delta=DELTA, sensitivity=how) for how in ("tight", "paper")
    )
    assert paper.noise_variance("a") == pytest.approx(2 * tight.noise_variance("a"), rel=0.01)
    assert paper.noise_variance("b") == pytest.approx(tight.noise_variance("b"), rel=0.01)


def test_analytic_is_the_smaller_and_holds_by_the_exact_curve() -> None:
    for epsilon in (Fraction(1, 10), Fraction(3, 10), ONE):
        losses = {
            sigma: ReleasePlan.make(six_parties(1000), epsilon=epsilon, delta=DELTA, sigma=sigma).loss("p0")
            for sigma in ("analytic", "classical")
        }
        ratio = losses["analytic"].variance / losses["classical"].variance
        smaller = 1 - math.sqrt(ratio * losses["classical"].l2_squared / losses["analytic"].l2_squared)
        assert 0.22 < smaller < 0.38  # "23 to 37 % smaller"
        spent = continuous_delta(epsilon, 2 * losses["analytic"].rho)
        assert float(DELTA) * 0.999 < spent <= DELTA


# guarantees


def sixth_with_the_label_alone(rows: int) -> Schema:
    features: Mapping[str, tuple[Column, ...]] = {
        **{f"p{i}": tuple(Column(f"x{2 * i + j}", -1, 1) for j in range(2)) for i in range(5)},
        "p5": (),
    }
    return Schema(rows, features, "p5", Column("y", -1, 1))


@pytest.mark.parametrize(
    ("epsilon", "joint", "single"), [("1", 1.92, 0.751), ("0.3", 0.51, 0.20), ("0.1", 0.155, 0.061)]
)
@pytest.mark.parametrize("method", ["rmgm", "dgm"])
def test_printed_settings_cost_a_whole_record_more_than_they_say(
    method: str, epsilon: str, joint: float, single: float
) -> None:
    plan = ReleasePlan.make(
        sixth_with_the_label_alone(10**5),
        epsilon=Fraction(epsilon),
        delta=DELTA,
        method=method,
        sigma="classical",
        sensitivity="paper",
        rows="official",
    )
    cast = Cast(tuple(plan.schema.features), dealer=None)
    guarantee = plan.guarantee(cast)
    whole = guarantee.worst(5)
    assert float(whole.epsilon) == pytest.approx(joint, abs=0.006) and whole.delta == DELTA
    own = [r for r in guarantee.rows if r.neighbours == ReplaceRecord("p0")]
    assert all(float(r.epsilon) == pytest.approx(single, abs=0.006) for r in own) and len(own) == 6
    assert not any(r.epsilon == INFINITE for r in guarantee.rows)


def test_every_coalition_and_every_party_has_its_row() -> None:
    plan = ReleasePlan.make(six_parties(1000), epsilon=ONE, delta=DELTA)
    guarantee = plan.guarantee(Cast(tuple(plan.schema.features), dealer=None))
    for relation in (ReplaceRecord(), *(ReplaceRecord(p) for p in plan.schema.features)):
        coalitions = {r.coalition for r in guarantee.rows if r.neighbours == relation}
        assert coalitions == {Coalition(frozenset({"server"}), count) for count in range(6)}
    own = {r.epsilon for r in guarantee.rows if r.neighbours != ReplaceRecord()}
    assert all(0 < epsilon <= 1 for epsilon in own)
    (whole,) = {r.epsilon for r in guarantee.rows if r.neighbours == ReplaceRecord()}
    losses = [plan.loss(p) for p in plan.schema.features]
    assert 1 < float(whole) < 6
    assert DELTA * Fraction(999, 1000) < analytic_delta(Fraction(whole), losses) <= DELTA


# refusals


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"rows": 0}, "rows = 0: must be a whole number from 1 to the number of records, 100"),
        ({"rows": -3}, "rows = -3"),
        ({"rows": 101}, "rows = 101"),
        ({"rows": True}, "rows = True"),
        ({"rows": 2.5}, r"rows = 2\.5"),
        ({"rows": "sqrt"}, "rows = 'sqrt': must be a whole number or one of balanced"),
        ({"method": "jl"}, "method = 'jl': must be one of rmgm, dgm"),
        ({"sigma": "exact"}, "sigma = 'exact': must be one of analytic, classical"),
        ({"sensitivity": "own"}, "sensitivity = 'own'"),
        ({"ranges": "both"}, "range = 'both' of p0: must be one of signed, unit"),
        ({"ranges": {"p0": "unit"}}, "range = None of p1"),
        ({"epsilon": Fraction(11, 10), "sigma": "classical"}, r"epsilon=11/10 is outside \(0, 1\]"),
        ({"epsilon": Fraction(0)}, "epsilon=0 is not above 0"),
        ({"epsilon": math.nan}, "epsilon=nan is not finite"),
        ({"epsilon": math.inf}, "epsilon=inf is not finite"),
        ({"epsilon": True}, "epsilon=True is a bool"),
        ({"delta": Fraction(0)}, "delta=0 is not in"),
        ({"delta": 1}, "delta=1 is not in"),
    ],
)
def test_bad_numbers_are_refused_in_one_line(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        ReleasePlan.make(six_parties(100), **{"epsilon": ONE, "delta": DELTA, **arguments})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_party_without_a_column_is_refused() -> None:
    with pytest.raises(InputError, match="b has no feature column"):
        Schema(10, {"a": (Column("x", 0, 1),), "b": ()}, "a", Column("y", 0, 1))
    with pytest.raises(InputError, match="everybody but the label has no feature column"):
        Schema(10, {"a": ()}, "a", Column("y", 0, 1))


def test_too_few_records_for_the_features() -> None:
    with pytest.raises(InputError, match="11 records for 11 features: a release needs at least 13"):
        ReleasePlan.make(six_parties(11), epsilon=ONE, delta=DELTA)


# fixed point


@pytest.mark.parametrize("coding", list(RANGES))
def test_columns_are_mapped_to_the_range_rounded_and_preceded_by_ones(coding: str) -> None:
    schema = Schema(3, {"a": (Column("x", 10, 30),), "b": (Column("z", 0, 1),)}, "b", Column("y", -1, 1))
    plan = ReleasePlan.make(schema, epsilon=ONE, delta=DELTA, ranges=coding, rows=2)
    low, high = RANGES[coding]
    prepared = plan.prepare("a", np.array([[10.0, 20.0, 30.0]]))
    assert prepared.tolist() == [[1 << BITS] * 3, [low << BITS, (low + high << BITS) // 2, high << BITS]]


@pytest.mark.parametrize("value", [9.999, 30.001, math.nan, math.inf])
def test_values_outside_their_bounds_are_refused(value: float) -> None:
    schema = Schema(3, {"a": (Column("x", 10, 30),), "b": (Column("z", 0, 1),)}, "b", Column("y", -1, 1))
    plan = ReleasePlan.make(schema, epsilon=ONE, delta=DELTA, rows=2)
    with pytest.raises(InputError, match="column x: 1 values outside its bounds"):
        plan.prepare("a", np.array([[10.0, value, 30.0]]))
    with pytest.raises(InputError, match="a: table of shape"):
        plan.prepare("a", np.zeros((1, 2)))


# what noise will do


@pytest.mark.parametrize("coding", ["signed", "unit"])
def test_a_model_of_mixed_rows_explains_what_the_plan_expects(coding: str) -> None:
    """Uniform columns that explain half of the label, as the forecast supposes, through the protocol itself."""
    n, rng = 3000, np.random.default_rng(2)
    features = {"p": (Column("a", 0, 1), Column("b", 0, 10)), "q": (Column("c", -1, 1),)}
    plan = ReleasePlan.make(Schema(n, features, "q", Column("y", 0, 1)), epsilon=10 * ONE, delta=DELTA, ranges=coding)
    slopes = np.array([1, 0.1, -0.5]) * math.sqrt(1 / 6)  # of variance 1/24, a half of a uniform label's

    def line(x: np.ndarray) -> np.ndarray:
        return np.asarray(0.5 + slopes @ (x - [[0.5], [5], [0]]))

    def draw() -> np.ndarray:
        return rng.uniform([[0.0], [0.0], [-1.0]], [[1.0], [10.0], [1.0]], (3, n))

    found, new = [], draw()
    for _ in range(9):
        x = draw()
        y = np.clip(line(x) + rng.normal(size=n) * math.sqrt(1 / 24), 0, 1)
        tables = {"p": Held("p", x[:2]), "q": Held("q", np.vstack([x[2:], y]))}
        values = release(ClearSession(Cast(("p", "q"))), tables, plan, "run").model.values
        found.append(0.5 - 12 * np.mean((values[0] + values[1:] @ new - line(new)) ** 2))
    assert 0.3 < plan.explained < 0.5
    assert np.median(found) == pytest.approx(plan.explained, abs=0.06)


def test_less_is_expected_of_less_and_nothing_of_fewer_rows_than_weights() -> None:
    explained = [
        ReleasePlan.make(six_parties(n), epsilon=epsilon * ONE, delta=DELTA).explained
        for n, epsilon in ((10**4, 1), (10**5, 1), (10**5, 10))
    ]
    assert explained == sorted(explained) and explained[0] < 0.1 < 0.3 < explained[-1]
    assert ReleasePlan.make(six_parties(10**5), epsilon=10 * ONE, delta=DELTA, rows=12).explained == 0


@pytest.mark.parametrize("coding", ["signed", "unit"])
def test_noise_of_records_is_that_of_their_products(coding: str) -> None:
    """Of two columns at their bounds, scaled to [-1, 1]: the de-biased sum of their products."""
    n, rng = 400, np.random.default_rng(3)
    plan = ReleasePlan.make(six_parties(n), epsilon=ONE, delta=DELTA, method="dgm", ranges=coding)
    low, high = RANGES[coding]
    deviation = math.sqrt(plan.noise_variance("p0")) * 2 / (high - low)
    a, b = (np.sign(rng.normal(size=(2_000, n))) + rng.normal(size=(2_000, n)) * deviation for _ in range(2))
    assert plan.noise_deviation == pytest.approx((a * b).sum(axis=1).std(), rel=0.1)
