"""`smpc init`: a job file from which only bounds are missing, and none of them read off the data."""

from __future__ import annotations

import re
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path

import pytest

from launch.cli import main
from launch.job import load_job
from launch.jobfile.fields import JobError
from launch.tasks.functional import FunctionalTask


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text('person,age,"body, mass"\n1,77,41.5\n2,31,19.25\n')
    (tmp_path / "b.csv").write_text("visits,person,ill\n13,1,0\n5,2,1\n")
    return tmp_path


def init(folder: Path, *more: str, label: str = "bob.ill") -> int:
    tables = ["--party", f"ann={folder / 'a.csv'}", "--party", f"bob={folder / 'b.csv'}"]
    return main(["init", str(folder / "job.toml"), *tables, "--label", label, "--id", "person", *more])


def filled(folder: Path) -> FunctionalTask:
    path = folder / "job.toml"
    path.write_text(path.read_text().replace("= []", "= [0, 100]"))
    task = load_job(path).task
    assert isinstance(task, FunctionalTask)
    return task


def test_a_job_to_fill_in(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert init(folder, "--epsilon", "0.5", "--loss", "logistic") == 0
    printed = capsys.readouterr().out
    assert "the bounds of 3 columns" in printed and f"smpc explain {folder / 'job.toml'}" in printed
    (folder / "a study").mkdir()
    tables = ["--party", f"ann={folder / 'a.csv'}", "--party", f"bob={folder / 'b.csv'}"]
    assert main(["init", f"{folder}/a study/job.toml", *tables, "--label", "bob.ill", "--id", "person"]) == 0
    assert f"`smpc explain '{folder}/a study/job.toml'`" in capsys.readouterr().out
    text = (folder / "job.toml").read_text()
    assert not re.search(r"77|41\.5|19\.25|13", text)  # nothing of the data
    with pytest.raises(JobError, match=r"age = \[\] must be \[low, high\]"):
        load_job(folder / "job.toml")
    task = filled(folder)
    assert (str(task.epsilon), task.options.loss, task.label_party, task.label.name) == (
        "1/2",
        "logistic",
        "bob",
        "ill",
    )
    assert {name: [c.name for c in columns] for name, columns in task.features.items()} == {
        "ann": ["age", "body, mass"],
        "bob": ["visits"],
    }
    assert (task.label.low, task.label.high) == (0, 1)
    assert [party.table for party in task.parties] == [folder / "a.csv", folder / "b.csv"]


def test_a_linear_job_has_no_bounds_at_all(folder: Path) -> None:
    assert init(folder, label="bob.visits") == 0
    assert (folder / "job.toml").read_text().count("= []") == 4
    assert filled(folder).options.loss == "linear"


@pytest.mark.parametrize(
    ("label", "wanted"),
    [
        ("bob.sick", "b.csv: column 'sick' is missing; the table has 'visits', 'person', 'ill'"),
        ("eve.ill", "--label eve.ill: eve is none of the parties ann, bob"),
        ("ill", "--label ill: must be NAME.COLUMN"),
    ],
)
def test_labels_that_are_not_there(folder: Path, capsys: pytest.CaptureFixture[str], label: str, wanted: str) -> None:
    assert init(folder, label=label) == 1
    assert capsys.readouterr().err.rstrip().endswith(wanted) and not (folder / "job.toml").exists()


def test_what_cannot_be_used_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, job = folder / "a.csv", folder / "job.toml"
    for parties, wanted in (
        ([f"ann={a}"], "needs two or more parties"),
        ([f"ann={a}", f"ann={a}"], "each name once"),
        ([f"ann={a}", f"Bob={a}"], "a name has small letters"),
        ([f"ann={a}", "bob"], "must be NAME=TABLE"),
        ([f"ann={a}", f"bob={folder / 'c.csv'}"], "c.csv: does not exist"),
    ):
        options = [part for text in parties for part in ("--party", text)]
        assert main(["init", str(job), *options, "--label", "ann.age", "--id", "person"]) == 1
        error = capsys.readouterr().err
        assert wanted in error and error.count("\n") == 1, error
        assert not job.exists()


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("person,age,age", "'age'"),
        (",person", "''"),  # the index that pandas writes
        ("person,\x1b[2J", r"'\x1b[2J'"),
        (f"person,{'x' * 65}", "'xxxx"),
    ],
)
def test_columns_that_no_job_takes_are_left_out_and_told(
    folder: Path, capsys: pytest.CaptureFixture[str], header: str, told: str
) -> None:
    (folder / "a.csv").write_text(f"{header},weight\n")
    assert init(folder) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"{folder / 'a.csv'}: left out, as no job takes such names: ") and told in first
    assert [column.name for column in filled(folder).features["ann"]] == ["weight"]


def test_a_label_or_id_that_no_job_takes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for header, wanted in (("person,ill,ill", "column 'ill' appears twice"), ("person,person,ill", "column 'person'")):
        (folder / "b.csv").write_text(f"{header}\n")
        assert init(folder) == 1 and wanted in capsys.readouterr().err
        assert not (folder / "job.toml").exists()


@pytest.mark.parametrize("name", ["server", "dealer"])
def test_a_party_called_as_another_participant(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    tables = ["--party", f"{name}={folder / 'a.csv'}", "--party", f"bob={folder / 'b.csv'}"]
    assert main(["init", str(folder / "job.toml"), *tables, "--label", "bob.ill", "--id", "person"]) == 1
    assert f"the job's {name} has this name; take another" in capsys.readouterr().err


def test_a_file_is_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.toml").write_text("mine")
    assert init(folder) == 1 and (folder / "job.toml").read_text() == "mine"
    assert "job.toml: File exists; name a new file" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "wanted"), [("1/3", "1/3"), ("2", "2"), ("0.25", "1/4")])
def test_epsilons(folder: Path, text: str, wanted: str) -> None:
    assert init(folder, "--epsilon", text) == 0
    assert str(filled(folder).epsilon) == wanted


@pytest.mark.parametrize("text", ["", "one", "1 # x", "-1", "1e9", "nan", "1\nloss = 2"])
def test_bad_epsilons(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert init(folder, f"--epsilon={text}") == 1
    assert "must be a number like 0.5, 2 or 1/3" in capsys.readouterr().err and not (folder / "job.toml").exists()


@pytest.mark.parametrize("text", ["0", "1/0", "51", "0/3"])
def test_an_epsilon_that_no_job_takes(folder: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert init(folder, f"--epsilon={text}") == 1
    assert "must be above 0 and up to 50" in capsys.readouterr().err and not (folder / "job.toml").exists()


def test_names_of_any_script(folder: Path) -> None:
    (folder / "a.csv").write_text("person,age \U0001f600,\u00fcber\n1,2,3\n2,3,4\n")
    assert init(folder) == 0
    text = (folder / "job.toml").read_text()
    assert "\U0001f600" in text and "\u007f" not in text


def test_a_full_disk_leaves_no_half_job(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file's last bytes find no room."""
    monkeypatch.setattr("launch.outputs.open", lambda *_, **__: full(folder / "job.toml"), raising=False)
    assert init(folder) == 1 and not (folder / "job.toml").exists()
    assert capsys.readouterr().err.endswith("job.toml: cannot be written (No space left on device); nothing was kept\n")


def full(path: Path) -> TextIOWrapper:
    """A new file on a disk that is full when it is closed."""
    path.touch()
    return TextIOWrapper(BufferedWriter(FileIO("/dev/full", "w")), encoding="utf-8")
