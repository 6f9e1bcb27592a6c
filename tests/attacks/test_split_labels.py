"""Attacks on the labels in split learning: what they reach without protection, and by closed form with it."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch

from protocols.split import attacks, floating_point
from protocols.split.auc import auc_within, oriented
from protocols.split.models import LabelNet, seeded
from protocols.split.observed import ObservedSide, Seen
from protocols.split.plan import Plan
from protocols.split.train import train
from smpc import ClearSession, Held
from smpc.ring import Integers
from tests.protocols.split.support import CUT, draws, feature_side, inputs, labels_of, plan_of

torch.set_num_threads(1)
RECORDS = 120_000  # half of them positive: 0.01 are more than five standard errors of any AUC below
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
BLACK_BOX = (attacks.norm, attacks.spectral)


def expected_auc(law: str, epsilon: float) -> float:
    """Of t: P(t of a 1 > t of a 0), ties as one half."""
    if law == "discrete":
        return math.exp(epsilon) / (1 + math.exp(epsilon))
    return 1 - (1 + epsilon / 2) * math.exp(-epsilon) / 2


@cache
def one_pass(law: str, epsilon: float, count: int = RECORDS) -> tuple[list[Seen], Integers]:
    """Every record once through an h in training, embeddings at random."""
    labels = np.random.default_rng(0).integers(0, 2, count)
    plan = plan_of(count, law, epsilon, batch=1024)
    side = ObservedSide(seeded(1, lambda: LabelNet(CUT, 1)), draws(plan, labels), plan)
    embeddings = np.random.default_rng(1).normal(size=(count, CUT)).astype(np.float32)
    for _, rows in plan.batches():
        side.step(rows, embeddings[rows])
    return side.seen, labels


def observed_run(plan: Plan, labels: Integers) -> list[Seen]:
    """A whole run; what P_N sees in its last epoch."""
    tensors = inputs(plan.rows)
    side = ObservedSide(seeded(plan.seed + 1, lambda: LabelNet(CUT, 1)), draws(plan, labels), plan)
    features = feature_side(plan, tensors)
    train(ClearSession(plan.cast), Held(plan.features, features), Held(plan.labels, side), plan)
    return side.seen[-plan.batches_an_epoch :]


@pytest.fixture(scope="module")
def learnable() -> Integers:
    """A tenth of the records are positive, as the features tell."""
    tensors = inputs(10_000)
    return (labels_of(tensors, 10) == 9).astype(np.int64)


def test_without_protection_all_attacks_read_the_labels(learnable: Integers) -> None:
    seen = observed_run(plan_of(10_000, None, batch=256, epochs=3, learning_rate=3e-3), learnable)
    for attack in (*BLACK_BOX, attacks.shortest_distance, attacks.normalised_distance):
        assert oriented(attacks.pooled(attack, seen, learnable).auc) > 0.95, attack.__name__
    assert attacks.pooled_hinted(attacks.direction, seen, learnable).auc > 0.95
    assert attacks.pooled_hinted(attacks.hint, seen, learnable).auc > 0.8


def test_protected_at_epsilon_1_the_black_box_attacks_fall_and_the_white_box_one_meets_its_form(
    learnable: Integers,
) -> None:
    plan = plan_of(10_000, batch=256, epochs=3, learning_rate=3e-3)
    seen = observed_run(plan, learnable)
    for attack in BLACK_BOX:
        assert oriented(attacks.pooled(attack, seen, learnable).auc) < 0.75
    found = attacks.pooled(attacks.normalised_distance, seen, learnable).auc
    assert found == pytest.approx(expected_auc("laplace", 1), abs=0.03)  # 1,000 positives


def test_a_working_model_tells_labels_whatever_the_protection(learnable: Integers) -> None:
    seen = observed_run(plan_of(10_000, batch=256, epochs=3, learning_rate=3e-3, post="posterior"), learnable)
    assert attacks.pooled(attacks.model, seen, learnable).auc > expected_auc("laplace", 1)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("law", ["laplace", "discrete"])
def test_the_shortest_distance_attack_reaches_its_closed_form(law: str, epsilon: float) -> None:
    seen, labels = one_pass(law, epsilon)
    found = attacks.pooled(attacks.normalised_distance, seen, labels)
    raw = attacks.pooled(attacks.shortest_distance, seen, labels)
    assert len(found.labels) >= 50_000
    print(f"{law} {epsilon}: normalised {found.auc:.4f}, raw {raw.auc:.4f}, form {expected_auc(law, epsilon):.4f}")
    assert found.auc == pytest.approx(expected_auc(law, epsilon), abs=0.01)


def printed(seen: list[Seen], labels: Integers, epsilon: float) -> list[Seen]:
    """The same batches with the printed formula's gradients."""
    rng = np.random.default_rng(2)
    return [
        Seen(
            s.rows,
            floating_point.printed_form(s, labels[s.rows], rng.laplace(scale=1 / epsilon, size=len(s.rows))),
            s.classes,
            s.logits,
        )
        for s in seen
    ]


def beyond_t(seen: list[Seen], labels: Integers) -> float:
    score = attacks.pooled(floating_point.rounding, seen, labels)
    t = attacks.pooled(attacks.normalised_distance, seen, labels)
    return auc_within(score.labels, score.scores, floating_point.strata(t.scores))


@pytest.mark.parametrize("law", ["laplace", "discrete"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_rounding_reveals_the_label_in_the_printed_formula_and_nothing_in_ours(law: str, epsilon: float) -> None:
    seen, labels = one_pass(law, epsilon, 40_000)
    formula = printed(seen, labels, epsilon)
    assert attacks.pooled(floating_point.rounding, formula, labels).auc > 0.95
    assert beyond_t(formula, labels) > 0.95
    assert beyond_t(seen, labels) == pytest.approx(0.5, abs=0.02)


@pytest.mark.long
def test_where_t_tells_next_to_nothing_the_rounding_attack_gets_nowhere() -> None:
    seen, labels = one_pass("laplace", 0.1)
    assert attacks.pooled(floating_point.rounding, seen, labels).auc == pytest.approx(0.5, abs=0.02)
    assert attacks.pooled(floating_point.rounding, printed(seen, labels, 0.1), labels).auc > 0.95
