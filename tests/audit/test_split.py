"""What two runs on opposite labels show of each record: never more than epsilon, and mutants of the protocol do.

A trial is a record: its label is 0 in one run and 1 in the other, and what P_N can compute about its t from all
messages and all of h is the outcome. Draws of different records are independent, so records are independent trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from launch.pool import Pool
from mechanisms.audit import Bound, epsilon_lower_bound, events
from protocols.split.attacks import normalised_distance
from protocols.split.models import LabelNet, seeded
from protocols.split.observed import ObservedSide
from protocols.split.plan import Plan
from protocols.split.targets import Targets
from smpc.ring import Integers
from tests.protocols.split.support import CUT, draws, inputs, labels_of, plan_of, task

torch.set_num_threads(1)
EPSILON = 1.0
GRAIN = 8  # outcomes in units of 1/8
LABELS = np.random.default_rng(0).integers(0, 2, 30_000)
Draw = Callable[[Plan, Integers], Integers]


class ToldSide(ObservedSide):
    """Also notes the gradient of h's last bias: with batches of one it is sigmoid(z) - t of the draw that h gets."""

    def update(self, gradients: Sequence[Tensor | None]) -> None:
        super().update(gradients)
        last = gradients[-1]
        if last is not None:
            self.told = [*getattr(self, "told", []), float(last)]


def outcomes(plan: Plan, side: ToldSide, count: int) -> Integers:
    """The mean over epochs of each record's t as the gradients show it; with batches of one, plus what h shows."""
    total = np.zeros(count)
    for place, seen in enumerate(side.seen):
        total[seen.rows] += (normalised_distance(seen) + 1) / 2
        if plan.batch == 1:
            total[seen.rows] += 1 / (1 + math.exp(-seen.logits[0, 0])) - side.told[place]
    return np.rint(total / plan.epochs * GRAIN).astype(np.int64)


def run(plan: Plan, labels: Integers, change: Callable[[ToldSide, Integers], None] | None = None) -> Integers:
    side = ToldSide(seeded(1, lambda: LabelNet(CUT, 1)), draws(plan, labels), plan)
    if change is not None:
        change(side, labels)
    embeddings = np.random.default_rng(1).normal(size=(plan.rows, CUT)).astype(np.float32)
    for _, rows in plan.batches():
        side.step(rows, embeddings[rows])
    return outcomes(plan, side, plan.rows)


def demonstrated(first: Integers, second: Integers, labels: Integers) -> Bound:
    """The outcomes of records with label 0 against those with label 1, from both runs; events set before."""
    zeros = np.concatenate([first[labels == 0], second[labels == 1]])
    ones = np.concatenate([first[labels == 1], second[labels == 0]])
    return epsilon_lower_bound(zeros, ones, events(GRAIN // 2, 2 * GRAIN / EPSILON))


def audited(plan: Plan, change: Any = None) -> float:
    labels = LABELS[: plan.rows]
    return demonstrated(run(plan, labels, change), run(plan, 1 - labels, change), labels).value


@pytest.mark.parametrize("epochs", [1, 4])
@pytest.mark.parametrize("law", ["laplace", "discrete"])
def test_coupled_runs_show_no_more_than_epsilon_and_nearly_that(law: str, epochs: int) -> None:
    shown = audited(plan_of(30_000, law, EPSILON, epochs=epochs, batch=512))
    assert 0.75 * EPSILON < shown <= EPSILON


def fresh_draws(side: ToldSide, labels: Integers) -> None:
    """A mutant that draws anew for every epoch: no memo."""
    plan, targets = side.plan, side.targets
    old, steps = side.step, iter(range(plan.total_batches))

    def step(rows: Any, embeddings: Any) -> Any:
        if next(steps) % plan.batches_an_epoch == 0:
            targets[0] = Targets(torch.from_numpy(draws(plan, labels)[0] / 2**16).float())
        return old(rows, embeddings)

    side.step = step  # type: ignore[method-assign]  # a mutant


def half_noise(side: ToldSide, labels: Integers) -> None:
    """A mutant whose noise is half of what epsilon asks for."""
    side.targets[0] = Targets((side.targets[0].values + torch.from_numpy(labels).float()[:, None]) / 2)


@pytest.mark.parametrize(("mutant", "epochs"), [(fresh_draws, 4), (half_noise, 1)])
def test_mutants_are_caught(mutant: Any, epochs: int) -> None:
    assert audited(plan_of(30_000, "laplace", EPSILON, epochs=epochs, batch=512), mutant) > 1.2 * EPSILON


def true_labels_in_h(side: ToldSide, labels: Integers) -> None:
    """A mutant that perturbs what it sends and trains h on labels."""
    side.targets.append(Targets(torch.from_numpy(labels).float()[:, None]))


@pytest.mark.long
@pytest.mark.parametrize("epochs", [1, 2])
def test_independent_draws_cost_more_than_one_and_no_more_than_two(epochs: int) -> None:
    """Batches of one, the worst case: h after every step shows its draw."""
    independent = audited(plan_of(8_000, "laplace", EPSILON, batch=1, coupling="independent", epochs=epochs))
    assert EPSILON < independent <= 2 * EPSILON
    assert audited(plan_of(8_000, "laplace", EPSILON, batch=1), true_labels_in_h) > EPSILON, "a coupled run claims it"


@pytest.mark.mpc
@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("coupling", ["coupled", "independent"])
def test_transcripts_of_real_processes_pass(coupling: str, epochs: int) -> None:
    """Gradients from the feature party's sockets; h is replayed, as one who knows it at every step could.

    The draw that is sent is one of two if they are independent, and shows epsilon of the 2 epsilon that they cost.
    """
    plan = plan_of(8_000, "laplace", EPSILON, epochs=epochs, batch=256, coupling=coupling)
    tensors = inputs(plan.rows)
    labels = labels_of(tensors)
    runs = []
    with Pool(plan.cast, record=True) as pool:
        views = [pool.run(recorded_task, plan=plan, flip=flip) for flip in (False, True)]
    for view in views:
        received = [array for array in view["ann"]["received"] if array.shape[1:] == (plan.cut,)]
        t = np.zeros(plan.rows)
        for gradients, seen in zip(received[-plan.total_batches :], view["bob"]["seen"], strict=True):
            assert np.array_equal(gradients, seen.gradients)
            t[seen.rows] += (normalised_distance(seen) + 1) / 2
        runs.append(np.rint(t / epochs * GRAIN).astype(np.int64))
    assert 0.5 * EPSILON < demonstrated(runs[0], runs[1], labels).value <= EPSILON


def recorded_task(s: Any, plan: Plan, flip: bool, frames: Any) -> dict[str, Any]:
    return task(s, plan, 0, None, frames=frames, observed=True, flip=flip)
