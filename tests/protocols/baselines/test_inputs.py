"""What every baseline refuses, repeats and states alike; the integer lattice of the data."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import Stream
from protocols.baselines import adassp, central_fm, dpfw, dpsgd, logistic, ols, output_perturbation, trivial
from protocols.baselines.inputs import UNIT, check_exact, checked, noisy, on_lattice, short_rows_on_lattice, with_ones
from protocols.baselines.model import Model
from smpc.errors import InputError
from tests.protocols.baselines import tables

ONE, TINY = Fraction(1), Fraction(1, 10**5)
Fit = Callable[..., Model]

PRIVATE: dict[str, tuple[str, Fit, dict[str, Any]]] = {
    "dpfw": ("linear", dpfw.fit, {"loss": "linear", "delta": TINY, "steps": 5}),
    "dpfw logistic": ("logistic", dpfw.fit, {"loss": "logistic", "delta": TINY, "steps": 5}),
    "dpsgd": ("linear", dpsgd.fit, {"loss": "linear", "delta": TINY, "steps": 5}),
    "dpsgd logistic": ("logistic", dpsgd.fit, {"loss": "logistic", "delta": TINY, "steps": 5}),
    "laplace": ("linear", dpsgd.fit_laplace, {"loss": "linear", "steps": 5}),
    "output": ("logistic", output_perturbation.fit, {"regularisation": Fraction(1, 10)}),
    "fm": ("linear", central_fm.fit, {"loss": "linear"}),
    "fm author": ("logistic", central_fm.fit, {"loss": "logistic", "constants": "author"}),
    "adassp": ("linear", adassp.fit, {"delta": TINY}),
}
EXACT: dict[str, tuple[str, Fit]] = {
    "ols": ("linear", ols.fit),
    "logistic": ("logistic", logistic.fit),
    "mean": ("linear", trivial.mean),
    "majority": ("logistic", trivial.majority),
}


@pytest.fixture(params=sorted(PRIVATE))
def private(request: pytest.FixtureRequest) -> tuple[str, Fit, dict[str, Any]]:
    return PRIVATE[request.param]


def test_equal_words_equal_weights(private: tuple[str, Fit, dict[str, Any]]) -> None:
    loss, fit, options = private
    x, y = tables.of(loss, n=200)
    first, again, other = (fit(x, y, epsilon=ONE, random=Stream(bytes([k]) * 32), **options) for k in (1, 1, 2))
    assert np.array_equal(first.weights, again.weights)
    assert not np.array_equal(first.weights, other.weights)
    assert np.isfinite(first.weights).all() and first.weights.shape == (3,)


def test_the_statement_says_what_was_asked_for(private: tuple[str, Fit, dict[str, Any]]) -> None:
    loss, fit, options = private
    x, y = tables.of(loss, n=200)
    statement = fit(x, y, epsilon=Fraction(3, 7), random=Stream(bytes(32)), **options).statement
    assert statement.epsilon == Fraction(3, 7)
    assert statement.delta == options.get("delta", 0)
    assert str(statement.neighbours) == "replace one record"
    assert "iscrete" in statement.mechanism or "gamma-norm" in statement.mechanism


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "x"])
def test_epsilon_out_of_range(private: tuple[str, Fit, dict[str, Any]], epsilon: Any) -> None:
    loss, fit, options = private
    x, y = tables.of(loss, n=20)
    with pytest.raises((ValueError, TypeError), match="epsilon"):
        fit(x, y, epsilon=epsilon, random=Stream(bytes(32)), **options)


@pytest.mark.parametrize("delta", [0, 1, -1, float("nan")])
@pytest.mark.parametrize("name", ["dpfw", "dpsgd", "adassp"])
def test_delta_out_of_range(name: str, delta: Any) -> None:
    loss, fit, options = PRIVATE[name]
    x, y = tables.of(loss, n=20)
    with pytest.raises(ValueError, match="delta"):
        fit(x, y, epsilon=ONE, random=Stream(bytes(32)), **{**options, "delta": delta})


BAD = {
    "above": (lambda x, y: (np.where(x == x.max(), 1.01, x), y), "x has 1 entries"),
    "nan": (lambda x, y: (np.where(x == x.max(), np.nan, x), y), "x has 1 entries"),
    "infinite": (lambda x, y: (np.where(x == x.max(), np.inf, x), y), "x has 1 entries"),
    "label above": (lambda x, y: (x, np.where(y == y[0], 2.0, y)), "y has"),
    "label nan": (lambda x, y: (x, np.where(y == y[0], np.nan, y)), "y has"),
    "lengths": (lambda x, y: (x, y[1:]), "y has shape"),
    "label matrix": (lambda x, y: (x, y[:, None]), "y has shape"),
    "vector": (lambda x, y: (x[:, 0], y), "x has shape"),
    "no columns": (lambda x, y: (x[:, :0], y), "x has shape"),
    "no rows": (lambda x, y: (x[:0], y[:0]), "x has shape"),
}


@pytest.mark.parametrize("fault", sorted(BAD))
@pytest.mark.parametrize("name", [*sorted(PRIVATE), *sorted(EXACT)])
def test_tables_out_of_range(name: str, fault: str) -> None:
    loss, fit = PRIVATE[name][:2] if name in PRIVATE else EXACT[name]
    options = {"epsilon": ONE, "random": Stream(bytes(32)), **PRIVATE[name][2]} if name in PRIVATE else {}
    spoil, message = BAD[fault]
    x, y = spoil(*tables.of(loss, n=20))
    with pytest.raises(InputError, match=message) as caught:
        fit(x, y, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fit", [dpfw.fit, dpsgd.fit])
def test_unknown_loss(fit: Fit) -> None:
    x, y = tables.linear(20)
    with pytest.raises(InputError, match="one of linear, logistic"):
        fit(x, y, loss="hinge", epsilon=ONE, delta=TINY, random=Stream(bytes(32)))


def test_labels_of_the_other_loss_are_refused() -> None:
    x, y = tables.linear(20)
    with pytest.raises(InputError, match=r"\{0, 1\}"):
        checked(x, y, "logistic")


def test_ones_are_the_last_column() -> None:
    assert with_ones(np.zeros((2, 1))).tolist() == [[0, 1], [0, 1]]


def test_lattice_keeps_the_bounds() -> None:
    assert on_lattice(np.array([-1.0, 1.0, 0.5, 0.5 / UNIT])).tolist() == [-UNIT, UNIT, UNIT / 2, 1]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6), st.fractions(Fraction(1, 50), Fraction(3)))
def test_short_rows_are_short_exactly(row: list[float], norm: Fraction) -> None:
    (integers,) = short_rows_on_lattice(np.array([row]), norm)
    assert sum(int(v) ** 2 for v in integers) <= (norm * UNIT) ** 2
    if np.linalg.norm(row) < float(norm) * 0.999:
        assert np.array_equal(integers, np.trunc(np.array(row) * UNIT))


def test_sums_that_float64_might_round_are_refused() -> None:
    check_exact(2**25 - 1, UNIT**2, "sums")
    with pytest.raises(InputError, match="at most 33554431 fit"):
        check_exact(2**25, UNIT**2, "sums")


def test_noise_is_added_before_anything_is_rounded_to_float64() -> None:
    noise, values = DiscreteLaplace(Fraction(2**54)), np.arange(1000.0).reshape(500, 2)
    drawn = noise.draw(1000, Stream(bytes(32))).reshape(500, 2)
    expected = np.array([float(int(v) + int(n)) for v, n in zip(values.ravel(), drawn.ravel(), strict=True)])
    assert np.array_equal(noisy(values, noise, Stream(bytes(32))).ravel(), expected)
    assert not np.array_equal(values + drawn, expected.reshape(500, 2))  # the order matters at this size
