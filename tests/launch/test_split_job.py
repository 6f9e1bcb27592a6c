"""Split-learning jobs: what a job file may say, and whole jobs in two processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from launch import run
from launch.explain import explain
from launch.job import load_job
from launch.jobfile.fields import JobError
from launch.outputs import kept
from launch.tasks import split_run
from launch.tasks.split import SplitTask
from launch.tasks.split_labels import released
from mechanisms.guarantee import Guarantee
from mechanisms.ledger import BudgetError, Ledger
from protocols.split.checkpoint import Checkpoints
from protocols.split.memo import Memo
from smpc.errors import InputError
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
    text, _ = explain(write_job(tmp_path, split_job()), 1000)
    assert "P_L -> P_N  gradients" in text and "P_N       a" in text and "change one label  1 " in text
    assert "server" not in text and "dealer" not in text
    once, _ = explain(write_job(tmp_path, {**split_job(), "job": {**split_job()["job"], "one_shot": True}}), 1000)
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
    (("party", 1, "columns"), {"y": [0, 1e9]}, "classes = 1000000001: at most 1000"),
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


def test_labels_without_a_law_have_a_number_of_classes_too(tmp_path: Path) -> None:
    job = split_job()
    job["job"] = {"name": "test", "protocol": "split", "unprotected": True}
    job["party"][1]["columns"] = {"y": [0, 1e9]}
    with pytest.raises(JobError, match="classes = 1000000001: at most 1000"):
        load_job(write_job(tmp_path, job))


def test_names_with_commas_are_no_other_categories(tmp_path: Path) -> None:
    task = load_job(write_job(tmp_path, split_job())).task
    assert isinstance(task, SplitTask)
    facts = [replace(task, categories=names).facts() for names in (("a, b",), ("a", "b"), ())]
    assert len({own["categories"] for own in facts}) == 3


def test_independent_draws_do_not_fit_one_shot(tmp_path: Path) -> None:
    job = split_job()
    job["job"] |= {"one_shot": True, "coupling": "independent"}
    with pytest.raises(JobError, match="has two draws a label"):
        load_job(write_job(tmp_path, job))


def test_messages_that_are_too_large_are_refused_before_any_connection(tmp_path: Path) -> None:
    task = task_of(tmp_path, batch=1 << 17, cut=1024)
    assert task.plan(1 << 16).batch == 1 << 17, "of which only so many rows are sent"
    with pytest.raises(InputError, match=r"embeddings of shape \(65537, 1024\) take .* choose a smaller batch"):
        task.plan((1 << 16) + 1)
    once = task_of(tmp_path, one_shot=True)
    assert once.plan(1 << 25).rows == 1 << 25
    with pytest.raises(InputError, match=r"perturbed labels of shape \(33554433, 1\) take .* leave one_shot out"):
        once.plan((1 << 25) + 1)


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
        evaluation = json.loads((out / "evaluation.json").read_text())
        assert list(evaluation) == ["auc_of_perturbed_labels", "scored"]
        assert evaluation["scored"] == "before each record was first learnt from"
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


def task_of(folder: Path, ledger: str | None = "b.ledger", **choices: Any) -> SplitTask:
    """The job with these choices, and b's ledger."""
    job = split_job()
    job["job"] |= choices
    if ledger:
        job["party"][1] |= {"ledger": ledger, "data_set": "visits"}
    task = load_job(write_job(folder, job)).task
    assert isinstance(task, SplitTask)
    return task


def released_to(task: SplitTask, rows: int = ROWS) -> Any:
    """b's values of a run, shape (copies, rows, width)."""
    return released(task, task.plan(rows), task.prepare("b").data)


def book(folder: Path, cap: object = 100, name: str = "b.ledger", delta: object = 0) -> Ledger:
    ledger = Ledger(folder / name)
    ledger.cap("visits", "label", cap, delta)
    return ledger


def charged(ledger: Ledger) -> tuple[Fraction, Fraction, int]:
    (account,) = ledger.accounts()
    return account.spent_epsilon, account.spent_delta, account.charges


def others(table: Path) -> None:
    """The same rows, of other people."""
    head, *rows = table.read_text().splitlines()
    table.write_text("\n".join([head, *(f"1000{row}" for row in rows)]) + "\n")


