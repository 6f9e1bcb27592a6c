"""A small split-learning job in one process, and the same job as a task of pool processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mechanisms.randomness import SecureRandom
from protocols.split.checkpoint import Checkpoints
from protocols.split.memo import Memo
from protocols.split.models import FeatureNet, LabelNet, seeded
from protocols.split.observed import ObservedSide
from protocols.split.perturb import on_lattice, perturbation
from protocols.split.plan import Plan
from protocols.split.sides import FeatureSide, LabelSide
from protocols.split.train import released_values, train
from smpc import ClearSession, Held, Session
from smpc.ring import Integers
from smpc.values import value_of

NUMBERS, CATEGORIES, CUT = 6, (4, 3), 8


def inputs(rows: int, seed: int = 0) -> list[torch.Tensor]:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, rows) for size in CATEGORIES], axis=1)
    return [torch.from_numpy(rng.normal(size=(rows, NUMBERS)).astype(np.float32)), torch.from_numpy(codes)]


def labels_of(tensors: Sequence[torch.Tensor], classes: int = 2, seed: int = 0) -> Integers:
    """Classes that the first numbers and the first category decide, with some noise."""
    numbers, codes = (tensor.numpy() for tensor in tensors)
    rng = np.random.default_rng(seed + 1)
    score = numbers[:, 0] + numbers[:, 1] * 0.5 + (codes[:, 0] - 1.5) * 0.5 + rng.logistic(size=len(numbers)) * 0.3
    edges = np.quantile(score, np.arange(1, classes) / classes)
    return np.searchsorted(edges, score).astype(np.int64)


def plan_of(rows: int, law: str | None = "laplace", epsilon: object = 1, classes: int = 2, **choices: Any) -> Plan:
    made = None if law is None else perturbation(law, epsilon, classes, choices.pop("delta", None))
    return Plan("ann", "bob", rows, CUT, made, classes, unprotected=law is None, **choices)


def feature_side(plan: Plan, tensors: Sequence[torch.Tensor], folder: Path | None = None) -> FeatureSide:
    network = seeded(plan.seed, lambda: FeatureNet(NUMBERS, CATEGORIES, plan.cut))
    return FeatureSide(network, tensors, plan, Checkpoints(folder))


def label_side(plan: Plan, released: Integers, folder: Path | None = None) -> LabelSide:
    return LabelSide(seeded(plan.seed + 1, lambda: LabelNet(plan.cut, plan.width)), released, plan, Checkpoints(folder))


def draws(plan: Plan, labels: Integers) -> Integers:
    """Released values without a memo."""
    if plan.law is None:
        return on_lattice(labels, plan.classes, plan.width)[np.newaxis]
    fresh = plan.law.draw(np.tile(labels, plan.copies), SecureRandom())
    return fresh.reshape(plan.copies, len(labels), plan.width)


@dataclass
class Run:
    session: Session
    features: FeatureSide
    labels: LabelSide

    @property
    def weights(self) -> list[torch.Tensor]:
        return [*self.features.network.state_dict().values(), *self.labels.network.state_dict().values()]


def clear_run(plan: Plan, tensors: Sequence[torch.Tensor], released: Integers) -> Run:
    s = ClearSession(plan.cast)
    features = s.at(plan.features, feature_side, plan, tensors)
    labels = s.at(plan.labels, label_side, plan, released)
    train(s, features, labels, plan)
    return Run(s, value_of(features), value_of(labels))


def task(
    s: Any,
    plan: Plan,
    seed: int,
    memo: str | None,
    folder: str | None = None,
    frames: Any = None,
    observed: bool = False,
    flip: bool = False,
) -> dict[str, Any]:
    """The same over a process's session: labels at the label party alone. Its weights, the steps, the costs.

    `observed`: the label party notes what its gradients could have been. `flip`: opposite labels.
    """
    torch.set_num_threads(1)
    tensors = inputs(plan.rows, seed)
    place = Path(folder) / s.me if folder else None
    if s.me == plan.features:
        features = Held(plan.features, feature_side(plan, tensors, place))
        labels: Held[LabelSide] = Held(plan.labels)
    else:
        truth = labels_of(tensors, plan.classes, seed)
        truth = 1 - truth if flip else truth
        ids = [str(i) for i in range(plan.rows)]
        kept = None if memo is None else released_values(truth, ids, plan, Memo(memo), SecureRandom())
        released = draws(plan, truth) if kept is None else kept
        head = seeded(plan.seed + 1, lambda: LabelNet(plan.cut, plan.width))
        kind = ObservedSide if observed else LabelSide
        features, labels = Held(plan.features), Held(plan.labels, kind(head, released, plan, Checkpoints(place)))
    train(s, features, labels, plan)
    side: Any = value_of(features if s.me == plan.features else labels)  # type: ignore[arg-type]  # either
    return {
        "weights": [value.numpy() for value in side.network.state_dict().values()],
        "steps": s.transcript.steps(),
        "cost": s.report(),
        "received": [frame.payload for way, _, frame in frames or [] if way == "received"],
        "seen": getattr(side, "seen", []),
    }
