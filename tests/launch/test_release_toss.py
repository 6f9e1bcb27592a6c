"""A whole data-release job of two parties in threads: an honest run, and a party that opens another value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from launch.job import load_job
from launch.jobfile.fields import JobError
from launch.tasks.data_release import RELEASED
from launch.tasks.exclusions import check_excluded, excluding
from smpc.coin_tossing import CoinTossError, _Toss
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.transcript import OPENING
from tests.harness import Participants
from tests.launch.jobs import Raw, valid_job, write_job


def job_of(folder: Path) -> Path:
    job = valid_job()
    job["job"] = {"name": "test", "protocol": "data_release", "epsilon": 1, "delta": Raw("1e-5"), "rows": 20}
    del job["dealer"]
    for party, names in ((0, ("p0", "u,v")), (1, ("p1", "w,y"))):
        job["party"][party]["name"] = names[0]
        lines = [f"{i},{i % 2},{i % 3}" for i in range(50)]
        (folder / job["party"][party]["table"]).write_text("\n".join([f"person,{names[1]}", *lines]) + "\n")
    job["label"]["party"] = "p1"
    return write_job(folder, job)


def outcomes(path: Path) -> dict[str, Any]:
    """What everybody's part in the job returns or raises."""
    job = load_job(path)

    def work(name: str) -> Any:
        mine = job.task.prepare(name)

        def part(network: Network, agreement: Agreement) -> Any:
            with excluding(path, job.task.parties):
                return job.task.run(job.cast, network, agreement, mine)

        return part

    facts = {name: {"rows": "50"} for name in ("p0", "p1")}
    everyone = Participants(job.cast, facts=facts, deadline=5.0)
    try:
        return everyone.outcomes({name: work(name) for name in job.cast.everyone})
    finally:
        everyone.close(PeerError("over"))


def test_an_honest_job_gives_everybody_the_model_and_its_own_part(tmp_path: Path) -> None:
    found = outcomes(job_of(tmp_path))
    assert len({files["model.json"] for files in found.values()}) == 1
    assert all(files[RELEASED].startswith(b"PAR1") for files in found.values())
    assert len(found["server"][RELEASED]) > 0 and found["p0"][RELEASED] != found["p1"][RELEASED]
    assert not list(tmp_path.glob("*.excluded"))


def test_who_opens_another_value_ends_on_the_others_list_and_in_no_later_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = job_of(tmp_path)
    send = _Toss._send

    def cheating(toss: _Toss, step: str, message: bytes) -> float:
        if toss._network.me == "p1" and step == OPENING:
            message = bytes(len(message))
        return send(toss, step, message)

    monkeypatch.setattr(_Toss, "_send", cheating)
    found = outcomes(path)
    assert isinstance(found["p0"], CoinTossError) and found["p0"].at_fault == ("p1",)
    assert all(isinstance(error, PeerError) for error in found.values())  # nobody has files
    line = (tmp_path / "job.excluded").read_text()
    assert line.startswith("p1 - p1 opened another value than it had committed to")
    monkeypatch.undo()
    with pytest.raises(JobError, match="p1 is excluded"):
        check_excluded(path, load_job(path).task.parties)
    (tmp_path / "job.excluded").unlink()
    assert set(outcomes(path)) == {"p0", "p1", "server"}
