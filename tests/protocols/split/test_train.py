"""Training over a session: the algorithms' gradients, the protocol's table, pipelining, checkpoints, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from mechanisms.randomness import SecureRandom
from protocols.split import train as module
from protocols.split.auc import auc
from protocols.split.memo import Memo
from protocols.split.models import FeatureNet, check_records_apart
from protocols.split.perturb import LATTICE, on_lattice
from protocols.split.plan import Plan
from protocols.split.sides import LabelSide
from protocols.split.train import predict, released_values, train
from smpc import ClearSession, Held, HolderError, InputError, UnprotectedError
from smpc.transcript import table
from smpc.values import value_of
from tests.protocols.split.support import clear_run, draws, feature_side, inputs, label_side, labels_of, plan_of

torch.set_num_threads(1)
ROWS = 300


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_unprotected_training_is_ordinary_training_of_the_whole_network() -> None:
    """Algorithm 1 equals a loop over h(f(x)) with torch's own loss, to rounding."""
    tensors = inputs(ROWS)
    truth = labels_of(tensors)
    plan = plan_of(ROWS, None, batch=64, epochs=2)
    run = clear_run(plan, tensors, draws(plan, truth))
    f, h = feature_side(plan, tensors).network, label_side(plan, draws(plan, truth)).network
    optimizer = torch.optim.Adam([*f.parameters(), *h.parameters()], lr=plan.learning_rate)
    for _, rows in plan.batches():
        index = torch.from_numpy(rows)
        logits = h(f(*(tensor[index] for tensor in tensors)))[:, 0]
        optimizer.zero_grad()
        functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(truth)[index].float()).backward()
        optimizer.step()
    whole = [*f.state_dict().values(), *h.state_dict().values()]
    for one, other in zip(run.weights, whole, strict=True):
        assert torch.allclose(one, other, atol=2e-4)


def loss_gradient(side: LabelSide, embeddings: torch.Tensor, label: int) -> torch.Tensor:
    """g_j by torch's own loss, (b, cut)."""
    inputs = embeddings.clone().requires_grad_()
    logits = side.network(inputs)
    target = torch.full((len(inputs),), label)
    if logits.shape[1] == 1:
        loss = functional.binary_cross_entropy_with_logits(logits[:, 0], target.float(), reduction="sum")
    else:
        loss = functional.cross_entropy(logits, target, reduction="sum")
    loss.backward()
    assert inputs.grad is not None
    return inputs.grad


