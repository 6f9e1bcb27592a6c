"""Private Frank-Wolfe over the L1 ball (Talwar, Thakurta and Zhang 2015, algorithm 2), full batch.

Each of T steps takes the vertex +-radius e_j of least noisy score, <vertex, mean gradient> + Laplace noise, and moves
to it by the share 2 / (t + 2). Guarantee: (epsilon, delta), replace one record.

Corrected. The source adds Lap(L1 radius sqrt(8 T ln(1/delta)) / (n epsilon)), L1 = largest entry of a gradient. Under
replacement a score moves by 2 L1 radius / n, not by L1 radius / n; taking the least of scores that move by D either way
with noise Lap(2 D / e0) is e0-DP; and T such choices compose exactly (`pure_composition`), for every epsilon.

Exact: the gradient of a record is its residual times x. Residuals (at most L1: radius + 1 for squares / 2, 1 for the
logistic loss) are clipped and rounded to integers like x, so every score is an integer, in units of radius 4^-BITS / n,
and D = 2 L1 4^BITS. Ties go to the first vertex, a fixed rule, under which the choice is e0-DP for integers as well.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mechanisms import validate
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import RandomWords
from protocols.baselines.inputs import UNIT, check_exact, checked, on_lattice
from protocols.baselines.logistic import sigmoid
from protocols.baselines.model import Model, Statement
from protocols.baselines.pure_composition import step_epsilon
from protocols.schema import Floats
from smpc.errors import InputError

_LARGEST_SCALE = 2**50  # a draw beyond 2^62 then has probability below e^-4000


def lipschitz(loss: str, radius: Fraction) -> Fraction:
    """L1: the largest entry of a record's gradient within the ball; the linear loss is (x . w - y)^2 / 2."""
    return radius + 1 if loss == "linear" else Fraction(1)


def default_steps(n: int, epsilon: Fraction) -> int:
    """(n epsilon)^(2/3), the source's order of growth, and no less than 1."""
    return max(1, round(math.pow(n * epsilon, 2 / 3)))


def scores(x: Floats, residuals: Floats) -> Floats:
    """Integer scores of the 2 d vertices, +e_1..+e_d then -e_1..-e_d, of integer `x` (n, d) and residuals (n,)."""
    gradient = residuals @ x
    return np.concatenate([gradient, -gradient])


def mechanism(loss: str, radius: Fraction, step: Fraction) -> DiscreteLaplace:
    """Noise on one score for `step`-DP: scale 2 D / step."""
    change = 2 * math.floor(lipschitz(loss, radius) * UNIT) * UNIT
    noise = DiscreteLaplace(2 * change / step)
    if noise.scale > _LARGEST_SCALE:
        raise InputError(f"scale = 2^{math.log2(noise.scale):.0f} of a score's noise is too large: use fewer steps")
    return noise


def fit(
    x: Floats,
    y: Floats,
    *,
    loss: str,
    epsilon: Fraction,
    delta: Fraction,
    random: RandomWords,
    radius: Fraction = Fraction(1),
    steps: int | None = None,
) -> Model:
    """Weights with |w|_1 <= radius after `steps` steps (None: `default_steps`).

    Raises ValueError and InputError for numbers, entries and labels outside their ranges.
    """
    wanted, risk = validate.epsilon(epsilon, allow_weak=True), validate.delta(delta)
    ball = validate.positive("radius", radius)
    features, labels = checked(x, y, loss)
    n, d = features.shape
    count = default_steps(n, wanted) if steps is None else validate.integer("steps", steps, low=1)
    noise = mechanism(loss, ball, step_epsilon(wanted, risk, count))
    largest = math.floor(lipschitz(loss, ball) * UNIT)
    check_exact(n, largest * UNIT, "scores")
    rounded, rounded_labels = on_lattice(features), on_lattice(labels) / UNIT
    weights, margins = np.zeros(d), np.zeros(n)
    for t in range(1, count + 1):
        residuals = (margins if loss == "linear" else sigmoid(margins)) - rounded_labels
        exact = scores(rounded, np.clip(np.rint(residuals * UNIT), -largest, largest))
        vertex = int(np.argmin(exact.astype(np.int64) + noise.draw(2 * d, random)))
        length, share = float(ball) * (1 if vertex < d else -1), 2 / (t + 2)
        weights *= 1 - share
        weights[vertex % d] += share * length
        margins = (1 - share) * margins + share * length * (rounded[:, vertex % d] / UNIT)
    statement = Statement(wanted, risk, f"least of noisy scores, {noise}, {count} times", "exact composition")
    return Model(weights, statement)
