"""A scikit-learn regressor that is trained on a release, and then predicts like any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from protocols.data_release.fit import RIDGE, fit
from protocols.data_release.released_data import ReleasedData
from protocols.data_release.released_file import read_released
from protocols.schema import Floats


class ReleasedRegression(RegressorMixin, BaseEstimator):
    """Linear regression: `fit` takes released files, `predict` and `score` take records in the columns' own units.

    After `fit`: coef_ (d,), intercept_, feature_names_in_, and guarantee_, who is protected against whom.
    """

    def __init__(self, solver: str | None = None, ridge: float = RIDGE) -> None:
        self.solver = solver
        self.ridge = ridge

    def fit(self, X: ReleasedData | str | Path | Sequence[str | Path], y: None = None) -> ReleasedRegression:
        """Train on a release, on its file or on the files of its parts. There is no y: the release names its label."""
        if isinstance(X, ReleasedData):
            data = X
        else:
            data = read_released([Path(path) for path in ([X] if isinstance(X, str | Path) else X)])
        fitted = fit(data, self.solver, self.ridge)
        self.intercept_, self.coef_ = float(fitted.weights[0]), fitted.weights[1:]
        self.feature_names_in_ = np.array([item.column.name for item in data.features], dtype=object)
        self.n_features_in_ = len(self.coef_)
        self.guarantee_ = data.guarantee
        return self

    def predict(self, X: Floats) -> Floats:
        """The label of every record: X of shape (n, d), columns as in `feature_names_in_`, gives (n,)."""
        check_is_fitted(self)
        scores: Floats = np.asarray(validate_data(self, X, reset=False)) @ self.coef_ + self.intercept_
        return scores
