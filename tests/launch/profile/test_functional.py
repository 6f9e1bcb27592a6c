"""`smpc profile`: sizes as they are spelled, jobs of other sizes, and numbers that are measured or marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.cli import main
from launch.job import load_job
from launch.profile.sizes import backends, sizes
from launch.tasks.ensemble import EnsembleTask
from launch.tasks.functional import FunctionalTask
from launch.tasks.functional_trial import FunctionalTrial
from launch.tasks.made_up import table
from launch.tasks.split import SplitTask
from smpc.errors import InputError
from tests.launch.jobs import valid_job, write_job
from tests.launch.profile.lines import lines_of


def task_of(folder: Path, **job: Any) -> FunctionalTask:
    written = valid_job()
    written["job"] |= job
    task = load_job(write_job(folder, written)).task
    assert isinstance(task, FunctionalTask)
    return task


def test_sizes() -> None:
    known = FunctionalTask.SIZES
    assert sizes([], known) == {"rows": (10_000, 100_000, 1_000_000), "parties": (2, 3)}
    assert sizes(["rows=20000,1e4,1e4", "parties=2,5"], known) == {"rows": (10_000, 20_000), "parties": (2, 5)}
    assert sizes(["voters=7"], EnsembleTask.SIZES)["voters"] == (7,)
    assert set(sizes([], SplitTask.SIZES)) == {"rows"}
    assert backends("clear,crypten", FunctionalTask.BACKENDS) == ("clear", "crypten")


@pytest.mark.parametrize(
    "option",
    [
        "rows",
        "rows=",
        "rows=1.5",
        "rows=1",
        "rows=nan",
        "rows=inf",
        "rows=1e10",
        "rows=1e4,x",
        "parties=1",
        "parties=65",
        "columns=3",
    ],
)
def test_bad_sizes(option: str) -> None:
    with pytest.raises(InputError, match=f"--vary {option}"):
        sizes([option], FunctionalTask.SIZES)


def test_what_a_protocol_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="each once"):
        sizes(["rows=5", "rows=6"], FunctionalTask.SIZES)
    with pytest.raises(InputError, match="parties=2: must be rows=N,N for this protocol"):
        sizes(["parties=2"], SplitTask.SIZES)
    with pytest.raises(InputError, match="parties=4: '4' must be a whole number from 2 to 3"):
        sizes(["parties=4"], EnsembleTask.SIZES)
    with pytest.raises(InputError, match="must be some of crypten,bgn,clear"):
        backends("crypten,torch", FunctionalTask.BACKENDS)
    with pytest.raises(InputError, match="bgn: must be some of crypten,clear for this protocol"):
        backends("bgn", SplitTask.BACKENDS)


def test_parties_repeat_the_jobs_in_turn(tmp_path: Path) -> None:
    given = task_of(tmp_path)
    task = FunctionalTrial.of(given, 50, 5, "crypten").task
    named = {name: [c.name for c in columns] for name, columns in task.features.items()}
    assert named == {"p1": ["u", "v"], "p2": ["w"], "p3": ["u 1", "v 1"], "p4": ["w 1"], "p5": ["u 2", "v 2"]}
    assert (task.label_party, task.parties[1].columns[-1].name) == ("p2", "y")
    assert task.plan(50).schema.widths == {"p1": 2, "p2": 2, "p3": 2, "p4": 1, "p5": 2}
    assert task.backend.keys is None
    bgn = FunctionalTrial.of(given, 50, 2, "bgn")
    assert bgn.backend.keys is not None and bgn.cast.dealer is None


def test_made_up_tables_are_usable(tmp_path: Path) -> None:
    columns = task_of(tmp_path).parties[1].columns
    made = table(columns, 1000, whole=["y"])
    assert made.shape == (2, 1000)
    for row, column in zip(made, columns, strict=True):
        assert column.low <= row.min() < column.middle < row.max() <= column.high
    assert set(made[1]) == {0, 1, 2, 3}


def test_in_the_clear(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write_job(tmp_path, valid_job()), tmp_path / "out"
    options = ["--vary", "rows=100,1000,10000", "--vary", "parties=3", "--backend", "clear", "--run-up-to", "1000"]
    assert main(["profile", str(path), *options, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    found = lines_of(out)
    assert [(line["rows"], line["extrapolated"]) for line in found] == [
        ("100", "False"),
        ("1000", "False"),
        ("10000", "True"),
    ]
    assert float(found[2]["seconds"]) == pytest.approx(10 * float(found[1]["seconds"]))
    assert "10,000 *" in printed and "* extrapolated" in printed
    assert main(["profile", str(path), *options, "--out", str(out)]) == 1
    assert "not an empty folder" in capsys.readouterr().err


def test_sizes_that_are_all_too_large_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_job(tmp_path, valid_job())
    options = ["--vary", "rows=5000", "--backend", "clear", "--run-up-to", "1000", "--out", str(tmp_path / "out")]
    assert main(["profile", str(path), *options]) == 1
    assert "--run-up-to 1000" in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.mpc
def test_processes_measure_themselves(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--vary", "rows=2000,20000", "--vary", "parties=2", "--repeats", "2", "--out", str(out)]
    assert main(["profile", str(write_job(tmp_path, valid_job())), *options]) == 0
    found = lines_of(out)
    assert [line["participant"] for line in found] == ["p1", "p2", "server"] * 2
    for line in found:
        counted, predicted = int(line["bytes_sent"]), int(line["bytes_predicted"])
        assert predicted > 0 and abs(counted - predicted) <= predicted / 100
        assert float(line["least"]) <= float(line["seconds"]) <= float(line["most"])
        parts = sum(float(line[name]) for name in ("local", "waited"))
        assert 0 < parts <= 1.01 * float(line["seconds"]) and int(line["rounds"]) >= 2
    assert np.isclose(int(found[3]["bytes_sent"]) / int(found[0]["bytes_sent"]), 10, rtol=0.1)


def test_columns_of_text_are_made_up_and_repeated_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = valid_job()
    job["party"][0]["columns"] = {"u": [0, 1], "region": ["north", "south", "west"]}
    path, out = write_job(tmp_path, job), tmp_path / "out"
    options = ["--vary", "rows=200", "--vary", "parties=3,4", "--backend", "clear", "--out", str(out)]
    assert main(["profile", str(path), *options]) == 0, capsys.readouterr().err
    task = load_job(path).task
    assert isinstance(task, FunctionalTask)
    made = table(task.parties[0].columns, 3000)
    counts = [np.count_nonzero(made[1]), np.count_nonzero(made[2]), np.count_nonzero(made[1:].sum(axis=0) == 0)]
    assert all(900 < count < 1100 for count in counts) and set(np.unique(made[1:])) == {0, 1}
