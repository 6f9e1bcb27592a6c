"""An ensemble job's model.json is enough to use its classifier: bounds, classes, what the sign or the largest says."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.cli import main
from launch.job import load_job
from launch.jobfile.fields import JobError
from launch.models import ReleasedModel, load_model
from launch.noise_share import noise_of
from launch.tasks.ensemble import EnsembleTask
from launch.voted_model import VotedModel, weight_names
from mechanisms.guarantee import Guarantee
from protocols.ensemble.release import EnsembleRelease
from protocols.ensemble.statistic import StatisticPlan
from protocols.schema import Column
from smpc.errors import InputError
from tests.launch.test_ensemble import SAMPLES, points, write_job

CLASSES = {2: ("down", "up"), 3: ("down", "up", "far, west")}


def task_of(folder: Path, classes: int, *, release: str = "statistic") -> EnsembleTask:
    path = write_job(folder, release=release)
    path.write_text(path.read_text().replace("b = [-3, 3]", "b = [-8, 4]"))
    task = load_job(path).task
    assert isinstance(task, EnsembleTask)
    return replace(task, classes=CLASSES[classes])


def released(task: EnsembleTask) -> EnsembleRelease:
    """Random weights; of two classes as a run has them, and a statistic beside them."""
    plan = task.plan(task.table.load())
    weights = np.random.default_rng(3).normal(size=plan.shape)
    statistic = np.ones(plan.shape) if isinstance(plan, StatisticPlan) else None
    guarantee = Guarantee.for_release(order="none", epsilon=None, parties=("a",), server="s", dealer=None, mechanism="")
    return EnsembleRelease(weights, statistic, guarantee, tuple(task.voters), {}, ())


def model_of(task: EnsembleTask) -> dict[str, Any]:
    about = json.loads(task._model(released(task), task.plan(task.table.load())))
    assert isinstance(about, dict)
    return about


@pytest.mark.parametrize("release", ["statistic", "soft"])
@pytest.mark.parametrize("classes", [2, 3])
def test_what_is_read_back_says_what_the_release_says(tmp_path: Path, classes: int, release: str) -> None:
    """On rows inside and outside the bounds, long ones and short ones; bounds that do not start at 0."""
    task = task_of(tmp_path, classes, release=release)
    about = model_of(task)
    assert about["classes"] == list(CLASSES[classes]) and about["bounds"] == {"a": [-3, 3], "b": [-8, 4]}
    model = VotedModel.of(about)
    x, _ = points(500, 8)
    expected = released(task).predict(task.table.scaled(2 * x).x)
    found = model.predict(2 * x.T)
    assert np.mean([CLASSES[classes][e] == f for e, f in zip(expected, found, strict=True)]) > 0.99  # the lattice
    assert set(found) == set(CLASSES[classes]), "weights that tell nothing apart"


def test_the_rule_in_words_is_the_rule(tmp_path: Path) -> None:
    about = model_of(task_of(tmp_path, 2))
    assert about["says"] == "up if the products of row and coefficients add up to more than 0, else down"
    point = np.array([[1.0], [-2.0]])
    row = np.array([4 / 6, 6 / 12])
    row = np.append(row / max(1, np.linalg.norm(row)), 1) / np.sqrt(2)  # as `features` says
    up = row @ [about["coefficients"][name] for name in ("a", "b", "intercept")] > 0
    assert VotedModel.of(about).predict(point).tolist() == ["up" if up else "down"]
    assert "largest" in model_of(task_of_three(tmp_path))["says"]


def task_of_three(folder: Path) -> EnsembleTask:
    inner = folder / "three"
    inner.mkdir()
    return task_of(inner, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"classes": ["up"]},
        {"classes": "up"},
        {"classes": ["up", "down", "far"]},
        {"classes": ["up", "do\nwn"]},
        {"classes": [1, 2]},
        {"bounds": {}},
        {"bounds": {"a": [0, 1]}, "coefficients": {"a": 1.0}},
        {"bounds": {"a": [1, 1], "b": [0, 1]}},
        {"bounds": {"a": [0], "b": [0, 1]}},
        {"coefficients": {"a": 1.0, "b": float("nan"), "intercept": 0.0}},
        {"coefficients": [1.0]},
        {
            "classes": ["p", "p: q", "z"],
            "bounds": {"q: a": [0, 1], "a": [0, 1]},
            "coefficients": dict.fromkeys(
                weight_names(("p", "p: q", "z"), (Column("q: a", 0, 1), Column("a", 0, 1))), 1.0
            ),
        },
    ],
)
def test_what_is_no_model(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "model.json").write_text(json.dumps(model_of(task_of(tmp_path, 2)) | change))
    with pytest.raises(
        InputError, match=r"model\.json: is not the model\.json of a linear .* nor of an ensemble, with b"
    ):
        load_model(tmp_path)


def test_predictions_are_classes_and_values_beyond_the_bounds_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table has more columns, in another order; a class with a comma is one value of the file."""
    about = model_of(task_of(tmp_path, 3))
    (tmp_path / "model.json").write_text(json.dumps(about))
    columns = 2 * points(200, 8)[0].T
    (tmp_path / "t.csv").write_text("b,who,a\n" + "".join(f"{b!r},x,{a!r}\n" for a, b in columns.T.tolist()))
    assert main(["predict", str(tmp_path), str(tmp_path / "t.csv")]) == 0
    shown = capsys.readouterr()
    expected = VotedModel.of(about).predict(columns).tolist()
    assert "far, west" in expected
    assert [row for (row,) in csv.reader(shown.out.splitlines())] == ["class", *expected]
    outside = {"a is outside [-3, 3]": abs(columns[0]) > 3, "b is outside [-8, 4]": columns[1] > 4}
    assert shown.err.splitlines() == [
        f"smpc: {tmp_path}/t.csv: {told}, the bounds of the model's rows, in {rows.sum()} rows; "
        "their predictions are extrapolated"
        for told, rows in outside.items()
    ]
    with pytest.raises(InputError, match="is the model of an ensemble, which says classes; use `smpc predict` for it"):
        ReleasedModel.load(tmp_path)


@pytest.mark.parametrize("release", ["statistic", "soft"])
def test_noise_is_told_before_and_after(tmp_path: Path, release: str) -> None:
    task = task_of(tmp_path, 2, release=release)
    job = load_job(tmp_path / "job.toml")
    told, noise = job.task.outlook(job.cast, SAMPLES).noise, noise_of(model_of(task))
    if release == "statistic":
        assert noise is not None and noise[0] == told and told.startswith("noise: 0.028 of the largest length")
    else:
        assert noise is None and told == ""


def test_classes_and_columns_that_make_one_name_of_two_are_refused(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    text = path.read_text().replace('classes = ["down", "up"]', 'classes = ["p", "p: q", "z"]')
    path.write_text(text.replace("b = [-3, 3]", '"q: a" = [-3, 3]'))
    with pytest.raises(JobError, match=r"a class and a column together are called like others .*; rename one$"):
        load_job(path)
