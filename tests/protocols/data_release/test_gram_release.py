"""Secure second moments as a release: messages, the law of what is opened, the guarantee, AdaSSP on the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanisms.gaussian_privacy import GaussianLoss, analytic_delta
from mechanisms.moments import Moments
from mechanisms.neighbours import ReplaceRecord
from protocols.data_release import gram
from protocols.data_release.fit import GRAM_SOLVERS, fit
from protocols.data_release.protocol import DataRelease, release
from protocols.data_release.released_data import ReleasedData, join
from protocols.data_release.released_file import read_released, to_parquet
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.schema import Schema
from smpc import Cast, ClearSession, InputError
from smpc.transcript import table
from smpc.values import value_of
from tests.support import held, schema, silenced, tables

DELTA = Fraction(1, 10**5)
WIDTHS = {"ann": 2, "bob": 1, "cid": 3}


def plan_of(of: Schema, epsilon: int = 1, **options: Any) -> Plan:
    return Plan.make(of, epsilon=Fraction(epsilon), options=Options(mechanism="gaussian", delta=DELTA, **options))


def run(plan: Plan, values: Mapping[str, Any]) -> tuple[DataRelease, ClearSession]:
    s = ClearSession(Cast(tuple(plan.schema.features)))
    return release(s, held(s, values), plan, "test"), s


def whole(released: DataRelease) -> ReleasedData:
    assert set(released.data) == {"server"}
    return value_of(released.data["server"])


def test_docstring_table_is_what_was_sent() -> None:
    of = schema(50, WIDTHS, "bob")
    _, s = run(plan_of(of), tables(of))
    assert table(gram.noisy_gram.__doc__ or "") == s.transcript.steps()


@pytest.mark.parametrize("solver", GRAM_SOLVERS)
def test_without_noise_it_is_least_squares(solver: str) -> None:
    of = schema(400, WIDTHS, "bob")
    values = tables(of)
    x = np.vstack([np.ones(400), values["ann"], values["bob"][:1], values["cid"]]).T
    exact = np.linalg.lstsq(x, values["bob"][-1], rcond=None)[0]
    released, _ = run(silenced(plan_of(of)), values)
    assert np.allclose(released.model.values, exact, atol=1e-4)
    assert np.allclose(fit(whole(released), solver).weights, exact, atol=1e-4)


def test_each_sum_carries_one_draw_within_a_party_and_two_across() -> None:
    of = schema(3000, WIDTHS, "bob")
    values = {p: np.clip(t, c, c + 0.5) for (p, t), c in zip(tables(of).items(), (-0.5, 0.0, -0.5), strict=True)}
    plan = plan_of(of, epsilon=10)
    exact = whole(run(silenced(plan), values)[0]).values
    assert np.abs(np.delete(exact.ravel(), 0)).max() < 2800  # noise of some units is never cut at the rows, 3000
    runs, owner, label = 400, np.array([-1, 0, 0, 1, 1, 2, 2, 2]), plan.coefficients.label
    noises = np.array([whole(run(plan, values)[0]).values - exact for _ in range(runs)])
    (group,) = plan.groups
    unit = float(group.deviations.max()) / 4.0**plan.bits
    assert unit < 10
    for a in range(len(exact)):
        for b in range(a, len(exact)):
            if a == b and a in (0, label):
                assert not noises[:, a, b].any()  # public, not released
                continue
            draws = 1 if a == 0 or owner[a] == owner[b] else 2
            assert abs(noises[:, a, b].var() / (draws * unit**2) - 1) < 6 * (2 / runs) ** 0.5
            assert plan.deviations[a, b] == pytest.approx(unit * draws**0.5)


def test_noise_covers_a_whole_record_at_the_stated_epsilon() -> None:
    of = schema(1000, WIDTHS, "bob")
    plan = plan_of(of)
    (group,) = plan.groups
    loss = GaussianLoss(Fraction(Moments(6, 1 << plan.bits).record.l2_squared), group.mechanism.variance, group.size)  # type: ignore[union-attr]
    assert DELTA * Fraction(99, 100) < analytic_delta(Fraction(1), [loss]) <= DELTA
    cast = Cast(tuple(of.features))
    worst = plan.guarantee(cast).worst(2)
    assert (worst.epsilon, worst.delta, worst.neighbours) == (1, DELTA, ReplaceRecord())


def test_the_file_holds_statistics_and_weights(tmp_path: Path) -> None:
    of = schema(5000, WIDTHS, "bob")
    released, _ = run(plan_of(of, epsilon=10), tables(of))
    path = tmp_path / "gram.parquet"
    path.write_bytes(to_parquet(whole(released)))
    back = read_released([path])
    assert np.array_equal(back.values, whole(released).values)
    assert list(back.model.values()) == released.model.values.tolist()
    assert np.allclose(fit(back).weights, released.model.values)
    with pytest.raises(InputError, match="is whole: give one file"):
        join([back, back])
    with pytest.raises(InputError, match="solver = 'ols': for a gram release it must be one of adassp, ridge, none"):
        fit(back, "ols")
    with pytest.raises(InputError, match=r"^label = .*: is no label of this release"):
        fit(replace(back, label=back.features[0].column.name))


def test_what_is_no_linear_gaussian_plan_on_shares_is_refused() -> None:
    of = schema(50, WIDTHS, "bob")
    for plan in (Plan.make(of, epsilon=Fraction(1)), Plan.make(of, epsilon=Fraction(1), noise="paper")):
        with pytest.raises(InputError, match="a gram release"):
            run(plan, tables(of))
