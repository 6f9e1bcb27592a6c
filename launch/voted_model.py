"""Classifiers that ensemble jobs release: names of their weights in model.json, and classes of a table's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from launch.jobfile.fields import MAX_NAME, is_plain
from launch.jobfile.parties import INTERCEPT
from protocols.ensemble import erm
from protocols.ensemble.auxiliary import bounded_rows
from protocols.schema import Column, Floats

VOTED = "ensemble"  # what model.json calls the protocol
FEATURES = "columns scaled to [0, 1] by their bounds, rows longer than 1 shortened to length 1, then (row, 1) / sqrt 2"


@dataclass(frozen=True)
class VotedModel:
    """`weights` (width, columns + 1), as in `EnsembleRelease`; `columns` with the bounds that the job declared."""

    classes: tuple[str, ...]
    columns: tuple[Column, ...]
    weights: Floats
    heading: ClassVar[str] = "class"
    categories: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # columns are numbers

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> VotedModel:
        """From what model.json says. Raises an error of Python's for anything else."""
        classes = tuple(about["classes"] if isinstance(about["classes"], list) else ())
        columns = tuple(Column(name, float(low), float(high)) for name, (low, high) in about["bounds"].items())
        names = weight_names(classes, columns)
        weights = np.array([float(about["coefficients"][name]) for name in names])
        plain = all(is_plain(name, MAX_NAME) for name in (*classes, *about["bounds"]))
        if not plain or not are_different(names) or len(classes) < 2 or not columns or not np.isfinite(weights).all():
            raise ValueError
        return cls(classes, columns, weights.reshape(-1, len(columns) + 1))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        return {column.name: (column.low, column.high) for column in self.columns}

    def predict(self, table: Floats) -> npt.NDArray[np.str_]:
        """The class of every row, of a table of shape (columns, rows) in the columns' own units; shape (rows,)."""
        numbers = erm.predict(self.weights, bounded_rows(table.T, self.columns))
        return np.array(self.classes)[numbers]


def weight_names(classes: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """Two classes have one row of weights, a name a column; more have a row each, names "CLASS: COLUMN"."""
    names = (*(column.name for column in columns), INTERCEPT)
    return list(names) if len(classes) == 2 else [f"{of}: {name}" for of in classes for name in names]


def are_different(names: Sequence[str]) -> bool:
    """Whether each names one weight: class "a", column "b: c" and class "a: b", column "c" together do not."""
    return len(set(names)) == len(names)


def rule(classes: Sequence[str]) -> str:
    """How a row's class follows from its products with the weights, in words."""
    if len(classes) == 2:
        return f"{classes[1]} if the products of row and coefficients add up to more than 0, else {classes[0]}"
    return "the class with the largest sum of products of row and coefficients, of equal ones the first"
