"""Logistic regression by Newton's method: the solution without privacy, with a certified distance from the optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protocols.baselines.inputs import checked
from protocols.baselines.model import NOT_PRIVATE, Model
from protocols.schema import Floats
from smpc.errors import InputError

TOLERANCE = 1e-8  # of the gradient's norm
_STEPS = 200
_ULP = 2.0**-52


@dataclass(frozen=True)
class Minimiser:
    """Weights, shape (d,), and a bound of the L2 norm of the exact gradient there, float64 rounding included.

    With an L2 penalty of strength r the distance to the exact minimiser is at most gradient / r.
    """

    weights: Floats
    gradient: float


def fit(x: Floats, y: Floats) -> Model:
    """Maximum likelihood. Raises InputError where the tolerance on the gradient is not met."""
    return Model(minimise(*checked(x, y, "logistic")).weights, NOT_PRIVATE)


def sigmoid(z: Floats) -> Floats:
    """1 / (1 + e^-z), shape of `z`, without overflow."""
    values: Floats = 0.5 * (1 + np.tanh(0.5 * z))
    return values


def minimise(x: Floats, y: Floats, regularisation: float = 0.0) -> Minimiser:
    """argmin of (1/n) sum (log(1 + e^z) - y z) + (regularisation / 2) |w|^2, z = x . w.

    Separable classes without a penalty have no minimiser: then weights at which the gradient is within the tolerance.
    Raises InputError when TOLERANCE is not met in 200 steps, as with so many rows that float64 cannot certify it.
    """
    w = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        z = x @ w
        probability = sigmoid(z)
        gradient = x.T @ (probability - y) / len(y) + regularisation * w
        norm = float(np.linalg.norm(gradient)) + _rounding(x, w, regularisation)
        if norm <= TOLERANCE:
            return Minimiser(w, norm)
        spread = probability * (1 - probability) / len(y)
        hessian = (x * spread[:, None]).T @ x + regularisation * np.eye(len(w))
        w = w + _damped(x, y, regularisation, w, -np.linalg.lstsq(hessian, gradient, rcond=None)[0], gradient)
    raise InputError(f"gradient norm {norm:.3g} after {_STEPS} steps, above {TOLERANCE}: use fewer rows or columns")


def _damped(x: Floats, y: Floats, regularisation: float, w: Floats, step: Floats, gradient: Floats) -> Floats:
    """The step, halved until the objective falls by a part of what its slope promises, or by nothing measurable."""

    def objective(weights: Floats) -> float:
        z = x @ weights
        return float(np.mean(np.logaddexp(0.0, z) - y * z) + regularisation / 2 * (weights @ weights))

    start, slope = objective(w), float(gradient @ step)
    while objective(w + step) > start + 1e-4 * slope + 8 * _ULP * abs(start):
        step, slope = step / 2, slope / 2
    return step


def _rounding(x: Floats, w: Floats, regularisation: float) -> float:
    """A bound of the float64 error of the gradient's norm, for |x| <= 1 and |label| <= 1.

    Per coordinate: n terms up to 1 are summed, (n + 1) ulp; a margin is off by (d + 1) |w|_1 ulp, which the sigmoid
    quarters, itself good to 16 ulp; and the penalty adds 2 regularisation |w_j| ulp.
    """
    rows, columns = x.shape
    size = float(np.abs(w).sum())
    return float(np.sqrt(columns) * _ULP * (rows + 32 + (columns + 1) * size) + 4 * _ULP * regularisation * size)
