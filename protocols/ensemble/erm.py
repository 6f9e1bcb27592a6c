"""Regularised logistic and softmax regression whose labels enter through one linear statistic (paper 3, (8), (19), B).

For rows x_i and label weights alpha_i (one class: the share of class 1; more: one share a class, which sum to one)

    (1/N) sum_i l_alpha(x_i) + (lambda/2) |w|^2  =  (1/N) sum_i A(w x_i) - <w, S> + (lambda/2) |w|^2,
    S = (1/N) sum_i alpha_i (x) x_i,

with A(z) = log(1 + e^z) for two classes (w of shape (1, d)) and A(z) = log sum_c e^(z_c) for C classes (w of shape (C,
d)): in the logistic loss of a label weight, alpha log(1 + e^-z) + (1 - alpha) log(1 + e^z) = A(z) - alpha z, and in the
softmax loss -sum_c alpha_c log p_c = A(z) - sum_c alpha_c z_c. Votes reach the minimiser through S and nothing else. An
intercept is a constant column of x, so it is regularised and inside |x| <= 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.schema import Floats
from smpc.errors import InputError

TOLERANCE = 1e-8  # of the gradient's norm
_STEPS = 100
_ULP = 2.0**-52


@dataclass(frozen=True)
class Minimiser:
    """Weights (width, d), and a bound of the L2 norm of the exact gradient there, float64 rounding included.

    The exact minimiser is within gradient / lambda.
    """

    weights: Floats
    gradient: float


def statistic(x: Floats, alpha: Floats) -> Floats:
    """S of rows `x` (N, d) and label weights `alpha` (width, N): shape (width, d)."""
    return np.asarray(alpha @ x / len(x))


def minimise(x: Floats, s: Floats, regularisation: float, *, certified: bool = True) -> Minimiser:
    """Newton's method on rows with |x_i| <= 1; `s` of shape (1, d) means two classes, (C, d) means C >= 3.

    Any `s` has a minimiser, noisy ones too. Raises InputError where TOLERANCE is not met, unless not `certified`.
    """
    w = np.zeros(s.shape)
    for _ in range(_STEPS):
        p = probabilities(w @ x.T)
        gradient: Floats = np.asarray(p @ x / len(x) - s + regularisation * w)
        norm = float(np.linalg.norm(gradient)) + _rounding(x, w, s, regularisation)
        if norm <= TOLERANCE:
            return Minimiser(w, norm)
        step = np.linalg.solve(_hessian(x, p, regularisation), -gradient.reshape(-1)).reshape(w.shape)
        w, moved = _damped(x, s, regularisation, w, np.asarray(step), gradient)
        if not moved:
            break
    if certified:
        raise InputError(f"gradient norm {norm:.3g} where float64 ends, above {TOLERANCE}: use fewer rows or columns")
    return Minimiser(w, norm)


def probabilities(z: Floats) -> Floats:
    """Of the classes, from margins (width, n): of class 1 for one row, of every class for more; the same shape."""
    if len(z) == 1:
        return np.asarray(0.5 * (1 + np.tanh(0.5 * z)))
    e = np.exp(z - z.max(axis=0))
    return np.asarray(e / e.sum(axis=0))


def predict(w: Floats, x: Floats) -> npt.NDArray[np.int64]:
    """The most probable class of every row, the first of equal ones."""
    z = w @ x.T
    return np.asarray(z[0] > 0 if len(w) == 1 else z.argmax(axis=0), dtype=np.int64)


def _log_partition(z: Floats) -> Floats:
    if len(z) == 1:
        return np.asarray(np.logaddexp(0.0, z[0]))
    top = z.max(axis=0)
    return np.asarray(top + np.log(np.exp(z - top).sum(axis=0)))


def _hessian(x: Floats, p: Floats, regularisation: float) -> Floats:
    """Shape (width d, width d)."""
    width, d = len(p), x.shape[1]
    result = np.empty((width, d, width, d))
    for a in range(width):
        for b in range(a + 1):
            spread = p[a] * ((a == b) - p[b]) / len(x)
            result[a, :, b] = result[b, :, a] = (x * spread[:, None]).T @ x
    square = result.reshape(width * d, width * d)
    square[np.diag_indices(width * d)] += regularisation
    return square


def _damped(
    x: Floats, s: Floats, regularisation: float, w: Floats, step: Floats, gradient: Floats
) -> tuple[Floats, bool]:
    """The step, halved until the objective falls by a part of what its slope promises, or by nothing measurable."""

    def objective(weights: Floats) -> float:
        fit = float(np.mean(_log_partition(weights @ x.T)) - np.sum(weights * s))
        return fit + regularisation / 2 * float(np.sum(weights * weights))

    start, slope, length = objective(w), float(np.sum(gradient * step)), 1.0
    slack = 8 * _ULP * (abs(start) + float(np.sum(np.abs(w * s))))
    while objective(w + length * step) > start + 1e-4 * length * slope + slack:
        length /= 2
        if length < _ULP:
            return w, False
    return w + length * step, True


def _rounding(x: Floats, w: Floats, s: Floats, regularisation: float) -> float:
    """A bound of the float64 error of the gradient's norm, for |x_i| <= 1.

    Per coordinate: the mean over n terms up to 1, and the one in `s`, (n + 1) ulp each; a margin is off by (d + 1)
    |w_c|_1 ulp, which moves a probability by at most half of the largest error of a margin, itself good to (width + 16)
    ulp; the sum of the three parts and the penalty add 4 ulp of what they are.
    """
    rows, columns = x.shape
    size = float(np.abs(w).sum(axis=1).max())
    each = 2 * (rows + 1) + len(w) + 16 + (columns + 1) * size + 4 * float(np.abs(s).max())
    return float(np.sqrt(w.size) * _ULP * each + 4 * _ULP * regularisation * np.abs(w).sum())
