"""L2 sensitivities of regularised minimisers under replacement of one party (paper 3, Hamm, Cao and Belkin).

The released vector minimises (1/N) sum loss + (lambda/2) |w|^2 over N public points with |x|_2 <= 1, labelled by the
votes of M parties; an intercept is one of the regularised coordinates of w. Strong convexity turns the largest change G
of the mean gradient into a change of the minimiser of at most G / lambda. For a margin loss with |l'| <= 1 a changed
majority vote changes the gradient of one point by |l'(z) + l'(-z)| <= 2, a changed vote share by 1/M of that; for the
logistic loss l'(z) + l'(-z) = -1 exactly, which halves both. For softmax the gradient of a point is (p - share) x^T:
two entries of the share change, by sqrt 2 in norm. Irrational values are rational upper bounds.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction

from flint import ctx

from mechanisms import validate
from mechanisms.enclosure import PRECISION, ball, sqrt_above, upper


class Loss(Enum):
    """The loss: how far one point's gradient moves when its label changes, and how long that gradient can be."""

    MARGIN = Fraction(2), Fraction(1)
    LOGISTIC = Fraction(1), Fraction(1)
    SOFTMAX = sqrt_above(2), sqrt_above(2)

    def __init__(self, label_change: Fraction, length: Fraction) -> None:
        self.label_change = label_change
        self.length = length


def gradient_change(
    loss: Loss, *, parties: int | None = None, points: int | None = None, own_points: int = 0
) -> Fraction:
    """G: the largest change of the mean gradient when one party is replaced.

    `parties` = M if the labels are vote shares, None for majority votes. If `own_points` of the N = `points` come from
    the replaced party itself, these move by twice the gradient's length: G = (N - own)/N change + own/N 2 length.
    """
    change = loss.label_change / (1 if parties is None else validate.integer("parties", parties, low=1))
    if not own_points:
        return change
    share = Fraction(validate.integer("own_points", own_points), validate.integer("points", points, low=1))
    if share > 1:
        raise ValueError(f"own_points={own_points} is above points={points}: one party holds some of them")
    return (1 - share) * change + share * 2 * loss.length


def longest_minimiser(classes: int, regularisation: Fraction) -> Fraction:
    """sqrt(2 ln C / lambda): the L2 norm that no minimiser of a logistic (C = 2) or softmax objective exceeds.

    The objective is ln C at w = 0, and at least (lambda/2) |w|^2 at its minimiser w: losses are not negative. So two
    minimisers are never further apart than twice that, whatever the labels are.
    """
    strength = validate.positive("regularisation", regularisation)
    with ctx.workprec(PRECISION):
        return upper((2 * ball(validate.integer("classes", classes, low=2)).log() / ball(strength)).sqrt())


def exact_minimiser(change: Fraction, regularisation: Fraction) -> Fraction:
    """G / lambda."""
    return change / validate.positive("regularisation", regularisation)


def gradient_descent(
    change: Fraction,
    regularisation: Fraction,
    *,
    smoothness: Fraction,
    step: Fraction,
    iterations: int,
    dimension: int,
    rounding: Fraction,
) -> Fraction:
    """T steps from a common start need no convergence: (G / lambda)(1 - (1 - s lambda)^T) + 2 r sqrt(d) / (s lambda).

    T = `iterations`. The loss is L-smooth (L without the regularisation) and s <= 2 / (L + 2 lambda), so that a step
    contracts by 1 - s lambda at least. Each step may be off by `rounding` in each of `dimension` coordinates, in
    either run.
    """
    strength = validate.positive("regularisation", regularisation)
    length, limit = validate.positive("step", step), 2 / (validate.positive("smoothness", smoothness) + 2 * strength)
    if length > limit:
        raise ValueError(f"step={step} is above 2 / (L + 2 lambda) = {float(limit):.6g}: steps that long may diverge")
    if rounding < 0:
        raise ValueError(f"rounding={rounding} is negative: give the largest error of one coordinate in one step")
    shrink = length * strength
    with ctx.workprec(PRECISION):
        left = 1 - ball(1 - shrink) ** validate.integer("iterations", iterations)
        return upper(
            ball(change / strength) * left
            + ball(2 * rounding / shrink) * ball(validate.integer("dimension", dimension, low=1)).sqrt()
        )


def averaged_parameters(loss: Loss, regularisation: Fraction, *, parties: int) -> Fraction:
    """The mean of M locally trained vectors, each of length <= length / lambda: 2 length / (M lambda)."""
    count, strength = validate.integer("parties", parties, low=1), validate.positive("regularisation", regularisation)
    return 2 * loss.length / (count * strength)
