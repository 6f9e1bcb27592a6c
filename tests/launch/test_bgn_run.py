"""Whole jobs on the bgn backend in real processes, in every mode: `smpc run`, and `smpc party` on own addresses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.job import load_job
from launch.tables.table import read_table
from mechanisms.guarantee import Guarantee
from protocols.functional import protocol as functional
from smpc.bgn import linear_mode, pair_mode, threshold_mode
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.transcript import table
from smpc.values import Held
from tests.launch.bgn_jobs import bgn_job_of
from tests.launch.jobs import write_job
from tests.launch.processes import PATIENCE, SMPC, Shells, environment, write_tables

pytestmark = pytest.mark.mpc

ROWS = 300
CLOSE = 10**6  # an epsilon that protects nobody: what is released is the exact model up to rounding
PARTIES = ("p1", "p2", "p3")
MODES: dict[str, tuple[dict[str, Any], Any]] = {
    "pair": ({"mode": "pair"}, pair_mode),
    "linear": ({"mode": "linear"}, linear_mode),
    "3 of 3": ({"mode": "threshold"}, threshold_mode),
    "2 of 3": ({"mode": "threshold", "threshold": 2}, threshold_mode),
}


def read(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("tables"), ROWS, 3)


def smpc(folder: Path, job: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [*SMPC, "run", str(write_job(folder, job)), "--out", "results"]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.mark.parametrize("name", MODES)
def test_a_run_in_every_mode(name: str, tables: dict[str, Path], tmp_path: Path) -> None:
    keys, module = MODES[name]
    done = smpc(tmp_path, bgn_job_of(tables, epsilon=CLOSE, job={**keys, "fraction_bits": 11}))
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr  # formulas against sockets
    out = tmp_path / "results"
    assert {"cost.json", "guarantee.json", "model.json", "transcript.jsonl"} <= {path.name for path in out.iterdir()}
    job = load_job(tmp_path / "job.toml")
    plan = job.task.plan(ROWS)
    columns = {spec.name: Held(spec.name, read_table(spec, clip=False).columns) for spec in job.task.parties}
    model = read(out / "model.json")
    expected = functional.fit(ClearSession(Cast(PARTIES)), columns, plan).values
    np.testing.assert_allclose(list(model["coefficients"].values()), expected, atol=2e-3)
    assert model["fraction_bits"] == plan.bits
    assert Guarantee.from_json((out / "guarantee.json").read_text()) == plan.guarantee(job.cast)
    lines = [json.loads(line) for line in (out / "transcript.jsonl").read_text().splitlines()]
    assert [(f"{line['sender']} -> {line['receiver']}", line["message"]) for line in lines] == table(module.__doc__)
    reports = read(out / "cost.json")["participants"]
    assert list(reports) == [*PARTIES, "server"]
    for party, report in reports.items():
        assert report["predicted"] == report["counted"], party
        assert set(report["predicted"]) == {"keys", "product", "opening", "whole protocol"}
        assert report["seconds"]["keys"] >= 0


def test_parties_in_shells_of_their_own_end_with_the_same_files(tables: dict[str, Path], tmp_path: Path) -> None:
    with Shells(tmp_path, bgn_job_of(tables, job={"mode": "threshold", "threshold": 2})) as shells:
        assert shells.names == [*PARTIES, "server"]
        shells.start()
        shells.all_end(shells.names, PATIENCE)
        assert {shells.code(name) for name in shells.names} == {0}, [shells.said(name) for name in shells.names]
        for file in ("model.json", "guarantee.json", "transcript.jsonl"):
            assert len({(shells.folders[name] / "out" / file).read_bytes() for name in shells.names}) == 1


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({"mode": "linear", "threshold": None}, "mode: p1 has threshold, p2 has linear"),
        ({"threshold": 2}, "threshold: p1 has all parties, p2 has 2"),
    ],
)
def test_another_mode_shows_both_sides(own: dict[str, Any], told: str, tables: dict[str, Path], tmp_path: Path) -> None:
    with Shells(tmp_path, bgn_job_of(tables, job={"mode": "threshold"}, start_deadline=60)) as shells:
        mine = {key: value for key, value in {**shells.job["job"], **own}.items() if value is not None}
        write_job(shells.folders["p2"], {**shells.job, "job": mine})
        shells.start()
        shells.all_end(shells.names, PATIENCE)
        for name in shells.names:
            assert f"the participants do not run the same job: {told}" in shells.line(name)
        assert shells.leftovers() == []


def test_a_window_that_is_too_small_is_told_before_any_connection(tables: dict[str, Path], tmp_path: Path) -> None:
    done = smpc(tmp_path, bgn_job_of(tables, epsilon=CLOSE, job={"fraction_bits": 20}))
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("smpc: ")]
    assert done.returncode == 1 and not (tmp_path / "results").exists()
    assert line.startswith("smpc: p1: fraction_bits = 20: a sum over 300 rows with its noise can leave the window that")
    assert line.endswith("(2^42); fraction_bits = 16 fits, or at most 3 rows")


def test_a_ledger_is_charged_for_the_coalitions_that_cannot_open_everything(
    tables: dict[str, Path], tmp_path: Path
) -> None:
    job = bgn_job_of(tables, job={"mode": "threshold", "threshold": 2})
    job["party"][1] |= {"ledger": str(tmp_path / "ledger.db"), "data_set": "people"}
    subprocess.run([*SMPC, "ledger", "cap", "ledger.db", "people", "1.5"], cwd=tmp_path, check=True)
    assert smpc(tmp_path, job).returncode == 0
    shown = subprocess.run(
        [*SMPC, "ledger", "show", "ledger.db"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "people" in shown.stdout and "1 of 1.5" in shown.stdout.replace("epsilon ", "")
