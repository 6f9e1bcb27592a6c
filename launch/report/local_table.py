"""A released model on a complete table that the reader has: predicted against actual, or a ROC curve.

Computed here from that table, never by a protocol: who has no such table learns none of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from launch.models import ReleasedModel
from launch.report.drawing import canvas, colour, picture, shades, shortened
from launch.report.markup import Markup, element, facts, figure, join
from launch.report.style import MUTED
from launch.tables.table import read_columns
from protocols.evaluation import mean_squared_error, misclassification
from protocols.schema import Floats
from smpc.errors import InputError

_POINTS = 200  # of a curve
_CELLS = 25  # across a picture of many rows
_PRIVATE = (
    "This part shows the rows of a table on the reader's machine. The guarantee of the run says nothing about it: "
    "keep this page as you keep the table."
)


def table_section(folder: Path, table: Path) -> Markup:
    """How the model in `folder` does on `table`. Raises InputError where a column is missing or labels do not fit."""
    model = ReleasedModel.load(folder)
    columns = read_columns(table, (*model.names, model.label), model.categories)
    if not columns.size:
        raise InputError(f"{table}: has no rows to compare the model with")
    actual, predicted = columns[-1], model.predict(columns[:-1])
    draw = _classes if model.loss == "logistic" else _numbers
    return join([element("p", _PRIVATE, class_="warning"), *draw(table, model.label, actual, predicted)])


def _numbers(table: Path, label: str, actual: Floats, predicted: Floats) -> list[Markup]:
    error = mean_squared_error(actual, predicted)
    spread = float(np.var(actual))
    told = [("rows", f"{len(actual):,}"), ("mean squared error", f"{error:.4g}")]
    told += [("of predicting the mean", f"{spread:.4g}")]
    told += [("R squared", f"{1 - error / spread:.4f}")] if spread > 0 else []
    ends = (float(min(actual.min(), predicted.min())), float(max(actual.max(), predicted.max())))
    with canvas(3.6) as drawing:
        frame = drawing.subplots()
        frame.hexbin(actual, predicted, gridsize=_CELLS, bins="log", mincnt=1, cmap=shades(), linewidths=0.2)
        frame.plot(ends, ends, color=MUTED, linewidth=1, linestyle="--")
        frame.set_xlabel(shortened(f"actual {label}", 40))
        frame.set_ylabel("predicted")
        alt = f"Predicted against actual {label} of {len(actual):,} rows; mean squared error {error:.4g}."
        drawn = picture(drawing, "predicted", alt)
    return [
        facts(told),
        figure(
            drawn, f"Rows of {table.name} counted in cells: the darker, the more. On the dashed line both are equal."
        ),
    ]


def _classes(table: Path, label: str, actual: Floats, predicted: Floats) -> list[Markup]:
    if not np.isin(actual, (0, 1)).all() or not 0 < actual.sum() < len(actual):
        raise InputError(f"{table}: {label} must be 0 and 1, both in the table, for a logistic model")
    false, true = roc(actual, predicted)
    area = float(np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2))
    wrong = misclassification(actual, predicted - 0.5)
    told = [("rows", f"{len(actual):,}"), ("area under the curve", f"{area:.4f}"), ("misclassified", f"{wrong:.2%}")]
    told += [("of always the same class", f"{min(actual.mean(), 1 - actual.mean()):.2%}")]
    kept = np.unique(np.linspace(0, len(false) - 1, _POINTS).astype(int))
    with canvas(3.6) as drawing:
        frame = drawing.subplots()
        frame.plot(false[kept], true[kept], color=colour(0), linewidth=1.8)
        frame.plot((0, 1), (0, 1), color=MUTED, linewidth=1, linestyle="--")
        frame.set_xlabel("share of zeros called one")
        frame.set_ylabel("share of ones called one")
        drawn = picture(drawing, "roc", f"ROC curve of {len(actual):,} rows; area under it {area:.4f}.")
    return [facts(told), figure(drawn, f"ROC curve on {table.name}. The dashed line is guessing.")]


def roc(actual: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """False and true positive rates at every threshold, from (0, 0) to (1, 1); equal scores pass together.

    `actual` has shape (n,), 0 and 1, both present; `scores` (n,). Returns two arrays of one shape.
    """
    order = np.argsort(-scores, kind="stable")
    ends: npt.NDArray[np.intp] = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    true = np.cumsum(actual[order])[ends]
    false = 1 + ends - true
    return np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1])
