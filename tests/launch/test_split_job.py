"""Split-learning jobs: what a job file may say, and whole jobs in two processes."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from launch.explain import explain
from launch.job import load_job
from launch.jobfile.fields import JobError
from launch.tasks import split_run
from launch.tasks.split import SplitTask
from mechanisms.guarantee import Guarantee
from mechanisms.ledger import Ledger
from protocols.split.memo import Memo
from tests.launch.jobs import Raw, write_job

ROWS = 120


def split_job() -> dict[str, Any]:
    return {
        "job": {"name": "test", "protocol": "split", "epsilon": 1, "batch": 32, "epochs": 2, "categories": ["c"]},
        "label": {"party": "b", "column": "y"},
        "party": [
            {"name": "a", "table": "a.csv", "id": "person", "columns": {"u": [0, 1], "c": [0, 3]}},
            {"name": "b", "table": "b.csv", "id": "person", "columns": {"y": [0, 1]}},
        ],
    }


def write_tables(folder: Path, labels: str = "01") -> None:
    rng = np.random.default_rng(0)
    people = rng.permutation(ROWS)
    features = [f"{i},{rng.random():.4f},{i % 4}" for i in people]
    (folder / "a.csv").write_text("person,u,c\n" + "\n".join(features) + "\n")
    truth = [f"{i},{labels[i % len(labels)]}" for i in rng.permutation(ROWS)]
    (folder / "b.csv").write_text("person,y\n" + "\n".join(truth) + "\n")


def test_a_job_has_two_parties_and_nobody_else(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path, split_job()))
    assert isinstance(job.task, SplitTask)
    assert [endpoint.name for endpoint in job.participants] == ["a", "b"] == list(job.cast.everyone)
    assert job.cast.roles == {"a": "P_N", "b": "P_L"}
    plan = job.task.plan(ROWS)
    assert (plan.features, plan.labels, plan.rows, plan.epochs, plan.batch) == ("a", "b", ROWS, 2, 32)
    assert plan.law is not None and plan.law.epsilon == 1 and plan.cast == job.cast


def test_explain_tells_steps_guarantee_and_bytes(tmp_path: Path) -> None:
    text = explain(write_job(tmp_path, split_job()), 1000)
    assert "P_L -> P_N  gradients" in text and "P_N       a" in text and "change one label  1 " in text
    assert "server" not in text and "dealer" not in text
    once = explain(write_job(tmp_path, {**split_job(), "job": {**split_job()["job"], "one_shot": True}}), 1000)
    assert "perturbed labels" in once and "gradients" not in once


BAD: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("job", "epsilon"), 0, "epsilon = 0 must be a number above 0"),
    (("job", "law"), "gauss", "law = 'gauss' must be one of laplace, discrete"),
    (("job", "law"), "gaussian", "law = 'gaussian' needs one in"),
    (("job", "delta"), Raw("1e-6"), "the others have none"),
    (("job", "post"), "sum-to-one", "a scalar has none to spare"),
    (("job", "coupling"), "both", "one of coupled, independent"),
    (("job", "epochs"), 0, "epochs = 0 must be a whole number from 1"),
    (("job", "early_stopping"), True, "unknown key 'early_stopping'"),
    (("job", "class_weights"), [1, 2], "unknown key 'class_weights'"),
    (("job", "categories"), ["u2"], "'u2' is none"),
    (("job", "categories"), ["y"], "'y' is none"),
    (("job", "unprotected"), True, "epsilon = 1 must be left out"),
    (("server",), {"name": "s"}, "beside a protocol that has none"),
    (("dealer",), {"name": "d"}, "which has no dealer"),
    (("party", 1, "columns"), {"y": [0, 1], "w": [0, 1]}, "b's only column is the label"),
    (("party", 1, "columns"), {"y": [1, 2]}, r"needs the bounds \[0, classes - 1\], has \[1, 2\]"),
    (("party", 1, "columns"), {"y": [0, 2]}, "say 'multiclass-laplace'"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD)
def test_bad_choices_are_refused(path: tuple[str | int, ...], value: Any, message: str, tmp_path: Path) -> None:
    job: Any = deepcopy(split_job())
    place = job
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(JobError, match=message):
        load_job(write_job(tmp_path, job))


def test_independent_draws_do_not_fit_one_shot(tmp_path: Path) -> None:
    job = split_job()
    job["job"] |= {"one_shot": True, "coupling": "independent"}
    with pytest.raises(JobError, match="has two draws a label"):
        load_job(write_job(tmp_path, job))


def test_labels_and_codes_that_are_no_whole_numbers_are_told_to_their_owner(tmp_path: Path) -> None:
    task = load_job(write_job(tmp_path, split_job())).task
    write_tables(tmp_path, labels=["0.5", "1"])  # type: ignore[arg-type]  # texts by turns
    with pytest.raises(ValueError, match="y has 60 values that are no whole number"):
        task.prepare("b")
    assert task.prepare("a").facts == {"rows": str(ROWS)}


def smpc(*arguments: str, folder: Path) -> str:
    command = [sys.executable, "-m", "launch", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.mpc
def test_a_whole_job_its_rerun_and_its_one_shot(tmp_path: Path) -> None:
    """The second run draws and costs nothing and gives the same weights; so does the one-shot variant."""
    write_tables(tmp_path)
    job = split_job()
    job["party"][1] |= {"ledger": "b.ledger", "data_set": "visits"}
    write_job(tmp_path, job)
    job["job"] |= {"one_shot": True}
    write_job(tmp_path, job, "once.toml")
    root = str(Path(__file__).parents[2])
    refused = smpc("run", f"{tmp_path}/job.toml", "--out", f"{tmp_path}/never", folder=Path(root))
    assert "no cap for one label" in refused and not (tmp_path / "never").exists()
    Ledger(tmp_path / "b.ledger").cap("visits", "label", 1)
    weights = []
    for name, file in (("first", "job.toml"), ("second", "job.toml"), ("once", "once.toml")):
        out = tmp_path / name
        smpc("run", f"{tmp_path}/{file}", "--out", str(out), folder=Path(root))
        guarantee = Guarantee.from_json((out / "guarantee.json").read_text())
        assert guarantee.worst(1).epsilon == 1 and guarantee.worst(1).unit == "label"
        assert json.loads((out / "model.json").read_text())["law"].startswith("discrete Laplace")
        assert list(json.loads((out / "evaluation.json").read_text())) == ["auc_of_perturbed_labels"]
        weights.append([torch.load(out / network, weights_only=True) for network in ("f.pt", "h.pt")])
        steps = {json.loads(line)["message"] for line in (out / "transcript.jsonl").read_text().splitlines()}
        assert steps == ({"perturbed labels"} if name == "once" else {"checkpoints", "embeddings", "gradients"})
    for other in weights[1:]:
        for one, again in zip(weights[0], other, strict=True):
            assert all(torch.allclose(one[key], again[key], atol=1e-6) for key in one)
    (account,) = Ledger(tmp_path / "b.ledger").accounts()
    assert (account.spent_epsilon, account.charges) == (Fraction(1), 1)
    assert len(Memo(tmp_path / "b.csv.y.memo")) == ROWS
    assert not list(tmp_path.glob("*.checkpoints"))


@pytest.mark.mpc
def test_rows_of_other_people_are_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    write_tables(tmp_path)
    lines = (tmp_path / "b.csv").read_text().splitlines()
    (tmp_path / "b.csv").write_text("\n".join([*lines[:-1], f"{ROWS + 7},1"]) + "\n")
    write_job(tmp_path, split_job())
    root = Path(__file__).parents[2]
    told = smpc("run", f"{tmp_path}/job.toml", "--out", f"{tmp_path}/out", folder=root)
    assert "do not hold the same ids" in told
    assert not (tmp_path / "b.csv.y.memo").exists()


def test_another_column_of_labels_has_draws_and_a_charge_of_its_own(tmp_path: Path) -> None:
    write_tables(tmp_path)
    lines = (tmp_path / "b.csv").read_text().splitlines()
    rows = [f"{line},{1 - int(line.split(',')[1])}" for line in lines[1:]]
    (tmp_path / "b.csv").write_text("\n".join([f"{lines[0]},z", *rows]) + "\n")
    job = split_job()
    job["job"]["epsilon"] = 8
    job["party"][1] |= {"ledger": "b.ledger", "data_set": "visits"}
    Ledger(tmp_path / "b.ledger").cap("visits", "label", 100)
    released = {}
    for label in ("y", "z"):
        job["party"][1]["columns"], job["label"]["column"] = {label: [0, 1]}, label
        task = load_job(write_job(tmp_path, job)).task
        assert isinstance(task, SplitTask)
        table = task.prepare("b").data
        released[label] = split_run._released(task, task.plan(ROWS), table).ravel() - table.columns[0] * 65536
    assert not np.array_equal(released["y"], released["z"])
    for noise in released.values():
        assert abs(np.median(noise)) < 65536 / 4  # of its own labels: the other column's would be off by 1
    (account,) = Ledger(tmp_path / "b.ledger").accounts()
    assert (account.spent_epsilon, account.charges) == (Fraction(16), 2)
