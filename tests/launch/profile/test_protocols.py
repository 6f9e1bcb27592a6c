"""`smpc profile` of the other protocols: which sizes they have, in the clear, and their bytes in real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch.cli import main
from tests.launch.jobs import write_job
from tests.launch.profile.lines import lines_of
from tests.launch.test_ensemble import write_job as ensemble_job
from tests.launch.test_release_job import job_with
from tests.launch.test_split_job import split_job

Job = Callable[[Path], Path]


def release(method: str) -> Job:
    return lambda folder: job_with(folder, method=method)


def split(**choices: Any) -> Job:
    def write(folder: Path) -> Path:
        job = split_job()
        job["job"] |= choices
        return write_job(folder, job)

    return write


def ensemble(kind: str) -> Job:
    return lambda folder: ensemble_job(folder, release=kind)


JOBS = {
    "rmgm": (release("rmgm"), ["rows=200,2000", "parties=3"]),
    "dgm": (release("dgm"), ["rows=200,2000", "parties=2"]),
    "gram": (release("gram"), ["rows=200,2000", "parties=3"]),
    "split": (split(), ["rows=100,1000"]),
    "independent": (split(coupling="independent"), ["rows=100,1000"]),
    "one shot": (split(one_shot=True), ["rows=100,1000"]),
    "statistic": (ensemble("statistic"), ["rows=50,500", "parties=2", "voters=3,6"]),
    "soft": (ensemble("soft"), ["rows=50,500", "parties=3", "voters=4"]),
    "majority": (ensemble("majority"), ["rows=50,500", "parties=2", "voters=4"]),
}


def profiled(name: str, folder: Path, *options: str) -> list[dict[str, str]]:
    make, vary = JOBS[name]
    varied = [word for value in vary for word in ("--vary", value)]
    assert main(["profile", str(make(folder)), *varied, *options, "--out", str(folder / "out")]) == 0
    return lines_of(folder / "out")


@pytest.mark.parametrize("name", JOBS)
def test_in_the_clear_and_above_it(tmp_path: Path, name: str) -> None:
    largest = int(JOBS[name][1][0].split(",")[1])
    found = profiled(name, tmp_path, "--backend", "clear", "--repeats", "1", "--run-up-to", str(largest - 1))
    assert {line["participant"] for line in found} == {"all in one"}
    for small, large in zip(found[::2], found[1::2], strict=True):
        assert (small["extrapolated"], large["extrapolated"]) == ("False", "True")
        assert int(large["rows"]) == 10 * int(small["rows"])
        assert float(large["seconds"]) == pytest.approx(10 * float(small["seconds"]))
    sizes = {option.split("=")[0] for option in JOBS[name][1]}
    assert sizes == set(found[0]) & {"rows", "parties", "voters"}


@pytest.mark.mpc
@pytest.mark.parametrize("name", ["rmgm", "gram", "split", "one shot", "statistic", "majority"])
def test_bytes_are_those_of_the_formulas(tmp_path: Path, name: str) -> None:
    found = profiled(name, tmp_path, "--repeats", "2")
    assert sum(int(line["bytes_sent"]) for line in found) > 0
    for line in found:
        counted, predicted = int(line["bytes_sent"]), int(line["bytes_predicted"])
        # later requests to the dealer have longer numbers
        assert abs(counted - predicted) <= predicted / 100 + 20, line


def test_a_protocol_with_fixed_parties_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = split()(tmp_path)
    assert main(["profile", str(path), "--vary", "parties=3", "--out", str(tmp_path / "out")]) == 1
    told = "smpc: --vary parties=3: must be rows=N,N for this protocol, each once\n"
    assert capsys.readouterr().err == told and not (tmp_path / "out").exists()
