"""Made-up linear data with a known answer: what a mechanism does as columns, rows and zero weights grow."""

from __future__ import annotations

import math

import numpy as np

from protocols.public_coding import Dataset
from protocols.schema import Column

NOISE = 0.05  # standard deviation of the label around its mean: the error of least squares is its square, 0.0025
NORM = 0.37  # of the weights: predicting zero has the error NORM^2 / 3 + NOISE^2 = 0.048


def synthetic(rows: int, columns: int, density: float = 1.0, seed: int = 0) -> Dataset:
    """Columns even on [-1, 1], a label in [-1, 1]; a share `density` of the weights, equal in size, is not 0."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, (rows, columns))
    used = max(1, round(density * columns))
    w = np.zeros(columns)
    w[random.choice(columns, used, replace=False)] = NORM / math.sqrt(used) * random.choice([-1.0, 1.0], used)
    y = np.clip(x @ w + random.normal(scale=NOISE, size=rows), -1, 1)
    names = tuple(Column(f"x{j}", -1.0, 1.0) for j in range(1, columns + 1))
    return Dataset(x, y, names, Column("y", -1.0, 1.0), "linear")
