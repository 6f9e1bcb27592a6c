"""The scikit-learn estimator: trained on files alone, used by scikit-learn's own tools."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.metrics import r2_score

from protocols.data_release.plan import ReleasePlan
from protocols.data_release.protocol import release
from protocols.data_release.regression import ReleasedRegression
from protocols.data_release.released_file import to_parquet
from protocols.schema import Floats
from smpc import Cast, ClearSession, InputError
from smpc.values import value_of
from tests.support import held, schema, tables


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Floats]:
    of = schema(100_000, {"ann": 1, "bob": 1}, "bob")
    values = tables(of)
    values["bob"][-1] = 2 + 1.5 * values["ann"][0] - 0.2 * values["bob"][0]
    s = ClearSession(Cast(("ann", "bob"), dealer=None))
    plan = ReleasePlan.make(of, epsilon=Fraction(10), delta=Fraction(1, 10**5))
    folder = tmp_path_factory.mktemp("released")
    for name, data in release(s, held(s, values), plan, "r").data.items():
        (folder / f"{name}.parquet").write_bytes(to_parquet(value_of(data)))
    return folder, pd.DataFrame({"ann0": values["ann"][0], "bob0": values["bob"][0]}), values["bob"][-1]


def test_it_learns_from_the_file_and_predicts_records(files: tuple[Path, Any, Floats]) -> None:
    folder, x, y = files
    model = ReleasedRegression().fit(folder / "server.parquet")
    assert model.coef_.shape == (2,) and list(model.feature_names_in_) == ["ann0", "bob0"]
    assert model.score(x, y) == r2_score(y, model.predict(x)) > 0.8
    assert "replace one record" in str(model.guarantee_)
    parts = ReleasedRegression(solver="debiased").fit([str(folder / f"{p}.parquet") for p in ("ann", "bob")])
    assert parts.score(x, y) > 0.8


def test_scikit_learns_tools_take_it(files: tuple[Path, Any, Floats]) -> None:
    folder, x, y = files
    model = clone(ReleasedRegression(ridge=1e-3)).set_params(solver="ols")
    assert model.get_params() == {"ridge": 1e-3, "solver": "ols"} and is_regressor(model)
    model.fit(folder / "server.parquet")
    importance = permutation_importance(model, x[:1000], y[:1000], n_repeats=2, random_state=0)
    assert importance.importances_mean[0] > importance.importances_mean[1]


def test_misuse_is_told(files: tuple[Path, Any, Floats]) -> None:
    with pytest.raises(NotFittedError):
        ReleasedRegression().predict(np.zeros((1, 2)))
    model = ReleasedRegression().fit(files[0] / "server.parquet")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(files[1][["bob0", "ann0"]])  # columns in another order
    with pytest.raises(InputError, match="solver = 'lasso'"):
        ReleasedRegression("lasso").fit(files[0] / "server.parquet")
