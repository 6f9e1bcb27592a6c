"""Split learning over real processes: the weights of one process, a death in mid-epoch, what goes over the wire."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch

from launch.pool import Pool, TaskFailed
from mechanisms.randomness import SecureRandom
from protocols.split.memo import Memo
from protocols.split.plan import Plan
from protocols.split.train import released_values
from tests.protocols.split.support import clear_run, inputs, labels_of, plan_of, task

pytestmark = pytest.mark.mpc
ROWS = 400
IDS = [str(i) for i in range(ROWS)]


def stored(plan: Plan, memo: Path) -> Any:
    truth = labels_of(inputs(plan.rows), plan.classes)
    return released_values(truth, IDS, plan, Memo(memo), SecureRandom())


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(plan_of(ROWS).cast) as running:
        yield running


def check(found: dict[str, Any], plan: Plan, released: Any) -> None:
    """Both processes' weights are those of the same script in one process."""
    torch.set_num_threads(1)
    expected = clear_run(plan, inputs(plan.rows), released)
    weights = [*found["ann"]["weights"], *found["bob"]["weights"]]
    for one, other in zip(weights, expected.weights, strict=True):
        assert np.allclose(one, other.numpy(), atol=1e-6)
    steps = expected.session.transcript.steps()
    assert found["ann"]["steps"][-len(steps) :] == found["bob"]["steps"][-len(steps) :] == steps


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(ROWS, batch=64, epochs=2),
        plan_of(ROWS, None, batch=64),
        plan_of(ROWS, coupling="independent", batch=50, ahead=3),
        plan_of(ROWS, "multiclass-laplace", classes=3, coupling="independent", batch=100),
        plan_of(ROWS, "multiclass-laplace", classes=10, batch=1, epochs=1),
        plan_of(ROWS, "discrete", classes=3, batch=64, post="posterior"),
    ],
    ids=["coupled", "unprotected", "independent", "3 classes, independent", "10 classes, batches of one", "k-RR"],
)
def test_processes_train_what_one_process_trains(pool: Pool, plan: Plan, tmp_path: Path) -> None:
    memo = tmp_path / "memo"
    found = pool.run(task, plan=plan, seed=0, memo=str(memo))
    check(found, plan, stored(plan, memo))


def test_bytes_are_those_of_embeddings_and_gradients() -> None:
    plan = plan_of(ROWS, batch=50)
    with Pool(plan.cast) as pool:
        found = pool.run(task, plan=plan, seed=0, memo=None)
    for me, peer in (("ann", "bob"), ("bob", "ann")):
        sent = found[me]["cost"].bytes_sent[peer]
        assert 4 * plan.cut * ROWS < sent < 1.1 * 4 * plan.cut * ROWS + 2_000


def test_the_feature_party_sees_gradients_only() -> None:
    plan = plan_of(ROWS, batch=100)
    with Pool(plan.cast, record=True) as pool:
        found = pool.run(task, plan=plan, seed=0, memo=None)
    payloads = [array for array in found["ann"]["received"] if array.dtype != np.uint8]  # without the handshake
    assert [array.shape for array in payloads] == [(3,), *[(100, plan.cut)] * 4]


def test_another_plan_is_refused_before_anything_is_learnt() -> None:
    plan = plan_of(ROWS)
    other = {"bob": {"plan": plan_of(ROWS, learning_rate=0.5)}}
    with Pool(plan.cast) as pool, pytest.raises(TaskFailed, match="out of step"):
        pool.run(task, plan=plan, seed=0, memo=None, per_party=other)


@pytest.mark.parametrize("dies", ["ann", "bob"])
def test_after_a_death_in_mid_epoch_the_job_goes_on_without_a_second_draw(dies: str, tmp_path: Path) -> None:
    plan = plan_of(ROWS, batch=8, epochs=20, checkpoint=20)
    memo, folder = tmp_path / "memo", tmp_path / "checkpoints"
    arguments = {"plan": plan, "seed": 0, "memo": str(memo), "folder": str(folder)}
    with Pool(plan.cast) as pool:
        failures: list[Exception] = []

        def run() -> None:
            try:
                pool.run(task, **arguments)
            except TaskFailed as error:
                failures.append(error)

        running = Thread(target=run)
        running.start()
        end = time.monotonic() + 60
        while len(list(folder.glob("*/batch-*.pt"))) < 3 and time.monotonic() < end:
            time.sleep(0.002)
        os.kill(pool.processes[dies].pid, signal.SIGKILL)
        running.join(timeout=60)
    assert len(failures) == 1 and f"{dies}: the process ended" in str(failures[0])
    reached = max(int(path.stem[6:]) for path in folder.glob("*/batch-*.pt"))
    assert 0 < reached < plan.total_batches
    before = stored(plan, memo)
    with Pool(plan.cast) as pool:
        found = pool.run(task, **arguments)
    assert np.array_equal(stored(plan, memo), before) and len(Memo(memo)) == ROWS
    assert Memo(memo).spent()[0] == 1
    assert len(found["ann"]["steps"]) < 2 * plan.total_batches, "it did not start anew"
    expected = clear_run(plan, inputs(ROWS), before)
    weights = [*found["ann"]["weights"], *found["bob"]["weights"]]
    for one, other in zip(weights, expected.weights, strict=True):
        assert np.allclose(one, other.numpy(), atol=1e-5)