@pytest.mark.parametrize(
    ("law", "classes"),
    [("laplace", 2), ("discrete", 2), ("multiclass-laplace", 2), ("multiclass-laplace", 3), ("discrete", 10)],
)
def test_sent_gradients_are_grad_perturb_of_the_released_value(law: str, classes: int) -> None:
    """g_0 + t (g_1 - g_0), and sum_j s_j g_j: with the same record's counterfactual gradients at the cut."""
    tensors = inputs(50)
    plan = plan_of(50, law, classes=classes, batch=50)
    released = draws(plan, labels_of(tensors, classes))
    side = label_side(plan, released)
    embeddings = torch.randn(50, plan.cut)
    g = [loss_gradient(side, embeddings, j) for j in range(classes)]
    sent = torch.from_numpy(side.step(np.arange(50), embeddings.numpy()))
    values = torch.from_numpy(released[0] / LATTICE).float()
    expected = (
        g[0] + values * (g[1] - g[0]) if plan.width == 1 else sum(values[:, j, None] * g[j] for j in range(classes))
    )
    assert torch.allclose(sent, torch.as_tensor(expected), atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("coupling", ["coupled", "independent"])
def test_each_message_uses_the_draw_that_is_for_it(coupling: str) -> None:
    """With exact labels and their opposites as the two copies, gradients sent and those of h tell which is which."""
    tensors = inputs(20)
    plan = plan_of(20, "discrete", coupling=coupling, batch=20)
    truth = labels_of(tensors)
    copies = np.stack([on_lattice(truth, 2, 1), on_lattice(1 - truth, 2, 1)])[: plan.copies]
    side = label_side(plan, copies)
    embeddings = torch.randn(20, plan.cut)
    g = torch.stack([loss_gradient(side, embeddings, j) for j in (0, 1)])
    logits = side.network(embeddings)[:, 0]
    used = truth if coupling == "coupled" else 1 - truth
    bias = (torch.sigmoid(logits) - torch.from_numpy(used)).mean()
    updates: list[Any] = []
    side.update = updates.extend  # type: ignore[method-assign]  # to see the gradients of h
    sent = torch.from_numpy(side.step(np.arange(20), embeddings.numpy()))
    assert torch.allclose(sent, g[torch.from_numpy(truth), torch.arange(20)], atol=1e-6)
    assert torch.allclose(updates[-1], bias.detach(), atol=1e-6)


def test_the_docstrings_tables_say_what_is_sent() -> None:
    plan = plan_of(ROWS, batch=100, epochs=2)
    tensors = inputs(ROWS)
    run = clear_run(plan, tensors, draws(plan, labels_of(tensors)))
    assert list(dict.fromkeys(run.session.transcript.steps())) == table(train.__doc__ or "")
    assert len(run.session.transcript.messages) == 2 + 2 * 6
    s = ClearSession(plan.cast)
    predict(s, s.at("ann", torch.Tensor.numpy, torch.randn(7, plan.cut)), Held("bob", run.labels), plan, 7)
    assert s.transcript.steps() == table(predict.__doc__ or "")


def test_a_step_that_reads_the_other_partys_values_fails() -> None:
    tensors = inputs(ROWS)
    plan = plan_of(ROWS)
    s = ClearSession(plan.cast)
    labels = s.at("bob", label_side, plan, draws(plan, labels_of(tensors)))
    with pytest.raises(HolderError):
        s.at("ann", lambda side: side.targets, labels)
    with pytest.raises(HolderError):
        train(s, labels, labels, plan)  # type: ignore[arg-type]  # the wrong side is the point


def test_everything_after_the_draw_is_a_function_of_it() -> None:
    """Two runs on different labels with the same released values are the same run: every message, every weight."""
    tensors = inputs(ROWS)
    for coupling in ("coupled", "independent"):
        plan = plan_of(ROWS, coupling=coupling, epochs=2, batch=64)
        released = draws(plan, labels_of(tensors))
        assert same(clear_run(plan, tensors, released).weights, clear_run(plan, tensors, released.copy()).weights)
    assert "labels" not in vars(label_side(plan, released)), "the side that trains has no labels"


@pytest.mark.parametrize("ahead", [1, 3, 100])
def test_batches_ahead_apply_gradients_late_and_all_of_them(ahead: int) -> None:
    """Against a model of it: batch b is computed with the weights after b - ahead updates."""
    tensors = inputs(ROWS)
    plan = plan_of(ROWS, None, batch=50, ahead=ahead, checkpoint=4, epochs=2)
    truth = labels_of(tensors)
    run = clear_run(plan, tensors, draws(plan, truth))
    f, h = feature_side(plan, tensors), label_side(plan, draws(plan, truth))
    old: list[Any] = []
    for number, rows in plan.batches():
        index = torch.from_numpy(rows)
        start = [weight.detach().clone().requires_grad_() for weight in f.trained]
        names = dict(zip(dict(f.network.named_parameters()), start, strict=True))
        e = torch.func.functional_call(f.network, names, tuple(tensor[index] for tensor in tensors))
        g = h.step(rows, e.detach().numpy())
        old.append(torch.autograd.grad(e, start, torch.from_numpy(g) / len(rows)))
        drained = (number + 1) % 4 == 0 or number + 1 == plan.total_batches
        while len(old) > (0 if drained else ahead):
            f.update(old.pop(0))
    assert same(run.features.trained, f.trained) and not run.features._flight  # type: ignore[arg-type]  # lists


@pytest.mark.parametrize("behind", ["ann", "bob", "neither", "both"])
@pytest.mark.parametrize("ahead", [0, 2])
def test_a_run_that_stopped_goes_on_as_if_it_had_not(tmp_path: Path, behind: str, ahead: int) -> None:
    tensors = inputs(ROWS)
    plan = plan_of(ROWS, batch=50, epochs=3, checkpoint=4, ahead=ahead)
    released = draws(plan, labels_of(tensors))
    whole = clear_run(plan, tensors, released)
    folders = {name: tmp_path / name for name in ("ann", "bob")}
    s = ClearSession(plan.cast)
    sides = feature_side(plan, tensors, folders["ann"]), label_side(plan, released, folders["bob"])
    calls = iter(range(10))  # stops in the middle of batch 11
    step = sides[1].step
    sides[1].step = lambda rows, e: (next(calls), step(rows, e))[1]  # type: ignore[method-assign]  # a crash
    with pytest.raises((StopIteration, RuntimeError)):
        train(s, Held("ann", sides[0]), Held("bob", sides[1]), plan)
    for name in ("ann", "bob"):
        assert len(list(folders[name].glob("*.pt"))) == 2
        if behind in (name, "both"):
            (folders[name] / "batch-000000000008.pt").unlink()  # had not come that far
    resumed = ClearSession(plan.cast)
    sides = feature_side(plan, tensors, folders["ann"]), label_side(plan, released, folders["bob"])
    train(resumed, Held("ann", sides[0]), Held("bob", sides[1]), plan)
    weights = [*sides[0].network.state_dict().values(), *sides[1].network.state_dict().values()]
    assert same(weights, whole.weights)
    left = 18 - (8 if behind == "neither" else 4)
    assert len(resumed.transcript.messages) == 2 + 2 * left


def test_a_second_run_and_a_second_epoch_draw_nothing_anew(tmp_path: Path) -> None:
    tensors = inputs(ROWS)
    truth = labels_of(tensors)
    ids = [str(i) for i in range(ROWS)]
    weights = []
    for _ in range(2):
        plan = plan_of(ROWS, epochs=3)
        memo = Memo(tmp_path / "memo")
        weights.append(clear_run(plan, tensors, released_values(truth, ids, plan, memo, SecureRandom())).weights)
    assert same(*weights)
    assert len(memo) == ROWS and memo.spent() == (1, 0)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("law", ["discrete", "multiclass-laplace"])
def test_classes_missing_from_batches_and_batches_of_one(law: str, classes: int) -> None:
    tensors = inputs(12)
    truth = np.zeros(12, dtype=np.int64)  # all classes but one are missing from all batches
    for batch in (1, 5):
        plan = plan_of(12, law, classes=classes, batch=batch)
        run = clear_run(plan, tensors, draws(plan, truth))
        assert all(torch.isfinite(weight).all() for weight in run.weights)
        assert len(run.session.transcript.messages) == 2 + 2 * -(-12 // batch)


@pytest.mark.parametrize("post", ["none", "sum-to-one", "posterior"])
def test_many_classes_are_learnt(post: str) -> None:
    tensors = inputs(3_000)
    truth = labels_of(tensors, 3)
    plan = plan_of(3_000, "multiclass-laplace", 4, classes=3, batch=100, epochs=4, post=post, learning_rate=3e-3)
    run = clear_run(plan, tensors, draws(plan, truth))
    with torch.no_grad():
        guess = run.labels.network(run.features.network(*tensors)).argmax(dim=1).numpy()
    assert np.mean(guess == truth) > 0.5  # a third by guessing


def mixing_heads() -> list[nn.Module]:
    class Centred(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x - x.mean(dim=0))[:, :1]

    return [nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 1)), Centred()]


