"""Data releases as whole jobs in real processes, and models trained from their files alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from launch.cli import main
from mechanisms.guarantee import Guarantee
from protocols.data_release.released_file import read_released
from tests.launch.jobs import Raw, write_job
from tests.launch.processes import PATIENCE, SMPC, environment, job_of, write_tables

pytestmark = pytest.mark.mpc
ROWS = 3000


def release_job(folder: Path, method: str, **choices: Any) -> Path:
    job = job_of(write_tables(folder, ROWS, 3))
    job["job"] = {"name": "test", "protocol": "data_release", "method": method, "epsilon": 50, "delta": Raw("1e-5")}
    job["job"] |= choices
    if method != "gram":
        del job["dealer"]
    return write_job(folder, job)


def run(folder: Path, job: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SMPC, "run", str(job), "--out", "results"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("method", ["rmgm", "dgm", "gram"])
def test_a_job_releases_a_file_from_which_others_train(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    done = run(tmp_path, release_job(tmp_path, method))
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    out = tmp_path / "results"
    files = {"cost.json", "guarantee.json", "model.json", "released.parquet", "transcript.jsonl"}
    assert files <= {path.name for path in out.iterdir()}
    model = json.loads((out / "model.json").read_text())
    data = read_released([out / "released.parquet"])
    assert (data.method, data.records, data.label) == (method, ROWS, "y")
    assert dict(data.model) == model["coefficients"]
    assert Guarantee.from_json((out / "guarantee.json").read_text()) == data.guarantee
    assert str(data.guarantee) in done.stdout
    if method != "gram":
        assert "replace one record's columns at p1" in done.stdout
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(out / "released.parquet", elsewhere)
    assert main(["fit", str(elsewhere / "released.parquet"), "--out", str(elsewhere / "model.json")]) == 0
    said = capsys.readouterr().out
    again = json.loads((elsewhere / "model.json").read_text())["coefficients"]
    assert again == pytest.approx(model["coefficients"]) and str(data.guarantee) in said
    x = {f"p{p}_{i}": np.array([0.5, 0.1]) for p in (1, 2, 3) for i in range(2)}
    pyarrow.parquet.write_table(pyarrow.table(x), elsewhere / "new.parquet")
    assert main(["predict", str(elsewhere / "model.json"), str(elsewhere / "new.parquet")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["fit", str(out / "released.parquet"), "--out", str(elsewhere / "model.json")]) == 1
    assert "exists; name another file" in capsys.readouterr().err


def test_wrong_solver_and_no_release_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.parquet").write_text("no")
    assert main(["fit", str(tmp_path / "x.parquet")]) == 1
    assert capsys.readouterr().err.startswith(f"smpc: {tmp_path / 'x.parquet'}: cannot be read as a released data set")


def test_other_ids_stop_everybody_and_nothing_is_written(tmp_path: Path) -> None:
    job = release_job(tmp_path, "rmgm")
    file = tmp_path / "p2.parquet"
    table = pyarrow.parquet.read_table(file)
    people = table["person"].to_numpy().copy()
    people[people == 0] = 10**6
    pyarrow.parquet.write_table(table.set_column(0, "person", pyarrow.array(people)), file)
    done = run(tmp_path, job)
    assert done.returncode == 1 and "do not hold the same ids" in done.stderr
    assert not (tmp_path / "results").exists()
