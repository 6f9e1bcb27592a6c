"""Checkpoints: whose they are, what is left of a run that was abandoned, files that are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from protocols.split.checkpoint import Checkpoints
from protocols.split.plan import Plan
from protocols.split.sides import FeatureSide, LabelSide, Side
from protocols.split.train import train
from smpc import ClearSession, Held, InputError
from tests.protocols.split.support import CUT, clear_run, draws, feature_side, inputs, labels_of, plan_of

torch.set_num_threads(1)
ROWS = 300
PLAN = plan_of(ROWS, batch=50, epochs=2, checkpoint=3)  # checkpoints of batches 3, 6, 9, 12
TENSORS = inputs(ROWS)
RELEASED = draws(PLAN, labels_of(TENSORS))
SIDES = {"ann": FeatureSide, "bob": LabelSide}


def run(folder: Path, plan: Plan = PLAN, job: str = "", head: nn.Module | None = None) -> Any:
    side = feature_side(plan, TENSORS)
    side.checkpoints = Checkpoints(folder / "ann", job)
    network = head or nn.Sequential(nn.Linear(CUT, 4), nn.Tanh(), nn.Linear(4, 1))
    labels = LabelSide(network, RELEASED, plan, Checkpoints(folder / "bob", job))
    s = ClearSession(plan.cast)
    train(s, Held("ann", side), Held("bob", labels), plan)
    return s


def names(folder: Path) -> list[int]:
    return sorted(int(path.stem[6:]) for path in folder.glob("batch-*.pt"))


@pytest.mark.parametrize(
    ("plan", "job"),
    [(replace(PLAN, learning_rate=0.1), ""), (replace(PLAN, epochs=3), ""), (PLAN, "another")],
    ids=["plan", "epochs", "job"],
)
@pytest.mark.parametrize("gone", ["ann", "bob", None])
def test_those_of_another_job_are_refused_though_the_peer_has_none(
    tmp_path: Path, plan: Plan, job: str, gone: str | None
) -> None:
    run(tmp_path)
    for path in (tmp_path / gone).iterdir() if gone else []:
        path.unlink()
    left = "bob" if gone == "ann" else "ann"
    with pytest.raises(InputError, match=f"{left}/batch-000000000012.pt: a checkpoint of another job: delete {left} "):
        run(tmp_path, plan, job)
    assert names(tmp_path / left) == [9, 12]


def test_a_run_from_the_start_leaves_its_own_and_none_of_the_one_before(tmp_path: Path) -> None:
    """One party's were lost, so both start anew and stop after batch 3: what then is on disk must be of use."""
    run(tmp_path)
    for path in (tmp_path / "bob").iterdir():
        path.unlink()
    stop = Checkpoints.save

    def save(self: Checkpoints, position: int, plan: Plan, state: dict[str, Any]) -> None:
        stop(self, position, plan, state)
        if position == 6 and self.folder is not None and self.folder.name == "bob":
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Checkpoints, "save", save)
        run(tmp_path)
    assert names(tmp_path / "ann") == [3] and names(tmp_path / "bob") == [3, 6]
    assert len(run(tmp_path).transcript.messages) == 2 + 2 * 9


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for position, kept in ((3, [3]), (6, [3, 6]), (9, [6, 9]), (9, [6, 9]), (4, [4]), (5, [4, 5])):
        checkpoints.save(position, PLAN, {})
        assert names(tmp_path) == kept
    assert checkpoints.positions(PLAN) == [5, 4, 0]


def test_a_checkpoint_of_another_network_is_one_line(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(InputError, match="bob: the checkpoint of batch 12 is of another network: delete the folder"):
        run(tmp_path, head=nn.Linear(CUT, 1))


class Evil:
    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.file),)


def spoil_code(path: Path) -> None:
    torch.save({"job": Evil(path.parent / "executed")}, path)


SPOILT: dict[str, tuple[Callable[[Path], Any], str]] = {
    "damaged": (lambda path: path.write_bytes(b"damaged"), "cannot be read"),
    "cut off": (lambda path: path.write_bytes(path.read_bytes()[:-50]), "cannot be read"),
    "empty": (lambda path: path.write_bytes(b""), "cannot be read"),
    "code": (spoil_code, "cannot be read"),
    "a list": (lambda path: torch.save([1], path), "of another job"),
    "a foreign state": (lambda path: torch.save({"network": {}}, path), "of another job"),
}


@pytest.mark.parametrize("kind", list(SPOILT))
def test_spoilt_files_are_refused_and_nothing_in_them_runs(tmp_path: Path, kind: str) -> None:
    run(tmp_path)
    path = tmp_path / "bob" / "batch-000000000012.pt"
    spoil, message = SPOILT[kind]
    spoil(path)
    with pytest.raises(InputError, match=message):
        run(tmp_path)
    assert not (tmp_path / "bob" / "executed").exists()
    path.unlink()
    assert len(run(tmp_path).transcript.messages) == 2 + 2 * 3, "one further back will do"


@pytest.mark.parametrize("missing", ["network", "optimizer", "state"])
def test_a_state_without_its_parts_is_one_line(tmp_path: Path, missing: str) -> None:
    run(tmp_path)
    checkpoints = Checkpoints(tmp_path / "bob")
    state = checkpoints.load(12, PLAN)
    del (state["optimizer"] if missing == "state" else state)[missing]
    checkpoints.save(12, PLAN, state)
    with pytest.raises(InputError, match="is of another network"):
        run(tmp_path)


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    for name in ("batch-notes.pt", "batch-1.pt", "unfinished", "readme"):
        (tmp_path / "bob").mkdir(exist_ok=True)
        (tmp_path / "bob" / name).write_text("mine")
    run(tmp_path)
    assert (tmp_path / "bob" / "batch-notes.pt").read_text() == "mine"


def test_nothing_is_kept_without_a_folder() -> None:
    assert Checkpoints().positions(PLAN) == [0]
    clear_run(PLAN, TENSORS, RELEASED)
    with pytest.raises(InputError, match="none is kept"):
        Checkpoints().load(3, PLAN)


def no_room(*arguments: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_one_line_and_what_was_kept_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(3, PLAN, {})
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(InputError, match=r"no checkpoint can be written \(No space left on device\): make room"):
        checkpoints.save(6, PLAN, {})
    assert names(tmp_path) == [3]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_torch_does_not_tell_of_a_full_disk_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "unfinished").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"\(No space left on device\)") as told:
        Checkpoints(tmp_path).save(3, PLAN, {"network": {"weights": torch.zeros(1 << 16)}})
    assert "\n" not in str(told.value)


def test_a_file_in_the_folders_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "place").write_text("mine")
    with pytest.raises(InputError, match=r"place: no checkpoint can be written \(File exists\)"):
        Checkpoints(tmp_path / "place")


@pytest.mark.parametrize("liar", ["ann", "bob"])
def test_a_peer_that_leaves_out_the_start_cannot_stop_the_other_in_its_own_words(tmp_path: Path, liar: str) -> None:
    """Without a checkpoint in common, not even the start, they begin anew."""
    run(tmp_path)
    real = Side.positions
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Side, "positions", lambda side: np.full(3, 7.0) if isinstance(side, SIDES[liar]) else real(side))
        assert len(run(tmp_path).transcript.messages) == 2 + 2 * PLAN.total_batches
