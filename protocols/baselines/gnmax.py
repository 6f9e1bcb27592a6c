"""PATE's noisy labels for comparison (Papernot et al. 2018): GNMax and Confident-GNMax, at data-independent cost.

One trusted curator holds the counts. GNMax: the class with the largest count plus Gaussian noise, sample by sample.
Confident-GNMax answers only where the largest count plus noise of its own reaches a threshold. Replacing a voter moves
two counts of each sample by one: squared L2 norm 2 a sample; the largest count moves by one at most. All tests and all
answers are charged as Gaussian releases together, at most `most` answers. (PATE's smaller data-dependent epsilon is
itself private and cannot be told.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms import calibration, validate
from mechanisms.accounting import Spent, compose
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gaussian_privacy import GaussianLoss
from mechanisms.randomness import RandomWords
from smpc.errors import InputError
from smpc.ring import Integers

UNANSWERED = -1


@dataclass(frozen=True)
class Answers:
    """A class number for each sample, UNANSWERED where the vote was not clear, and what all of them cost together."""

    labels: Integers
    spent: Spent


def gnmax(counts: Integers, *, epsilon: Fraction, delta: Fraction, random: RandomWords) -> Answers:
    """Labels of all samples; `counts` has shape (classes, samples)."""
    classes, samples = _checked(counts)
    noise = calibration.gaussian(2 * samples, classes * samples, epsilon, delta)
    labels = (counts + noise.draw(counts.size, random).reshape(counts.shape)).argmax(axis=0)
    return Answers(labels, compose([GaussianLoss(Fraction(2 * samples), noise.variance, counts.size)], delta))


def confident_gnmax(
    counts: Integers,
    threshold: int,
    test: Fraction,
    answer: Fraction,
    most: int,
    delta: Fraction,
    random: RandomWords,
) -> Answers:
    """Labels of samples, in order, whose largest count plus noise of variance `test` is at least `threshold`.

    `answer`: variance of the noise on the counts of these. Ends after `most` answers.
    """
    classes, samples = _checked(counts)
    limit = min(validate.integer("most", most, low=1), samples)
    tests, answers = DiscreteGaussian(test), DiscreteGaussian(answer)
    clear = np.flatnonzero(counts.max(axis=0) + tests.draw(samples, random) >= threshold)[:limit]
    noisy = counts[:, clear] + answers.draw(classes * clear.size, random).reshape(classes, -1)
    labels = np.full(samples, UNANSWERED, dtype=np.int64)
    labels[clear] = noisy.argmax(axis=0)
    losses = [
        GaussianLoss(Fraction(samples), tests.variance, samples),
        GaussianLoss(Fraction(2 * limit), answers.variance, classes * limit),
    ]
    return Answers(labels, compose(losses, delta))


def _checked(counts: Integers) -> tuple[int, int]:
    if counts.ndim != 2 or counts.shape[0] < 2 or not counts.shape[1] or counts.dtype.kind != "i":
        raise InputError(f"counts are {counts.dtype} {counts.shape}: need integers of shape (classes >= 2, samples)")
    return counts.shape[0], counts.shape[1]