def test_a_ledger_is_charged_for_draws_that_were_made_without_it(tmp_path: Path, capsys: Any) -> None:
    write_tables(tmp_path)
    first = released_to(task_of(tmp_path, ledger=None))
    assert "no ledger in the job file" in capsys.readouterr().err
    ledger, other = book(tmp_path), book(tmp_path, name="other.ledger")
    for _ in range(2):
        assert np.array_equal(released_to(task_of(tmp_path)), first)
    assert charged(ledger) == (1, 0, 1)
    released_to(task_of(tmp_path, "other.ledger", epsilon=2))
    assert charged(other) == (3, 0, 1), "what was drawn at epsilon 1 has been released, too"
    released_to(task_of(tmp_path))
    assert charged(ledger) == (3, 0, 2)


def test_a_ledger_that_moves_with_its_table_is_the_same_and_a_new_one_in_its_place_is_not(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    write_tables(old)
    book(old)
    released_to(task_of(old))
    old.rename(new)
    released_to(task_of(new))
    assert charged(Ledger(new / "b.ledger")) == (1, 0, 1)
    (new / "b.ledger").unlink()
    ledger = book(new)
    released_to(task_of(new))
    assert charged(ledger) == (1, 0, 1)


@pytest.mark.parametrize("coupling", ["coupled", "independent"])
def test_a_job_over_the_cap_is_refused_before_any_connection_and_draws_nothing(tmp_path: Path, coupling: str) -> None:
    write_tables(tmp_path)
    with pytest.raises(BudgetError, match="no cap for one label"):
        task_of(tmp_path, coupling=coupling).prepare("b").check_budget()
    ledger = book(tmp_path, "0.5")
    with pytest.raises(BudgetError, match=r"epsilon cap 0\.5 for one label, 0 spent.* raise the cap$"):
        task_of(tmp_path, coupling=coupling).prepare("b").check_budget()
    assert task_of(tmp_path, coupling=coupling).prepare("a").facts
    assert not list(tmp_path.glob("*.memo*")) and charged(ledger)[2] == 0
    ledger.cap("visits", "label", 2 if coupling == "independent" else 1)
    released_to(task_of(tmp_path, coupling=coupling))
    ledger.cap("visits", "label", "0.5")
    task_of(tmp_path, coupling=coupling).prepare("b").check_budget()  # the same draws again cost nothing
    with pytest.raises(
        BudgetError, match=r"nothing is left: .* decision; the same law and epsilon as before cost nothing$"
    ):
        task_of(tmp_path, coupling=coupling, law="discrete").prepare("b").check_budget()


def test_names_that_leave_no_room_for_what_is_kept_beside_the_table_are_told(tmp_path: Path) -> None:
    write_tables(tmp_path)
    label, job = "é" * 64, split_job()
    text = (tmp_path / "b.csv").read_text()
    (tmp_path / "b.csv").write_text(text.replace("person,y", f"person,{label}"))
    job["label"]["column"] = label
    job["party"][1]["columns"] = {label: [0, 1]}
    told = f"{label}, which is too long a name here: shorten it$"
    with pytest.raises(InputError, match=rf"b\.csv: the files kept beside it are named after it and its column {told}"):
        load_job(write_job(tmp_path, job)).task.prepare("b")
    job = split_job()
    for number in (0, 1):
        name = f"{'ab'[number]}{'t' * 245}.csv"
        (tmp_path / f"{'ab'[number]}.csv").rename(tmp_path / name)
        job["party"][number]["table"] = name
    (tmp_path / name).write_text(text)
    task = load_job(write_job(tmp_path, job)).task
    for me, column in (("a", ""), ("b", " and its column y")):
        told = rf"named after it{column}, which is too long a name here: shorten it$"
        with pytest.raises(InputError, match=rf"{me}t*\.csv: the files kept beside it are {told}"):
            task.prepare(me)


def test_unprotected_labels_are_refused_by_a_ledger_before_any_connection(tmp_path: Path) -> None:
    write_tables(tmp_path)
    book(tmp_path)
    job = split_job()
    job["job"] = {"name": "test", "protocol": "split", "unprotected": True}
    job["party"][1] |= {"ledger": "b.ledger", "data_set": "visits"}
    with pytest.raises(BudgetError, match="is infinite"):
        load_job(write_job(tmp_path, job)).task.prepare("b").check_budget()


def test_a_delta_is_charged_where_epsilon_does_not_grow(tmp_path: Path) -> None:
    """Other people, so that nobody has cost more epsilon than 2, and the first delta."""
    write_tables(tmp_path)
    ledger = book(tmp_path, delta="1e-5")
    released_to(task_of(tmp_path, epsilon=2))
    others(tmp_path / "b.csv")
    released_to(task_of(tmp_path, law="gaussian", delta=Raw("1e-6")))
    assert charged(ledger) == (2, Fraction(1, 10**6), 2)


def test_only_the_owner_is_told_that_labels_have_changed_since_they_were_drawn(tmp_path: Path, capsys: Any) -> None:
    write_tables(tmp_path)
    book(tmp_path)
    first = released_to(task_of(tmp_path))
    head, *rows = (tmp_path / "b.csv").read_text().splitlines()
    rows[:3] = [f"{row.split(',')[0]},{1 - int(row.split(',')[1])}" for row in rows[:3]]
    assert "others than when" not in capsys.readouterr().err
    (tmp_path / "b.csv").write_text("\n".join([head, *rows]) + "\n")
    task = task_of(tmp_path)
    facts = task.prepare("b").facts
    assert capsys.readouterr().err.startswith("b: 3 values of y are others than when they were perturbed")
    assert facts == {"rows": str(ROWS)}
    assert np.array_equal(released_to(task), first)


def test_only_the_owner_is_told_of_people_who_may_be_others_under_new_ids(tmp_path: Path, capsys: Any) -> None:
    """As no ledger can see it: each record has one draw."""
    write_tables(tmp_path)
    ledger = book(tmp_path)
    released_to(task_of(tmp_path))
    head, *rows = (tmp_path / "b.csv").read_text().splitlines()
    (tmp_path / "b.csv").write_text("\n".join([head, *rows, "777,1"]) + "\n")
    released_to(task_of(tmp_path), ROWS + 1)
    assert capsys.readouterr().err == "", "more people, and those who were there"
    others(tmp_path / "b.csv")
    facts = task_of(tmp_path).prepare("b").facts
    assert capsys.readouterr().err.startswith(
        "b: 121 ids of person are new to b.csv.y.memo, which has draws of 121 others; the same people"
    )
    assert facts == {"rows": str(ROWS + 1)} and charged(ledger) == (1, 0, 1)


def test_a_ledger_cannot_allow_features_without_noise(tmp_path: Path) -> None:
    write_tables(tmp_path)
    job = split_job()
    job["party"][0] |= {"ledger": "a.ledger"}
    task = load_job(write_job(tmp_path, job)).task
    with pytest.raises(InputError, match=r"^ledger of a: what f says of its records is sent without noise"):
        task.prepare("a")
    assert task.prepare("b").facts


@pytest.mark.parametrize("me", ["a", "b"])
def test_checkpoints_of_another_job_or_other_people_are_told_before_any_connection(tmp_path: Path, me: str) -> None:
    write_tables(tmp_path)
    task = task_of(tmp_path, ledger=None)
    place = tmp_path / f"{me}.csv.checkpoints"
    Checkpoints(place, split_run._mark(task, task.prepare(me).data)).save(3, task.plan(ROWS), {})
    assert task.prepare(me).facts
    for other in ({"learning_rate": 0.1}, {"name": "another"}, {"categories": []}, {"epsilon": 2}):
        with pytest.raises(InputError, match=rf"{me}.csv.checkpoints/batch-0*3.pt: a checkpoint of another job"):
            task_of(tmp_path, ledger=None, **other).prepare(me)
    assert task_of(tmp_path, ledger=None, one_shot=True).prepare(me).facts, "which keeps none"
    others(tmp_path / f"{me}.csv")
    with pytest.raises(InputError, match="a checkpoint of another job"):
        task.prepare(me)


@pytest.mark.parametrize("full", [False, True])
def test_checkpoints_stay_until_the_results_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    write_tables(tmp_path)
    write_job(tmp_path, split_job())
    places = [tmp_path / f"{me}.csv.checkpoints" for me in "ab"]
    for place in places:
        place.mkdir()

    def no_room(*_: Any) -> None:
        raise InputError("no space left")

    for name in ("_start", "_wait"):
        monkeypatch.setattr(run, name, lambda *_: None)
    monkeypatch.setattr(run, "_merge", lambda *_: {"model.json": "{}"})
    if full:
        monkeypatch.setattr(run, "write_folder", no_room)
    with pytest.raises(InputError, match="no space left") if full else nullcontext():
        run.run_locally(tmp_path / "job.toml", tmp_path / "out")
    assert [place.exists() for place in places] == [full, full]


@pytest.mark.mpc
def test_a_second_run_of_a_job_waits_for_the_first(tmp_path: Path) -> None:
    """Before anything is drawn or charged: as in `smpc party`, where the first run holds the checkpoints."""
    write_tables(tmp_path)
    ledger = book(tmp_path)
    task_of(tmp_path)
    place = tmp_path / "b.csv.checkpoints"
    root = Path(__file__).parents[2]
    with kept([place]):
        told = smpc("run", f"{tmp_path}/job.toml", "--out", f"{tmp_path}/out", folder=root)
    assert told.startswith(f"smpc: b: {place}: another job uses it; wait until it has ended") and told.count("\n") == 1
    assert charged(ledger)[2] == 0 and not (tmp_path / "out").exists() and not list(tmp_path.glob("*.checkpoints"))
    assert "smpc: " not in smpc("run", f"{tmp_path}/job.toml", "--out", f"{tmp_path}/out", folder=root)
    assert charged(ledger)[2] == 1 and not list(tmp_path.glob("*.checkpoints"))


@pytest.mark.mpc
def test_a_job_that_was_killed_goes_on_and_costs_nothing_more(tmp_path: Path) -> None:
    """Against a whole run on the same draws."""
    write_tables(tmp_path)
    ledger = book(tmp_path)
    job = split_job()
    job["job"] |= {"epochs": 40, "checkpoint": 2}
    job["party"][1] |= {"ledger": "b.ledger", "data_set": "visits"}
    write_job(tmp_path, job)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "launch", "run", f"{tmp_path}/job.toml", "--out", f"{tmp_path}/killed"]
    with subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, start_new_session=True) as running:
        end = time.monotonic() + 120
        while len(list(tmp_path.glob("*.checkpoints/batch-*.pt"))) < 4 and time.monotonic() < end:
            time.sleep(0.005)
        os.killpg(running.pid, signal.SIGKILL)
    reached = min(max(int(p.stem[6:]) for p in tmp_path.glob(f"{me}.csv.checkpoints/batch-*.pt")) for me in "ab")
    assert 0 < reached < 4 * 40 and not list((tmp_path / "killed").glob("*"))
    smpc("run", f"{tmp_path}/job.toml", "--out", f"{tmp_path}/killed", folder=root)  # the same command
    smpc("run", f"{tmp_path}/job.toml", "--out", f"{tmp_path}/whole", folder=root)
    assert charged(ledger) == (1, 0, 1)
    sent = {name: len((tmp_path / name / "transcript.jsonl").read_text().splitlines()) for name in ("killed", "whole")}
    assert sent["whole"] == 2 + 2 * 4 * 40 and sent["killed"] <= sent["whole"] - 2 * (reached - 2)
    for network in ("f.pt", "h.pt"):
        one, other = (torch.load(tmp_path / name / network, weights_only=True) for name in ("killed", "whole"))
        assert all(torch.allclose(one[key], other[key], atol=1e-5) for key in one)


