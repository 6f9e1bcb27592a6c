"""Perturbed labels sent once: the weights of the interactive run, less traffic, one message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from protocols.split.models import LabelNet, seeded
from protocols.split.one_shot import train_one_shot
from protocols.split.plan import Plan
from smpc import ClearSession, Held, InputError
from smpc.transcript import table
from smpc.values import value_of
from tests.protocols.split.support import clear_run, draws, feature_side, inputs, labels_of, plan_of

torch.set_num_threads(1)
ROWS = 300


def one_shot(plan: Plan, tensors: Any, released: Any) -> tuple[ClearSession, list[torch.Tensor]]:
    s = ClearSession(plan.cast)
    features = s.at(plan.features, feature_side, plan, tensors)

    def head() -> torch.nn.Module:
        return seeded(plan.seed + 1, lambda: LabelNet(plan.cut, plan.width))

    labels = train_one_shot(s, features, Held(plan.labels, released), head, plan)
    assert labels.holder == plan.features
    weights = [*value_of(features).network.state_dict().values(), *value_of(labels).network.state_dict().values()]
    return s, weights


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize(
    ("law", "classes", "post"),
    [
        ("laplace", 2, "none"),
        ("discrete", 2, "unbiased"),
        ("laplace", 2, "posterior"),
        ("multiclass-laplace", 3, "none"),
    ],
)
def test_given_t_the_weights_are_those_of_the_interactive_run(law: str, classes: int, post: str, ahead: int) -> None:
    tensors = inputs(ROWS)
    plan = plan_of(ROWS, law, classes=classes, post=post, epochs=2, batch=64, ahead=ahead)
    released = draws(plan, labels_of(tensors, classes))
    s, weights = one_shot(plan, tensors, released)
    interactive = clear_run(plan, tensors, released)
    assert all(torch.equal(a, b) for a, b in zip(weights, interactive.weights, strict=True))
    assert s.transcript.steps() == table(train_one_shot.__doc__ or "")
    sizes = [np.prod(message.shape) for message in s.transcript.messages]
    assert sizes == [ROWS * plan.width]


def test_two_draws_do_not_fit_one_message() -> None:
    tensors = inputs(ROWS)
    plan = plan_of(ROWS, coupling="independent")
    with pytest.raises(InputError, match="needs coupling = 'coupled'"):
        one_shot(plan, tensors, draws(plan, labels_of(tensors)))
