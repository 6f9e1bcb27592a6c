"""Small regression tables for the baselines' tests."""

from __future__ import annotations

import numpy as np

from protocols.schema import Floats


def linear(n: int = 4000, d: int = 3, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, d))
    w = np.linspace(0.5, -0.4, d) / d
    return x, np.clip(x @ w + rng.normal(0, 0.05, n), -1, 1)


def logistic(n: int = 4000, d: int = 3, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, d))
    w = np.linspace(2.0, -1.0, d)
    return x, (rng.random(n) < 1 / (1 + np.exp(-x @ w))).astype(np.float64)


def of(loss: str, n: int = 4000, d: int = 3) -> tuple[Floats, Floats]:
    return linear(n, d) if loss == "linear" else logistic(n, d)
