"""The list of excluded parties in whole jobs, of every protocol that tosses a coin."""

from __future__ import annotations

import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from launch import participant
from launch.job import load_job
from launch.jobfile.fields import JobError
from launch.participant import Endpoints, take_part
from launch.progress import Progress
from smpc.coin_tossing import CoinTossError
from smpc.engine.tls import Identity
from tests.harness import keys
from tests.launch.processes import PATIENCE, SMPC, environment
from tests.launch.test_ensemble import write_job
from tests.launch.test_release_toss import job_of

JOBS = {"data_release": job_of, "ensemble": write_job}


@pytest.mark.parametrize("protocol", JOBS)
def test_a_failed_toss_lists_the_party_and_the_next_job_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    job = load_job(JOBS[protocol](tmp_path))
    first, second = (party.name for party in job.task.parties)

    def run(*_: Any) -> dict[str, str]:
        raise CoinTossError([second], f"{second} opened another value")

    def part() -> None:
        endpoints, nobody = Endpoints({}, {}), cast(Any, dict)  # nobody connects
        take_part(job, Identity(first, *keys("p0")), endpoints, nobody, tmp_path / "out", Progress(first))

    started: list[str] = []
    monkeypatch.setattr(type(job.task), "run", run)
    monkeypatch.setattr(participant, "join", lambda *_, **__: (started.append("") or nullcontext(), None))
    monkeypatch.setattr(Progress, "watch", lambda *_: nullcontext())
    with pytest.raises(CoinTossError):
        part()
    listed = job.path.with_suffix(".excluded")
    line = listed.read_text()
    assert line.startswith(f"{second} ") and "opened another value" in line
    with pytest.raises(JobError, match=f"{second} is excluded"):
        part()
    assert len(started) == 1
    listed.unlink()
    with pytest.raises(CoinTossError):
        part()


@pytest.mark.mpc
@pytest.mark.parametrize("protocol", JOBS)
def test_a_job_with_an_excluded_party_ends_before_it_begins(tmp_path: Path, protocol: str) -> None:
    path = JOBS[protocol](tmp_path)
    name = load_job(path).task.parties[1].name
    path.with_suffix(".excluded").write_text(f"{name} - it was late\n")
    done = subprocess.run(
        [*SMPC, "run", str(path), "--out", "results"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1 and not (tmp_path / "results").exists()
    assert f"{name} is excluded (it was late); leave it out of the job, or delete its line" in done.stderr
    assert "Traceback" not in done.stderr
