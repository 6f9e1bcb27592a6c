"""Tables and finished runs that the launch tests share."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.launch.jobs import write_job
from tests.launch.processes import PATIENCE, SMPC, Shells, environment, job_of, participants, write_tables

ROWS = 3000
CLOSE = 10**6  # an epsilon that protects nobody: what is released is the exact model up to rounding


@dataclass
class Finished:
    """A job that ended well and its folder; `out` by participant, "run" for `smpc run`."""

    job: dict[str, Any]
    tables: dict[str, Path]
    out: dict[str, Path]
    printed: str


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """`smpc run` over three parties, from a job file for five hosts whose certificates are not here."""
    folder = tmp_path_factory.mktemp("run")
    tables = write_tables(folder, ROWS, 3)
    job = job_of(tables, epsilon=CLOSE)
    for number, endpoint in enumerate(participants(job), 1):
        endpoint |= {"address": f"10.0.0.{number}:7001", "certificate": f"{endpoint['name']}.crt"}
    done = subprocess.run(
        [*SMPC, "run", str(write_job(folder, job)), "--out", "results"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert not list((folder / "tmp").iterdir())
    return Finished(job, tables, {"run": folder / "results"}, done.stdout)


@pytest.fixture(scope="session")
def finished_shells(finished_run: Finished, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The same job in five shells on five addresses."""
    with Shells(tmp_path_factory.mktemp("shells"), job_of(finished_run.tables, epsilon=CLOSE)) as shells:
        shells.start()
        shells.all_end(shells.names, PATIENCE)
        assert {shells.code(name) for name in shells.names} == {0}, [shells.said(name) for name in shells.names]
        out = {name: folder / "out" for name, folder in shells.folders.items()}
        return Finished(shells.job, finished_run.tables, out, "")
