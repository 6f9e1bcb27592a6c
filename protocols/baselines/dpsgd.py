"""Gradient descent with noise on every gradient, for both losses.

`fit`: DP-SGD (Abadi et al. 2016). Each step draws a Poisson sample, shortens every gradient to L2 norm `clip`, adds
Gaussian noise to their sum and divides by the expected size. Guarantee: (epsilon, delta), replace one record, by
numerical composition (`poisson_accounting`). fit_laplace: the variant that paper 1 compares with. Full gradients, L1
norms, Laplace noise for epsilon / T in each of T steps, composed linearly. Guarantee: pure epsilon, replace one record;
T times the noise of one release, so that it is no fair picture of gradient perturbation.

Exact: a record's gradient is its residual times x. x is rounded to integers; the residual, in units of 2^-BITS, is
limited to clip 4^BITS / |x| and rounded towards zero. So the gradient, in units of 4^-BITS, has a norm of at most
floor(clip 4^BITS), a sum of gradients moves by at most that (a record leaves or joins the sample) or twice that, and
rounding has cost no sensitivity. Sums of these integers are exact and get exact integer noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from mechanisms import validate
from mechanisms.bernoulli import bernoulli
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import RandomWords
from protocols.baselines import poisson_accounting
from protocols.baselines.inputs import UNIT, check_exact, checked, noisy, on_lattice
from protocols.baselines.logistic import sigmoid
from protocols.baselines.model import Model, Statement
from protocols.schema import Floats

_MARGIN = 1 - 2.0**-40  # float64 limits err by less


def residuals(margins: Floats, y: Floats, loss: str) -> Floats:
    """The derivative of the loss (linear: square / 2) in the margin x . w, shape (n,)."""
    predicted: Floats = margins if loss == "linear" else sigmoid(margins)
    return predicted - y


def default_learning_rate(loss: str, d: int) -> float:
    """2 / d for squares, whose curvature is at most d: no step diverges. 32 / d for the logistic loss.

    That is four times what its curvature d / 4 allows for certain; its gradients are bounded, so nothing diverges.
    """
    return (2 if loss == "linear" else 32) / d


def clipped_sum(x: Floats, residual: Floats, lengths: Floats, bound: int) -> Floats:
    """The sum of integer gradients c x with c = residual 2^BITS, rounded towards zero so that |c| lengths <= `bound`.

    x: integers, shape (n, d); `lengths`: their norms, rounded by float64, shape (n,).
    """
    limits = bound * _MARGIN / np.maximum(lengths, 1.0)  # only a row of zeros is shorter than 1
    total: Floats = np.trunc(np.clip(residual * UNIT, -limits, limits)) @ x
    return total


def fit(
    x: Floats,
    y: Floats,
    *,
    loss: str,
    epsilon: Fraction,
    delta: Fraction,
    random: RandomWords,
    steps: int = 300,
    sampling: Fraction = Fraction(1, 10),
    clip: Fraction = Fraction(1),
    learning_rate: float | None = None,
) -> Model:
    """The last of `steps` iterates, from zero. All numbers are public; None: `default_learning_rate`.

    Raises ValueError and InputError for numbers, entries and labels outside their ranges.
    """
    wanted, risk = validate.epsilon(epsilon, allow_weak=True), validate.delta(delta)
    features, labels, bound, rate = _prepared(x, y, loss, clip, learning_rate, steps)
    share = validate.positive("sampling", sampling)
    if share > 1:
        raise ValueError(f"sampling={sampling} is above 1: give the probability of a record to be in a step's sample")
    n, d = features.shape
    variance = poisson_accounting.variance(wanted, risk, sampling=share, steps=steps, dimension=d, bound=bound)
    noise, lengths = DiscreteGaussian(variance), np.sqrt(np.einsum("ij,ij->i", features, features))

    def gradient(w: Floats) -> Floats:
        # All margins, in place: a matrix product may round a row otherwise when it stands elsewhere, and the sum of the
        # others must not depend on whether a record is in the sample.
        everyone = residuals(features @ (w / UNIT), labels, loss)
        sample = bernoulli(share, n, random) if share < 1 else np.ones(n, dtype=np.bool_)
        total = clipped_sum(features, np.where(sample, everyone, 0.0), lengths, bound)
        return noisy(total, noise, random) / float(UNIT**2 * n * share)

    statement = Statement(
        wanted, risk, f"{steps} steps on samples of {float(share):.3g}, {noise}", "PLD of Poisson samples"
    )
    return Model(_descend(gradient, d, steps, rate), statement)


def fit_laplace(
    x: Floats,
    y: Floats,
    *,
    loss: str,
    epsilon: Fraction,
    random: RandomWords,
    steps: int = 100,
    clip: Fraction = Fraction(1),
    learning_rate: float | None = None,
) -> Model:
    """The last of `steps` iterates, from zero; `clip` bounds L1 norms. None: `default_learning_rate`.

    Raises ValueError and InputError for numbers, entries and labels outside their ranges.
    """
    wanted = validate.epsilon(epsilon, allow_weak=True)
    features, labels, bound, rate = _prepared(x, y, loss, clip, learning_rate, steps)
    n, d = features.shape
    noise, lengths = DiscreteLaplace(2 * bound * steps / wanted), np.abs(features).sum(axis=1)

    def gradient(w: Floats) -> Floats:
        total = clipped_sum(features, residuals(features @ (w / UNIT), labels, loss), lengths, bound)
        return noisy(total, noise, random) / float(UNIT**2 * n)

    statement = Statement(wanted, Fraction(0), f"{steps} steps, {noise}", "pure sum")
    return Model(_descend(gradient, d, steps, rate), statement)


def _prepared(
    x: Floats, y: Floats, loss: str, clip: Fraction, learning_rate: float | None, steps: int
) -> tuple[Floats, Floats, int, float]:
    """Integer features, labels, the norm bound in units of 4^-BITS and the learning rate, all checked."""
    validate.integer("steps", steps, low=1)
    bound = math.floor(validate.positive("clip", clip) * UNIT**2)
    features, labels = checked(x, y, loss)
    check_exact(len(features), validate.integer("clip 4^BITS", bound, low=UNIT), "sums of gradients")
    rate = default_learning_rate(loss, features.shape[1]) if learning_rate is None else learning_rate
    return on_lattice(features), labels, bound, float(validate.positive("learning_rate", rate))


def _descend(gradient: Callable[[Floats], Floats], d: int, steps: int, rate: float) -> Floats:
    w = np.zeros(d)
    for _ in range(steps):
        w = w - rate * gradient(w)
    return w
