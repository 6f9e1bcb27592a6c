"""Job files of data releases: what is read, what is refused in one line, who is kept out after a failed toss."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from launch.job import load_job
from launch.jobfile.endpoints import Endpoint
from launch.jobfile.fields import JobError
from launch.keys import make_keys
from launch.tasks.data_release import ReleaseTask
from launch.tasks.exclusions import check_excluded, excluding
from protocols.data_release.plan import ReleasePlan
from protocols.data_release.protocol import script
from protocols.functional.plan import Plan
from smpc import InputError, PeerError
from smpc.coin_tossing import CoinTossError
from smpc.transcript import full_table
from tests.launch.jobs import Raw, valid_job, write_job


def job_with(folder: Path, **choices: Any) -> Path:
    job = valid_job()
    job["job"] = {"name": "test", "protocol": "data_release", "epsilon": 1, "delta": Raw("1e-5")}
    method = choices.get("method", "rmgm")
    if method != "gram":
        del job["dealer"]
    for key, value in choices.items():
        if key in ("ranges", "dealer", "label"):
            job[key] = value
        else:
            job["job"][key] = value
    return write_job(folder, {key: value for key, value in job.items() if value is not None})


def task_of(path: Path) -> ReleaseTask:
    task = load_job(path).task
    assert isinstance(task, ReleaseTask)
    return task


def test_defaults(tmp_path: Path) -> None:
    path = job_with(tmp_path)
    task = task_of(path)
    plan = task.plan(1000)
    assert isinstance(plan, ReleasePlan) and plan.method == "rmgm"
    assert (plan.epsilon, plan.delta) == (1, Fraction(1, 10**5))
    assert (task.rows, task.sigma, task.sensitivity, task.ranges) == (
        "balanced",
        "analytic",
        "tight",
        {"a": "signed", "b": "signed"},
    )
    assert load_job(path).cast.dealer is None
    assert "delta" in task.facts() and task.facts()["range of a"] == "signed"


def test_choices(tmp_path: Path) -> None:
    task = task_of(job_with(tmp_path, rows=77, sigma="classical", sensitivity="paper", ranges={"b": "unit"}))
    plan = task.plan(1000)
    assert isinstance(plan, ReleasePlan) and plan.rows == 77 and plan.ranges == {"a": "signed", "b": "unit"}
    assert isinstance(task_of(job_with(tmp_path, rows="official")).plan(1000), ReleasePlan)
    dgm = task_of(job_with(tmp_path, method="dgm")).plan(1000)
    assert isinstance(dgm, ReleasePlan) and dgm.rows == 1000


def test_a_gram_release_has_a_dealer_and_covers_the_whole_record(tmp_path: Path) -> None:
    path = job_with(tmp_path, method="gram")
    plan = task_of(path).plan(1000)
    assert isinstance(plan, Plan) and (plan.epsilon, plan.delta) == (1, Fraction(1, 10**5))
    assert load_job(path).cast.dealer == "dealer"


def test_a_party_may_hold_the_label_alone(tmp_path: Path) -> None:
    job = valid_job()
    job["job"] = {"name": "test", "protocol": "data_release", "epsilon": 1, "delta": Raw("1e-5")}
    del job["dealer"]
    job["party"][1]["columns"] = {"y": [0, 3]}
    plan = task_of(write_job(tmp_path, job)).plan(100)
    assert plan.schema.widths == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"rows": 0}, "rows = 0 must be a whole number from 1 to the number of records, or one of balanced"),
        ({"rows": -1}, "rows = -1 must be"),
        ({"rows": True}, "rows = true must be"),
        ({"rows": Raw("2.5")}, "rows = 2.5 must be"),
        ({"rows": "many"}, "rows = 'many' must be"),
        ({"rows": 5, "method": "dgm"}, "rows = 5 must be left out: method = 'dgm'"),
        ({"rows": 5, "method": "gram"}, "rows beside method = 'gram'"),
        ({"ranges": {"a": "unit"}, "method": "gram"}, "[ranges] beside method = 'gram'"),
        ({"ranges": {"c": "unit"}}, "unknown key 'c'"),
        ({"ranges": {"a": "tight"}}, "a = 'tight' must be one of signed, unit"),
        ({"method": "jl"}, "method = 'jl' must be one of rmgm, dgm, gram"),
        ({"sigma": "old"}, "sigma = 'old' must be one of analytic, classical"),
        ({"epsilon": 2, "sigma": "classical"}, "epsilon = 2 must be at most 1 with sigma = 'classical'"),
        ({"epsilon": 0}, "epsilon = 0 must be"),
        ({"epsilon": Raw("nan")}, "epsilon = nan must be"),
        ({"delta": 0}, "delta = 0 must be"),
        ({"delta": 1}, "delta = 1 must be"),
        ({"dealer": {"name": "dealer"}}, "[dealer] beside method = 'rmgm', which has no dealer; leave the table out"),
        ({"dealer": None, "method": "gram"}, "the table [dealer] is missing"),
        ({"noise": "joint"}, "unknown key 'noise'"),
        ({"label": {"party": "b", "column": "z"}}, "column = 'z' must be one of w, y"),
    ],
)
def test_faults_are_told_in_one_line(tmp_path: Path, choices: dict[str, Any], said: str) -> None:
    with pytest.raises(JobError) as caught:
        load_job(job_with(tmp_path, **choices))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_delta_is_needed(tmp_path: Path) -> None:
    path = job_with(tmp_path)
    path.write_text(path.read_text().replace(', "delta" = 1e-5', ""))
    with pytest.raises(JobError, match="delta is missing"):
        load_job(path)


def test_more_rows_than_records_are_refused_when_the_table_is_known(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("person,u,v\n" + "".join(f"{i},1,1\n" for i in range(20)))
    task = task_of(job_with(tmp_path, rows=21))
    with pytest.raises(InputError, match="rows = 21: must be a whole number from 1 to the number of records, 20"):
        task.prepare("a")


def test_values_outside_their_bounds_are_refused_before_any_connection(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("person,u,v\n" + "".join(f"{i},{i},1\n" for i in range(20)))
    with pytest.raises(InputError, match="u is outside its bounds"):
        task_of(job_with(tmp_path)).prepare("a")


@pytest.mark.parametrize("method", ["rmgm", "dgm", "gram"])
def test_everything_is_known_before_a_run(tmp_path: Path, method: str) -> None:
    job = load_job(job_with(tmp_path, method=method))
    outlook = job.task.outlook(job.cast, 10_000)
    assert full_table(outlook.table) == full_table(script(method).__doc__ or "")
    assert outlook.forecast is not None
    if method == "dgm":
        assert outlook.forecast.sent("a") == pytest.approx(2 * 8 * 10_000, rel=0.01)
    assert outlook.guarantee.worst(1).delta == Fraction(1, 10**5)
    assert outlook.noise.startswith("noise: where the features" if method == "rmgm" else "noise: ")


def test_a_column_that_no_released_file_could_hold_is_refused_before_it_costs_anything(tmp_path: Path) -> None:
    path = job_with(tmp_path)
    path.write_text(path.read_text().replace('"u"', '"(ones)"'))
    with pytest.raises(JobError, match=r"job.toml: \(ones\) is what released files call their column of ones; rename"):
        load_job(path)


# who failed a toss


def test_who_failed_a_toss_is_kept_out_of_later_jobs(tmp_path: Path) -> None:
    path = job_with(tmp_path)
    parties = task_of(path).parties
    check_excluded(path, parties)
    failed_toss(path, parties, "b")
    with pytest.raises(JobError, match=r"job.excluded: b is excluded \(it was late: nothing is .*\); leave it out of"):
        check_excluded(path, parties)
    (tmp_path / "job.excluded").write_text("\n")
    check_excluded(path, parties)


def failed_toss(path: Path, parties: Sequence[Endpoint], *at_fault: str) -> None:
    with pytest.raises(CoinTossError, match="it was late"), excluding(path, parties):
        raise CoinTossError(at_fault, "it was late")


def test_whoever_was_not_seen_at_fault_is_not_listed(tmp_path: Path) -> None:
    path = job_with(tmp_path)
    parties = task_of(path).parties
    failed_toss(path, parties)
    with pytest.raises(PeerError, match="b stopped"), excluding(path, parties):
        raise PeerError("b stopped")
    assert not (tmp_path / "job.excluded").exists()
    failed_toss(path, parties, "a", "b", "nobody")
    assert [line.split()[0] for line in (tmp_path / "job.excluded").read_text().splitlines()] == ["a", "b"]


def test_a_list_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    path, listed = job_with(tmp_path), tmp_path / "job.excluded"
    listed.write_bytes(b"b - caf\xe9\n")
    with pytest.raises(JobError, match=r"job.excluded: cannot be read \(it is no UTF-8 text\)"):
        check_excluded(path, task_of(path).parties)
    listed.unlink()
    listed.mkdir()
    with pytest.raises(JobError, match=r"job.excluded: cannot be read \(Is a directory\)"):
        check_excluded(path, task_of(path).parties)
    listed.rmdir()
    listed.write_text("b - \x1b[2J\x07gone\n")
    with pytest.raises(JobError, match=r"b is excluded \(\[2Jgone\)"):
        check_excluded(path, task_of(path).parties)


@pytest.mark.parametrize(
    "line", ["b", "b -", "# b - late", "B - late", "b, - late", f"b {'A' * 64} late", "b AB:CD late"]
)
def test_a_line_that_keeps_nobody_out_is_not_passed_over(tmp_path: Path, line: str) -> None:
    path = job_with(tmp_path)
    (tmp_path / "job.excluded").write_text(f"carol - gone\n{line}\n")
    with pytest.raises(JobError, match=r"job.excluded: line 2 is not NAME FINGERPRINT REASON .*mend or delete it"):
        check_excluded(path, task_of(path).parties)


@pytest.mark.parametrize("text", ["\ufeffb - late", "b\t-\tlate\n", "  b  - late\r\n", "\n\nb - late"])
def test_an_editor_that_writes_a_list_its_own_way_frees_nobody(tmp_path: Path, text: str) -> None:
    path = job_with(tmp_path)
    (tmp_path / "job.excluded").write_bytes(text.encode())
    with pytest.raises(JobError, match=r"b is excluded \(late\)"):
        check_excluded(path, task_of(path).parties)


def test_a_list_without_a_last_line_end_keeps_both_names_apart(tmp_path: Path) -> None:
    path = job_with(tmp_path)
    parties = task_of(path).parties
    (tmp_path / "job.excluded").write_text("carol - gone")
    failed_toss(path, parties, "b")
    with pytest.raises(JobError, match="b is excluded"):
        check_excluded(path, parties)


def test_a_list_that_cannot_be_written_leaves_the_error_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = job_with(tmp_path)
    (tmp_path / "job.excluded").mkdir()
    failed_toss(path, task_of(path).parties, "b")
    said = capsys.readouterr().err
    assert said.endswith("job.excluded: cannot be written (Is a directory); keep b out of later jobs\n")
    (tmp_path / "job.excluded").rmdir()
    failed_toss(path, [Endpoint("b", None, tmp_path / "gone.crt")], "b")
    assert "gone.crt: does not exist" in (said := capsys.readouterr().err) and "keep b out of later jobs" in said


def test_another_name_on_the_same_certificate_does_not_help(tmp_path: Path) -> None:
    _, certificate = make_keys("mallory", tmp_path)
    _, other = make_keys("carol", tmp_path)
    path = tmp_path / "job.toml"
    failed_toss(path, [Endpoint("mallory", None, certificate)], "mallory")
    with pytest.raises(JobError, match="nina is excluded"):
        check_excluded(path, [Endpoint("carol", None, other), Endpoint("nina", None, certificate)])
    with pytest.raises(JobError, match="mallory is excluded"):
        check_excluded(path, [Endpoint("mallory", None, other)])
    check_excluded(path, [Endpoint("carol", None, other), Endpoint("nina", None, None)])
