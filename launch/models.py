"""Released models, read back from model.json: what they say of a table, and scikit-learn estimators."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from launch.jobfile.fields import MAX_NAME, is_plain
from launch.jobfile.parties import INTERCEPT
from launch.tables.table import read_columns
from launch.voted_model import VOTED, VotedModel
from protocols.schema import Floats
from smpc.engine import public_json
from smpc.errors import InputError

_LOSSES = ("linear", "logistic")


@dataclass(frozen=True)
class ReleasedModel:
    """A linear or logistic model: `names` and `weights` (features,) in the columns' own units.

    `categories`: values of columns of text, the first without an indicator NAME=VALUE among the names. `bounds`: what
    the parties declared of the columns' values.
    """

    loss: str
    label: str
    names: tuple[str, ...]
    weights: Floats
    intercept: float
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> ReleasedModel:
        """From a result folder or its model.json. Raises InputError for anything else."""
        model = load_model(path)
        if not isinstance(model, cls):
            raise InputError(f"{path}: is the model of an ensemble, which says classes; use `smpc predict` for it")
        return model

    @classmethod
    def of(cls, about: Any) -> ReleasedModel:
        """From what model.json says. Raises an error of Python's for anything else."""
        values = {str(name): float(value) for name, value in about["coefficients"].items()}
        intercept = values.pop(INTERCEPT)
        finite = all(map(math.isfinite, (intercept, *values.values())))
        categories = {str(name): tuple(map(str, texts)) for name, texts in about.get("categories", {}).items()}
        weights = np.array(list(values.values()))
        bounds = {str(name): (float(low), float(high)) for name, (low, high) in about.get("bounds", {}).items()}
        label = about["label"]
        plain = all(is_plain(name, MAX_NAME) for name in (label, *categories)) and all(map(str.isprintable, values))
        if (
            about["loss"] not in _LOSSES
            or not values
            or not finite
            or not plain
            or not categories.keys().isdisjoint(values)
        ):
            raise ValueError
        return cls(about["loss"], label, tuple(values), weights, intercept, categories, bounds)

    def predict(self, columns: Floats) -> Floats:
        """For columns of shape (features, rows): the label's value, or the probability that it is 1; shape (rows,)."""
        scores: Floats = self.weights @ columns + self.intercept
        return np.exp(-np.logaddexp(0, -scores)) if self.loss == "logistic" else scores

    def estimator(self) -> Any:
        """A fitted scikit-learn LinearRegression or LogisticRegression (classes 0 and 1), for arrays or data frames."""
        try:
            from sklearn.linear_model import LinearRegression, LogisticRegression
        except ImportError:
            raise InputError("estimators need scikit-learn: pip install 'sharewise[models]'") from None
        if self.loss == "logistic":
            model = LogisticRegression()
            model.classes_ = np.array([0, 1])
            model.coef_, model.intercept_ = self.weights[np.newaxis], np.array([self.intercept])
        else:
            model = LinearRegression()
            model.coef_, model.intercept_ = self.weights, self.intercept
        model.feature_names_in_ = np.array(self.names, dtype=object)
        model.n_features_in_ = len(self.names)
        return model

    @property
    def heading(self) -> str:
        """What the predictions are."""
        return f"probability of {self.label}" if self.loss == "logistic" else self.label


def load_model(path: Path) -> ReleasedModel | VotedModel:
    """From a result folder or its model.json. Raises InputError for anything else."""
    file = path / "model.json" if path.is_dir() else path
    try:
        about: Any = public_json.read(file.read_bytes())
        return VotedModel.of(about) if about.get("protocol") == VOTED else ReleasedModel.of(about)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}); name model.json or its folder") from None
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError):
        raise InputError(
            f"{file}: is not the model.json of a linear or logistic model; nor of an ensemble, with bounds and classes "
            "(split learning's networks are files beside it: docs/tutorials/split.md)"
        ) from None


def predict_table(model_path: Path, table: Path) -> tuple[str, list[str]]:
    """A CSV text: what the model says of every row of a CSV or Parquet table, in its order; and warnings."""
    model = load_model(model_path)
    columns = read_columns(table, model.names, model.categories)
    lines = StringIO()
    said = [model.heading, *model.predict(columns).tolist()]
    csv.writer(lines, lineterminator="\n").writerows([value] for value in said)
    return lines.getvalue(), _warnings(table, model, columns)


def _warnings(table: Path, model: ReleasedModel | VotedModel, columns: Floats) -> list[str]:
    """In how many rows a column is beyond the bounds of the rows that the model was made from."""
    told = []
    for name, values in zip(model.names, columns, strict=True):
        low, high = model.bounds.get(name, (-math.inf, math.inf))
        if count := int(np.count_nonzero((values < low) | (values > high))):
            told.append(
                f"{table}: {name} is outside [{low:g}, {high:g}], the bounds of the model's rows, in {count} rows; "
                "their predictions are extrapolated"
            )
    return told
