"""Networks that a user brings: any torch modules, each on its party's own device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from protocols.split import sides
from protocols.split.plan import Plan
from protocols.split.sides import FeatureSide, LabelSide
from protocols.split.train import train
from smpc import ClearSession, Held
from smpc.ring import Integers
from tests.protocols.split.support import draws, feature_side, inputs, label_side, labels_of, plan_of

torch.set_num_threads(1)
ROWS, SIDE = 200, 6
PLAN = plan_of(ROWS, None, batch=32, epochs=2)


class Picture(nn.Module):
    """f of one tensor with batch normalisation, which the feature party may use: it mixes features only."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv2d(1, 3, 3, bias=False)
        self.normal = nn.BatchNorm2d(3)
        self.last = nn.Linear(3 * (SIDE - 2) ** 2, PLAN.cut)

    def forward(self, pictures: Tensor) -> Tensor:
        cut: Tensor = self.last(torch.relu(self.normal(self.filters(pictures))).flatten(1))
        return cut


def head() -> nn.Module:
    return nn.Sequential(nn.LayerNorm(PLAN.cut), nn.Linear(PLAN.cut, 5), nn.GELU(), nn.Linear(5, 1))


def pictures(seed: int = 0) -> tuple[Tensor, Integers]:
    x = torch.randn(ROWS, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))
    return x, (x.mean(dim=(1, 2, 3)) > 0).numpy().astype(np.int64)


def built(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(3)
    return make()


def run(f: nn.Module, h: nn.Module, plan: Plan = PLAN) -> None:
    x, truth = pictures()
    features, labels = FeatureSide(f, [x], plan), LabelSide(h, draws(plan, truth), plan)
    train(ClearSession(plan.cast), Held("ann", features), Held("bob", labels), plan)


def test_other_modules_are_trained_as_one_network_would_be() -> None:
    f, h = built(Picture), built(head)
    run(f, h)
    x, truth = pictures()
    whole = nn.Sequential(built(Picture), built(head))
    optimizer = torch.optim.Adam(whole.parameters(), lr=PLAN.learning_rate)
    for _, rows in PLAN.batches():
        index = torch.from_numpy(rows)
        optimizer.zero_grad()
        target = torch.from_numpy(truth)[index].float()
        functional.binary_cross_entropy_with_logits(whole(x[index])[:, 0], target).backward()
        optimizer.step()
    for one, other in zip(
        [*f.state_dict().values(), *h.state_dict().values()], whole.state_dict().values(), strict=True
    ):
        assert torch.allclose(one, other, atol=2e-4)


def frozen(make: Callable[[], nn.Module]) -> nn.Module:
    network = built(make)
    for weight in network.parameters():
        weight.requires_grad_(False)
    return network


def without_weights() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.AdaptiveAvgPool1d(PLAN.cut))


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("coupling", ["coupled", "independent"])
@pytest.mark.parametrize("f", [frozen(Picture), without_weights()], ids=["frozen", "none"])
def test_a_network_may_have_nothing_to_train(f: nn.Module, coupling: str, ahead: int) -> None:
    plan = plan_of(ROWS, batch=32, ahead=ahead, coupling=coupling)
    before, h = [weight.clone() for weight in f.parameters()], built(head)
    run(f, h, plan)
    assert all(torch.equal(a, b) for a, b in zip(before, f.parameters(), strict=True))
    assert not torch.equal(h[1].weight, built(head)[1].weight)  # type: ignore[index]  # a sequence
    moving, still = built(Picture), frozen(head)
    run(moving, still, plan)
    assert all(torch.equal(a, b) for a, b in zip(still.parameters(), frozen(head).parameters(), strict=True))
    assert not torch.equal(moving.last.weight, built(Picture).last.weight)  # type: ignore[arg-type,union-attr]  # f's own


@pytest.mark.parametrize("away", ["ann", "bob"])
@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize(
    ("law", "classes", "choices"),
    [
        ("laplace", 2, {}),
        ("laplace", 2, {"post": "posterior"}),
        ("multiclass-laplace", 3, {"coupling": "independent", "post": "sum-to-one"}),
        ("discrete", 3, {"post": "posterior"}),
    ],
)
def test_all_of_a_partys_tensors_are_where_its_network_is(
    away: str, ahead: int, law: str, classes: int, choices: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the one other device that every torch has, `meta`: it computes no values and mixes with no other device."""
    plan = plan_of(ROWS, law, classes=classes, batch=50, ahead=ahead, **choices)
    tensors = inputs(ROWS)
    seen = set[str]()

    def array(tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
        seen.add(tensor.device.type)
        return np.zeros(tensor.shape, dtype=np.float32) if tensor.is_meta else tensor.detach().numpy()

    monkeypatch.setattr(sides, "_array", array)
    monkeypatch.setattr(sides, "check_records_apart", lambda *_: None)  # it looks at values
    own, released = feature_side(plan, tensors), draws(plan, labels_of(tensors, classes))
    features = FeatureSide(own.network.to("meta") if away == "ann" else own.network, tensors, plan)
    h = label_side(plan, released).network
    labels = LabelSide(h.to("meta") if away == "bob" else h, released, plan)
    train(ClearSession(plan.cast), Held("ann", features), Held("bob", labels), plan)
    labels.scores(np.zeros((3, plan.cut), dtype=np.float32))
    assert seen == {"cpu", "meta"}