def test_another_column_of_labels_has_draws_and_a_charge_of_its_own(tmp_path: Path) -> None:
    write_tables(tmp_path)
    lines = (tmp_path / "b.csv").read_text().splitlines()
    rows = [f"{line},{1 - int(line.split(',')[1])}" for line in lines[1:]]
    (tmp_path / "b.csv").write_text("\n".join([f"{lines[0]},z", *rows]) + "\n")
    job = split_job()
    job["job"]["epsilon"] = 8
    job["party"][1] |= {"ledger": "b.ledger", "data_set": "visits"}
    Ledger(tmp_path / "b.ledger").cap("visits", "label", 100)
    values = {}
    for label in ("y", "z"):
        job["party"][1]["columns"], job["label"]["column"] = {label: [0, 1]}, label
        task = load_job(write_job(tmp_path, job)).task
        assert isinstance(task, SplitTask)
        table = task.prepare("b").data
        values[label] = released_to(task, ROWS).ravel() - table.columns[0] * 65536
    assert not np.array_equal(values["y"], values["z"])
    for noise in values.values():
        assert abs(np.median(noise)) < 65536 / 4  # of its own labels: the other column's would be off by 1
    (account,) = Ledger(tmp_path / "b.ledger").accounts()
    assert (account.spent_epsilon, account.charges) == (Fraction(16), 2)
