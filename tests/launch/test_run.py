"""Whole jobs in real processes: `smpc run`, and five `smpc party` on five addresses with keys of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from launch.job import load_job
from launch.tables.table import read_table
from launch.tasks.functional import FunctionalTask
from mechanisms.guarantee import Guarantee
from protocols.functional import protocol as functional
from protocols.schema import Floats
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.transcript import table
from smpc.values import Held
from tests.launch.conftest import ROWS, Finished
from tests.launch.jobs import write_job

pytestmark = pytest.mark.mpc

PARTIES = ("p1", "p2", "p3")
EVERYBODY = (*PARTIES, "server", "dealer")
FILES = ["cost.json", "guarantee.json", "model.json", "transcript.jsonl"]
NAMES = ["intercept", *(f"{party}_{i}" for party in PARTIES for i in range(2))]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def least_squares(tables: dict[str, Path]) -> Floats:
    """Intercept and weights by NumPy from the parties' tables, joined on their ids."""
    columns = [np.ones(ROWS)]
    for name in PARTIES:
        file = pyarrow.parquet.read_table(tables[name]).sort_by("person")
        columns += [file[f"{name}_{i}"].to_numpy() for i in range(2)]
        if name == "p1":
            label = file["y"].to_numpy()
    result: Floats = np.linalg.lstsq(np.column_stack(columns), label, rcond=None)[0]
    return result


def test_run_writes_four_files_and_a_report_and_says_what_is_in_them(finished_run: Finished) -> None:
    out = finished_run.out["run"]
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, "report.html"])
    assert finished_run.printed.endswith("report: results/report.html\n")
    assert [path.name for path in out.parent.glob(".*")] == []
    model = read(out / "model.json")
    for name, value in model["coefficients"].items():
        assert f"{name} " in finished_run.printed and f"{value:.6g}" in finished_run.printed
    assert str(Guarantee.from_json((out / "guarantee.json").read_text())) in finished_run.printed


def test_model_is_the_least_squares_model_when_noise_is_negligible(finished_run: Finished) -> None:
    model = read(finished_run.out["run"] / "model.json")
    assert (model["job"], model["rows"], model["label"], model["loss"]) == ("test", ROWS, "y", "linear")
    assert list(model["coefficients"]) == NAMES
    np.testing.assert_allclose(list(model["coefficients"].values()), least_squares(finished_run.tables), atol=1e-3)


def test_model_is_that_of_the_clear_reference(finished_run: Finished, tmp_path: Path) -> None:
    task = load_job(write_job(tmp_path, finished_run.job)).task
    assert isinstance(task, FunctionalTask)
    plan = task.plan(ROWS)
    columns = {spec.name: Held(spec.name, read_table(spec, clip=False).columns) for spec in task.parties}
    release = functional.fit(ClearSession(Cast(PARTIES)), columns, plan)
    model = read(finished_run.out["run"] / "model.json")
    assert model["fraction_bits"] == plan.bits
    np.testing.assert_allclose(list(model["coefficients"].values()), release.values, atol=1e-4)
    assert Guarantee.from_json((finished_run.out["run"] / "guarantee.json").read_text()) == release.guarantee


def test_costs_of_everybody(finished_run: Finished) -> None:
    reports = read(finished_run.out["run"] / "cost.json")["participants"]
    assert list(reports) == list(EVERYBODY)
    for name in PARTIES:
        peers = set(EVERYBODY) - {name}
        assert set(reports[name]["bytes_sent"]) == peers and set(reports[name]["handshake_bytes"]) == peers
        for operation in ("product", "whole protocol"):
            counted, predicted = (reports[name][key][operation] for key in ("counted", "predicted"))
            assert abs(counted - predicted) <= predicted / 100
        counted = reports[name]["counted"]["product"]
        others = 3 * ROWS * 8 if name == "p1" else 2 * ROWS * 8  # p1 has the label too
        assert 2 * others < counted < 2 * others * 1.05  # to two partners, and not to server or dealer
        assert all(reports[name]["bytes_sent"][to] < 2000 for to in ("server", "dealer"))


def test_transcript_holds_no_payload(finished_run: Finished) -> None:
    lines = [json.loads(line) for line in (finished_run.out["run"] / "transcript.jsonl").read_text().splitlines()]
    roles = {"P_k", "P_l", "server", "dealer", "all"}
    for line in lines:
        assert set(line) == {"verb", "sender", "receiver", "message", "shape", "noise"}
        assert line["sender"] in roles and line["receiver"] in roles
        assert all(isinstance(size, int) for size in line["shape"]) and set(line["noise"]) <= set(PARTIES)
    steps = [(f"{line['sender']} -> {line['receiver']}", line["message"]) for line in lines]
    assert steps == table(functional._noise_on_shares.__doc__ or "")


def test_five_shells_end_with_the_same_files(finished_shells: Finished) -> None:
    assert set(finished_shells.out) == set(EVERYBODY)
    for name in ("model.json", "guarantee.json", "transcript.jsonl"):
        contents = {(finished_shells.out[who] / name).read_bytes() for who in EVERYBODY if who != "dealer"}
        assert len(contents) == 1, name
    for who in EVERYBODY:
        assert sorted(path.name for path in finished_shells.out[who].iterdir()) == (
            ["cost.json"] if who == "dealer" else sorted([*FILES, "report.html"])
        )
        said = (finished_shells.out[who].parent / "stderr").read_text()
        guarantee = str(Guarantee.from_json((finished_shells.out["server"] / "guarantee.json").read_text()))
        assert (guarantee in said) == said.endswith("report: out/report.html\n") == (who != "dealer")
        assert list(read(finished_shells.out[who] / "cost.json")["participants"]) == [who]


def test_five_shells_find_what_one_run_finds(finished_run: Finished, finished_shells: Finished) -> None:
    addresses = [endpoint["address"].partition(":")[0] for endpoint in finished_shells.job["party"]]
    assert addresses == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    alone, together = finished_run.out["run"], finished_shells.out["server"]
    for name in ("guarantee.json", "transcript.jsonl"):
        assert (alone / name).read_bytes() == (together / name).read_bytes()
    one, two = (list(read(out / "model.json")["coefficients"].values()) for out in (alone, together))
    np.testing.assert_allclose(one, two, atol=1e-4)
    assert one != two  # noise is never the same again
