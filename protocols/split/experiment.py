"""One run of an experiment: train on a share of a public table, test on the rest, attack what the feature party saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from protocols.evaluation import split, words_of
from protocols.split import attacks
from protocols.split.auc import auc, oriented
from protocols.split.baselines import Change, ChangedSide
from protocols.split.models import FeatureNet, LabelNet, seeded
from protocols.split.observed import ObservedSide
from protocols.split.perturb import Perturbation, on_lattice
from protocols.split.plan import Plan
from protocols.split.sides import FeatureSide
from protocols.split.tables import Coded
from protocols.split.train import train
from smpc.clear import ClearSession
from smpc.values import Held

CUT = 16
ORIENTED = ("norm", "spectral")


@dataclass(frozen=True)
class Setting:
    """How a table is trained on; the same with and without protection."""

    epochs: int
    batch: int
    learning_rate: float = 1e-3


@dataclass(frozen=True)
class Method:
    """A law with its post-processing, or a baseline's change of gradients, or neither: no protection."""

    name: str
    law: Perturbation | None = None
    post: str = "none"
    change: Change | None = None


@dataclass(frozen=True)
class Outcome:
    """Test AUC, and attack AUCs by name over all batches of the last epoch, pooled."""

    test: float
    attacks: Mapping[str, float]


def measure(table: Coded, setting: Setting, method: Method, seed: int) -> Outcome:
    """With replayable noise, which only public data can have. `seed` also draws the split and the starting weights."""
    training, test = split(len(table.labels), seed)
    labels = table.labels[training]
    plan = Plan(
        "features",
        "labels",
        rows=len(training),
        cut=CUT,
        law=method.law,
        post=method.post,
        epochs=setting.epochs,
        batch=setting.batch,
        learning_rate=setting.learning_rate,
        seed=seed,
        unprotected=method.law is None,
    )
    words = words_of("split experiment", table.name, method.name, seed)
    head = seeded(seed + 1, lambda: LabelNet(CUT, plan.width))
    if method.change is not None:
        side: ObservedSide = ChangedSide(head, labels, plan, method.change, words)
    else:
        drawn = on_lattice(labels, 2, 1) if method.law is None else method.law.draw(labels, words)
        side = ObservedSide(head, drawn[np.newaxis], plan)
    net = seeded(seed, lambda: FeatureNet(table.numbers.shape[1], table.sizes, CUT))
    features = FeatureSide(net, table.inputs(training), plan)
    train(ClearSession(plan.cast), Held("features", features), Held("labels", side), plan)
    net.eval()
    with torch.no_grad():
        embeddings = net(*table.inputs(test)).numpy()
    scores = side.scores(embeddings)[:, 0].astype(np.float64)
    return Outcome(auc(table.labels[test], scores), _attacked(side, labels))


def _attacked(side: ObservedSide, labels: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> dict[str, float]:
    last = side.seen[-side.plan.batches_an_epoch :]
    found = {name: attacks.pooled(attack, last, labels).auc for name, attack in attacks.ATTACKS.items()}
    found |= {name: attacks.pooled_hinted(attack, last, labels).auc for name, attack in attacks.HINTED.items()}
    return {name: oriented(value) if name in ORIENTED else value for name, value in found.items()}