@pytest.mark.parametrize("head", mixing_heads(), ids=["batch-norm", "centred"])
def test_heads_that_mix_records_are_refused(head: nn.Module) -> None:
    before = {name: value.clone() for name, value in head.state_dict().items()}
    with pytest.raises(InputError, match="mixes the records of a batch"):
        check_records_apart(head, 8)
    assert all(torch.equal(before[name], value) for name, value in head.state_dict().items())
    check_records_apart(nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4), nn.Dropout(), nn.Linear(4, 1)), 8)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"batch": 0}, "batch=0 is below 1"),
    ({"rows": True}, "rows=True"),
    ({"epochs": 1.5}, "epochs=1.5"),
    ({"ahead": -1}, "ahead=-1"),
    ({"coupling": "both"}, "must be one of coupled, independent"),
    ({"post": "denoise"}, "must be one of none"),
    ({"post": "sum-to-one"}, "a scalar has none to spare"),
    ({"bound": 1.0}, "the others none"),
    ({"post": "clip", "bound": float("nan")}, "bound = nan"),
    ({"learning_rate": 0}, "learning_rate = 0"),
    ({"learning_rate": float("inf")}, "learning_rate = inf"),
    ({"classes": 3}, "needs the job's number of classes"),
    ({"classes": 1001}, "classes = 1001: at most 1000"),
    ({"unprotected": True}, "no unprotected"),
    ({"features": "bob"}, "each name once"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_plans_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        _ = replace(plan_of(ROWS), **change).cast


def test_training_without_a_law_needs_the_word() -> None:
    with pytest.raises(UnprotectedError, match="shows every label"):
        Plan("ann", "bob", 10, 4, None)
    with pytest.raises(InputError, match="labels without noise need none"):
        plan_of(10, None, post="clip")
    with pytest.raises(InputError, match="about two draws"):
        plan_of(10, None, coupling="independent")


def test_wrong_shapes_are_told() -> None:
    tensors = inputs(ROWS)
    plan = plan_of(ROWS)
    with pytest.raises(InputError, match="need tensors of 300 rows"):
        feature_side(plan, inputs(ROWS - 1))
    with pytest.raises(InputError, match="the plan says"):
        label_side(plan, draws(plan_of(ROWS, coupling="independent"), labels_of(tensors)))
    side = label_side(plan, draws(plan, labels_of(tensors)))
    side.network = nn.Linear(plan.cut, 2)
    with pytest.raises(InputError, match="h gave shape"):
        side.step(np.arange(5), np.zeros((5, plan.cut), np.float32))
    with pytest.raises(InputError, match="f gave shape"):
        replacement = feature_side(plan, tensors)
        replacement.network = FeatureNet(6, (4, 3), 5)
        replacement.forward(np.arange(5))


def test_every_epoch_has_every_record_once_in_an_order_of_its_own() -> None:
    plan = plan_of(103, batch=10, epochs=2)
    batches = [rows for _, rows in plan.batches()]
    first, second = np.concatenate(batches[:11]), np.concatenate(batches[11:])
    assert sorted(first) == sorted(second) == list(range(103)) and (first != second).any()
    assert [number for number, _ in plan.batches(5)] == list(range(5, 22))
    assert all(np.array_equal(a, b) for (_, a), b in zip(plan.batches(5), batches[5:], strict=True))


def test_guarantees_say_what_a_label_costs() -> None:
    for coupling, epsilon in (("coupled", 1), ("independent", 2)):
        row = plan_of(10, coupling=coupling).guarantee.worst(1)
        assert (row.unit, row.epsilon, row.delta) == ("label", epsilon, 0)
    gaussian = plan_of(10, "gaussian", delta="1e-6", coupling="independent").guarantee.worst(1)
    assert float(gaussian.delta) == 2e-6 and gaussian.epsilon == 2
    assert plan_of(10, None).guarantee.worst(1).epsilon == float("inf")


def test_the_auc_from_perturbed_labels_is_near_the_true_one_and_refused_where_it_would_not_be_private() -> None:
    tensors = inputs(6_000)
    truth = labels_of(tensors)
    plan = plan_of(6_000, "laplace", 4, batch=100, epochs=2)
    side = clear_run(plan, tensors, draws(plan, truth)).labels
    estimate = side.private_auc()
    assert estimate is not None and estimate == pytest.approx(auc(truth, side.first[:, 0].astype(float)), abs=0.05)
    assert auc(truth, side.first[:, 0].astype(float)) > 0.6
    for law, classes in ((None, 2), ("discrete", 3)):
        other = plan_of(100, law, classes=classes)
        run = clear_run(other, inputs(100), draws(other, labels_of(inputs(100), classes)))
        assert run.labels.private_auc() is None, "it would read labels themselves, or has no meaning"
    resumed = label_side(plan, draws(plan, truth))
    assert resumed.private_auc() is None


@pytest.mark.parametrize("law", ["laplace", "discrete"])
def test_the_auc_from_perturbed_labels_is_that_of_guesses_however_often_noise_is_learnt(law: str) -> None:
    """Labels are coins: scores from after a record was learnt from hold its noise, and would look good."""
    tensors, coins = inputs(2_000), np.random.default_rng(4).integers(0, 2, 2_000)
    plan = plan_of(2_000, law, 1, batch=50, epochs=8)
    side = clear_run(plan, tensors, draws(plan, coins)).labels
    estimate = side.private_auc()
    assert estimate is not None and abs(estimate - 0.5) < 0.15


def test_predictions_are_of_the_trained_network() -> None:
    tensors = inputs(ROWS)
    plan = plan_of(ROWS)
    run = clear_run(plan, tensors, draws(plan, labels_of(tensors)))
    new = inputs(7, seed=5)
    embeddings = run.features.network(*new).detach().numpy()
    s = ClearSession(plan.cast)
    logits = predict(s, Held("ann", embeddings), Held("bob", run.labels), plan, 7)
    expected = run.labels.network(torch.from_numpy(embeddings)).detach().numpy()
    assert np.array_equal(value_of(logits), expected)
    assert module.__doc__ and run.labels.network.training


def test_labels_that_all_say_the_same_end_no_job_after_its_training() -> None:
    """At epsilon 50 randomised response of ones is ones, and has no pair of a positive and a negative."""
    plan = plan_of(40, "discrete", 50)
    run = clear_run(plan, inputs(40), draws(plan, np.ones(40, dtype=np.int64)))
    assert run.labels.private_auc() is None
