"""Baselines without a proof: the laws of what they add, Marvell's optimum, and that they train on true labels."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch

from mechanisms.randomness import SecureRandom, Stream
from protocols.split.baselines import (
    ChangedSide,
    isotropic_gaussian,
    marvell,
    marvell_objective,
    marvell_variances,
    max_norm,
    normals,
)
from protocols.split.models import LabelNet, seeded
from tests.protocols.split.support import CUT, draws, inputs, label_side, labels_of, plan_of

torch.set_num_threads(1)
RANDOM = SecureRandom()
LABELS = np.array([0] * 800 + [1] * 200)


def gradients(d: int = 6) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(1_000, d)) * 0.1 + LABELS[:, None] * 0.5


def test_normals_are_standard() -> None:
    from scipy import stats

    assert stats.kstest(normals(20_000, RANDOM), "norm").pvalue > 1e-9


def test_isotropic_noise_has_its_ratio_to_the_largest_norm() -> None:
    g = gradients()
    noise = isotropic_gaussian(2.0)(g, LABELS, RANDOM) - g
    wanted = 2.0 * np.linalg.norm(g, axis=1).max() / math.sqrt(6)
    assert noise.std(axis=0) == pytest.approx(np.full(6, wanted), rel=0.15)
    assert np.abs(np.corrcoef(noise.T) - np.eye(6)).max() < 0.2


def test_max_norm_makes_norms_alike_in_mean_square_and_keeps_directions() -> None:
    g = gradients()
    squares = np.mean([(max_norm(g, LABELS, RANDOM) ** 2).sum(axis=1) for _ in range(400)], axis=0)
    assert np.median(squares) == pytest.approx((g**2).sum(axis=1).max(), rel=0.1)
    changed = max_norm(g, LABELS, RANDOM)
    cosine = (changed * g).sum(axis=1) / np.linalg.norm(changed, axis=1) / np.linalg.norm(g, axis=1)
    assert np.abs(cosine) == pytest.approx(np.ones(1_000))
    assert np.isfinite(max_norm(np.zeros((3, 4)), LABELS[:3], RANDOM)).all()


@pytest.mark.parametrize(("power", "positives"), list(product((0.1, 1.0, 10.0), (0.5, 0.2, 0.01))))
def test_marvell_without_spread_meets_its_closed_form(power: float, positives: float) -> None:
    """u = v = 0 (Li et al.): l10 = (P/p) / (E + (1-p)/p), l11 = E l10, E = sqrt((P + 1-p)/(P + p))."""
    ratio = math.sqrt((power + 1 - positives) / (power + positives))
    first = power / positives / (ratio + (1 - positives) / positives)
    along, across = marvell_variances(16, 0.0, 0.0, 1.0, positives, power)
    assert along == pytest.approx([first, ratio * first], rel=5e-3)
    assert across == pytest.approx([0, 0], abs=1e-6)


def test_marvell_beats_random_choices_of_the_same_power() -> None:
    rng = np.random.default_rng(0)
    d, u, v, square, p, power = 8, 0.02, 0.05, 1.5, 0.2, 3.0
    along, across = marvell_variances(d, u, v, square, p, power)
    shares = np.array([1 - p, p, (d - 1) * (1 - p), (d - 1) * p])
    best = np.concatenate([along, across])
    assert shares @ best <= power * (1 + 1e-6) and (along >= across - 1e-9).all()
    for _ in range(3_000):
        split = rng.dirichlet(np.full(4, 0.5)) * power / shares
        if split[0] >= split[2] and split[1] >= split[3]:
            assert marvell_objective(split, d, u, v, square) >= marvell_objective(best, d, u, v, square) - 1e-6


def test_marvell_hides_the_means_and_leaves_one_class_alone() -> None:
    from protocols.split.auc import auc

    g = gradients()
    difference = g[LABELS == 1].mean(axis=0) - g[LABELS == 0].mean(axis=0)
    changed = marvell(10.0)(g, LABELS, RANDOM)
    assert auc(LABELS, g @ difference) > 0.99 and auc(LABELS, changed @ difference) < 0.75
    assert np.array_equal(marvell(10.0)(g, np.zeros(1_000, np.int64), RANDOM), g)


def test_only_what_is_sent_is_changed() -> None:
    tensors = inputs(100)
    truth = labels_of(tensors)
    plan = plan_of(100, None, batch=50)
    embeddings = np.random.default_rng(0).normal(size=(50, CUT)).astype(np.float32)
    head = seeded(plan.seed + 1, lambda: LabelNet(CUT, 1))
    side = ChangedSide(head, truth, plan, max_norm, Stream(bytes(32)))
    plain = label_side(plan, draws(plan, truth))
    rows = np.arange(50)
    sent, exact = side.step(rows, embeddings), plain.step(rows, embeddings)
    assert not np.allclose(sent, exact) and np.array_equal(side.seen[0].gradients, sent)
    for one, other in zip(side.trained, plain.trained, strict=True):
        assert torch.equal(one, other)
