"""`backend`, `mode` and `threshold` in job files: what is accepted, what it means for cast, plan and ledger."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from launch import backend
from launch.explain import explain
from launch.job import Job, load_job
from launch.jobfile.fields import JobError
from launch.tasks.functional import FunctionalTask
from smpc.bgn.dlog import WINDOW_BITS
from smpc.bgn.mcl import CurveUnavailable
from smpc.bgn.modes import Keys
from smpc.errors import InputError
from smpc.transcript import table
from tests.launch.jobs import valid_job, write_job


def bgn_job(**job: Any) -> dict[str, Any]:
    """Three parties, no dealer."""
    data = valid_job()
    del data["dealer"]
    data["party"].append({"name": "c", "table": "c.csv", "id": "person", "columns": {"z": [0, 1]}})
    data["job"] |= {"backend": "bgn", **job}
    return data


def loaded(folder: Path, data: dict[str, Any]) -> tuple[Job, FunctionalTask]:
    job = load_job(write_job(folder, data))
    assert isinstance(job.task, FunctionalTask)
    return job, job.task


def fault(folder: Path, data: dict[str, Any]) -> str:
    path = write_job(folder, data)
    with pytest.raises(JobError) as caught:
        load_job(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ") and line.isprintable(), line
    return line.removeprefix(f"{path}: ")


def test_crypten_with_a_dealer_is_the_default(tmp_path: Path) -> None:
    job, task = loaded(tmp_path, valid_job())
    assert task.backend.keys is None and job.cast.dealer == "dealer" and job.cast.tolerated == 1
    assert job.public_facts()["backend"] == "crypten"
    named = valid_job()
    named["job"]["backend"] = "crypten"
    assert load_job(write_job(tmp_path, named)) == job


@pytest.mark.parametrize(
    ("given", "keys", "tolerated", "threshold"),
    [
        ({}, Keys("pair"), 2, "all parties"),
        ({"mode": "pair"}, Keys("pair"), 2, "all parties"),
        ({"mode": "linear"}, Keys("linear"), 2, "all parties"),
        ({"mode": "threshold"}, Keys("threshold"), 2, "all parties"),
        ({"mode": "threshold", "threshold": 3}, Keys("threshold", 3), 2, "3"),
        ({"mode": "threshold", "threshold": 2}, Keys("threshold", 2), 1, "2"),
    ],
)
def test_modes(tmp_path: Path, given: dict[str, Any], keys: Keys, tolerated: int, threshold: str) -> None:
    job, task = loaded(tmp_path, bgn_job(**given))
    assert task.backend.keys == keys
    assert (job.dealer, job.cast.dealer, job.cast.tolerated) == (None, None, tolerated)
    assert [endpoint.name for endpoint in job.participants] == ["a", "b", "c", "server"]
    facts = job.public_facts()
    assert (facts["backend"], facts["mode"], facts["threshold"]) == ("bgn", keys.mode, threshold)
    guarantee = task.plan(100).guarantee(job.cast)
    assert guarantee.worst(job.cast.tolerated).epsilon == task.epsilon  # what a ledger is charged
    assert (guarantee.worst(2).epsilon == math.inf) == (tolerated < 2)


def test_every_mode_has_facts_of_its_own(tmp_path: Path) -> None:
    choices: list[dict[str, Any]] = [{"mode": mode} for mode in ("pair", "linear", "threshold")]
    choices.append({"mode": "threshold", "threshold": 2})
    facts = [tuple(load_job(write_job(tmp_path, bgn_job(**given))).public_facts().items()) for given in choices]
    assert len(set(facts)) == 4


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"backend": "bgn2"}, "[job]: backend = 'bgn2' must be one of crypten, bgn"),
        ({"mode": "pairs"}, "[job]: mode = 'pairs' must be one of pair, threshold, linear"),
        ({"threshold": 2}, "[job]: threshold = 2: only mode = 'threshold' has one; leave it out"),
        ({"mode": "linear", "threshold": 2}, "[job]: threshold = 2: only mode = 'threshold' has one; leave it out"),
        ({"mode": "threshold", "threshold": 4}, "[job]: threshold = 4: must be from 2 to the number of parties, 3"),
        *[
            ({"mode": "threshold", "threshold": wrong}, f"[job]: threshold = {shown} must be a whole number from 2 to")
            for wrong, shown in ((1, "1"), (0, "0"), (-2, "-2"), (True, "true"), ("2", "'2'"))
        ],
        ({"noise": "joint"}, "[job]: noise = 'joint' must be 'shares' or 'paper' on backend = 'bgn'"),
        ({"mechanism": "gamma-norm"}, "[job]: mechanism = 'gamma-norm' must be 'laplace' or 'gaussian' on backend"),
        (
            {"backend": "crypten", "mode": "pair"},
            "[job]: mode = 'pair' must be left out: only backend = 'bgn' has modes",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, given: dict[str, Any], line: str) -> None:
    assert fault(tmp_path, bgn_job(**given)).startswith(line)


def test_a_dealer_is_refused(tmp_path: Path) -> None:
    data = bgn_job() | {"dealer": {"name": "dealer"}}
    assert fault(tmp_path, data) == "[dealer] beside backend = 'bgn', which has no dealer; leave the table out"


@pytest.mark.parametrize("rows", [2, 1000, 10**6])
def test_bits_are_chosen_so_that_sums_can_be_decrypted(tmp_path: Path, rows: int) -> None:
    _, task = loaded(tmp_path, bgn_job(epsilon=1))
    plan = task.plan(rows)
    assert rows * 4**plan.bits < 2**WINDOW_BITS
    with pytest.raises(InputError, match=r"fraction_bits = 21: .* can leave the window .*; fraction_bits = \d+ fits"):
        loaded(tmp_path, bgn_job(fraction_bits=21))[1].plan(rows)


@pytest.mark.parametrize("mode", ["pair", "threshold", "linear"])
def test_explain_shows_the_modes_messages(tmp_path: Path, mode: str) -> None:
    text = explain(write_job(tmp_path, bgn_job(mode=mode)), 100)[0]
    for route, message in table(Keys(mode).table):
        assert re.search(rf"{route} +{message}", text), message
    assert "dealer    nobody" in text and "SXDH" in text
    sent = dict(re.findall(r"^  (\w+) +([0-9.]+) kB ", text, re.MULTILINE))
    assert list(sent) == ["a", "b", "c", "server"]
    assert (float(sent["server"]) < 1) == (mode == "linear")


def test_explain_has_no_table_of_the_papers_order(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^noise = 'paper': no table .* see docs/protocols/bgn\.md$"):
        explain(write_job(tmp_path, bgn_job(noise="paper")), 100)


def test_a_library_that_fails_is_told_before_any_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise CurveUnavailable("the pairing library fails its check (bilinearity): install pymcl==1.0.2")

    monkeypatch.setattr(backend, "library", broken)
    with pytest.raises(CurveUnavailable, match="install pymcl"):
        loaded(tmp_path, bgn_job())[1].prepare("server")
    loaded(tmp_path, valid_job())[1].prepare("server")


def test_public_factors_take_their_room(tmp_path: Path) -> None:
    """The source's weights double the label's sums: fewer rows fit, and the refusal says how many."""
    given = {"epsilon": 50, "fraction_bits": 10, "sensitivity": "paper"}
    _, task = loaded(tmp_path, bgn_job(**given))
    with pytest.raises(InputError, match=r"fraction_bits = 9 fits, or at most \d+ rows") as caught:
        task.plan(2**22 - 10)
    most = int(str(caught.value).split("at most ")[1].split()[0])
    assert 2**20 < most < 2**21
    task.plan(most)
    with pytest.raises(InputError):
        task.plan(most + 1)


def test_too_many_rows_for_any_bits(tmp_path: Path) -> None:
    _, task = loaded(tmp_path, bgn_job(epsilon=50))
    with pytest.raises(InputError, match=r"no fraction_bits fits, or at most \d+ rows; use tighter bounds or more"):
        task.plan(2**45)
