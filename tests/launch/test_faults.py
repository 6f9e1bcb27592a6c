"""A participant that dies, freezes or differs ends everybody's job in time, with one line that names it, and no trace.

To hit the middle of a product for certain, the dealer is held back (stopped for a moment): no party gets on without it.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from launch.keys import make_keys
from launch.tasks.own_table import SAME_IDS
from tests.harness import cause
from tests.launch.jobs import write_job
from tests.launch.processes import Run, Shells, State, alive, job_of, participants, waiting, write_tables

pytestmark = pytest.mark.mpc

DEADLINE = 6.0  # where silence is tested
LONG = 90.0  # where it is not: whoever is killed is missed at once
SLACK = 25.0  # seconds beside the deadline: unloaded it takes one; five processes may share busy cores with others
START = 10.0
ROWS = 300_000
STEP = re.compile(r" at '[^']+'$")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("tables"), ROWS, 3)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("small"), 500, 2)


@pytest.fixture
def shells(request: pytest.FixtureRequest, tables: dict[str, Path], tmp_path: Path) -> Iterator[Shells]:
    """Five participants that have found each other."""
    deadline = getattr(request, "param", LONG)
    with Shells(tmp_path, job_of(tables, deadline=deadline, start_deadline=60)) as shells:
        shells.start()
        for name in shells.names:
            shells.until(name, connected)
        yield shells


def connected(state: State) -> bool:
    return state[0] in ("handshake", "row ids") or state[0].startswith(("gram", "reveal", "request"))


def hold(shells: Shells, name: str) -> None:
    os.kill(shells.processes[name].pid, signal.SIGSTOP)


def release(shells: Shells, name: str) -> None:
    os.kill(shells.processes[name].pid, signal.SIGCONT)


def into_the_product(shells: Shells) -> None:
    """Stop the dealer and wait until all others miss it: p2 and p3 its corrections, p1 and the server what follows."""
    hold(shells, "dealer")
    for name in ("p1", "p2", "p3", "server"):
        shells.until(name, lambda state: state[0].startswith(("gram", "reveal", "publish")))
    assert shells.states["p2"][-1][0].startswith("gram")


def lines_of(shells: Shells, names: list[str]) -> list[str]:
    """The last lines on the terminals of participants, all of which failed."""
    assert {shells.code(name) for name in names} == {1}, [shells.said(name) for name in names]
    lines = [shells.line(name) for name in names]
    assert all(line.startswith("smpc: ") and line.isprintable() for line in lines), lines
    return [line.removeprefix("smpc: ") for line in lines]


@pytest.mark.parametrize("victim", ["p2", "server", "dealer"])
def test_a_killed_participant_is_named_by_all_others(shells: Shells, victim: str) -> None:
    into_the_product(shells)
    others = [name for name in shells.names if name != victim]
    shells.processes[victim].kill()
    release(shells, "dealer")
    shells.all_end(others, SLACK)
    for line in lines_of(shells, others):
        assert re.search(rf"\b{victim}: connection (closed before the end of the job|lost \(.*\)) at '[^']+'$", line), (
            line
        )
    assert shells.leftovers() == []


@pytest.mark.parametrize("shells", [DEADLINE], indirect=True)
@pytest.mark.parametrize("victim", ["p2", "dealer"])
def test_a_frozen_participant_is_named_by_all_others(shells: Shells, victim: str) -> None:
    hold(shells, victim)
    start = time.monotonic()
    others = [name for name in shells.names if name != victim]
    shells.all_end(others, DEADLINE + SLACK)
    assert time.monotonic() - start > DEADLINE / 2  # it was given time to come back
    for line in lines_of(shells, others):
        assert re.search(rf"\b{victim} is silent for {DEADLINE:g} s at '[^']+'$", line), line
    release(shells, victim)  # whoever comes back finds the job over
    shells.all_end([victim], DEADLINE + SLACK)
    (line,) = lines_of(shells, [victim])
    assert STEP.search(line), line
    assert shells.leftovers() == []


@pytest.mark.parametrize("shells", [DEADLINE], indirect=True)
def test_a_short_pause_is_no_fault(shells: Shells) -> None:
    hold(shells, "p2")
    time.sleep(DEADLINE / 4)
    release(shells, "p2")
    shells.all_end(shells.names, 60)
    assert {shells.code(name) for name in shells.names} == {0}
    assert all((folder / "out" / "cost.json").exists() for folder in shells.folders.values())


def test_an_interrupted_participant_says_goodbye(shells: Shells) -> None:
    into_the_product(shells)
    os.kill(shells.processes["p2"].pid, signal.SIGINT)
    release(shells, "dealer")
    shells.all_end(shells.names, SLACK)
    assert shells.code("p2") == 130 and shells.line("p2") == "smpc: interrupted"
    for line in lines_of(shells, [name for name in shells.names if name != "p2"]):
        # struck in the middle of a send it can say nothing more on that connection
        assert re.search(r"\bp2( stopped|: connection closed before the end of the job) at '[^']+'$", line), line
    assert shells.leftovers() == []


def pair(folder: Path, small: dict[str, Path], **network: float) -> Shells:
    """Two parties with tables of their own, server and dealer."""
    shells = Shells(folder, job_of(small, deadline=DEADLINE, **{"start_deadline": 60, **network}))
    for name, path in small.items():
        (shells.folders[name] / path.name).write_bytes(path.read_bytes())
    return shells


def own_job(shells: Shells, name: str, change: dict[str, Any]) -> None:
    """Give one participant a job file that differs in [job]."""
    write_job(shells.folders[name], {**shells.job, "job": {**shells.job["job"], **change}})


def own_table(shells: Shells, name: str, table: pa.Table) -> None:
    """Give one party another table."""
    path = shells.folders[name] / "own.parquet"
    pa.parquet.write_table(table, path)
    parties = [{**party, "table": str(path)} if party["name"] == name else party for party in shells.job["party"]]
    write_job(shells.folders[name], {**shells.job, "party": parties})


def replaced(path: Path, column: str, row: int, value: float) -> pa.Table:
    table = pa.parquet.read_table(path)
    values = table[column].to_numpy().copy()
    values[row] = value
    return table.set_column(table.column_names.index(column), column, pa.array(values))


def test_another_epsilon_shows_both_sides_to_all(small: dict[str, Path], tmp_path: Path) -> None:
    with pair(tmp_path, small) as shells:
        own_job(shells, "server", {"epsilon": 2})
        shells.start()
        shells.all_end(shells.names, 60)
        wanted = "the participants do not run the same job: epsilon: p1 has 1, server has 2"
        assert {cause(line) for line in lines_of(shells, shells.names)} == {wanted}
        assert shells.leftovers() == []


def test_another_row_count_shows_both_sides_to_all(small: dict[str, Path], tmp_path: Path) -> None:
    with pair(tmp_path, small) as shells:
        own_table(shells, "p2", pa.parquet.read_table(small["p2"]).slice(0, 499))
        shells.start()
        shells.all_end(shells.names, 60)
        wanted = "the participants do not run the same job: rows: p1 has 500, p2 has 499"
        assert {cause(line) for line in lines_of(shells, shells.names)} == {wanted}
        assert shells.leftovers() == []


def test_other_people_are_found_without_telling_who(small: dict[str, Path], tmp_path: Path) -> None:
    with pair(tmp_path, small) as shells:
        own_table(shells, "p2", replaced(small["p2"], "person", 17, 424242))
        shells.start()
        shells.all_end(shells.names, 60)
        for line in lines_of(shells, shells.names):
            assert cause(line) in {
                f"{one} and {other} do not hold the same ids: {SAME_IDS}" for one, other in (("p1", "p2"), ("p2", "p1"))
            }
            assert "424242" not in line
        assert shells.leftovers() == []


def test_another_certificate_is_told_on_both_sides(small: dict[str, Path], tmp_path: Path) -> None:
    with pair(tmp_path, small, start_deadline=START) as shells:
        for suffix in ("key", "crt"):
            (shells.folders["p2"] / f"p2.{suffix}").unlink()
        make_keys("p2", shells.folders["p2"])  # and the others still list the old one
        shells.start()
        shells.all_end(shells.names, START + SLACK)
        p1, p2, server, dealer = lines_of(shells, shells.names)
        assert re.match(r"p2 \(.*\) did not connect, but somebody whose certificate the job does not list did; ", p1)
        assert re.match(
            r"p1 \(.*\) refuses our certificate, its job file lists another; send it the present one "
            r"|(server|dealer) \(.*\) did not connect, but somebody who does not know our certificate did",
            p2,
        ), p2
        for line in (server, dealer):
            assert re.match(r"p2 \(.*\) shows another certificate than the job lists; ask it for its present", line)
        assert shells.leftovers() == []


def test_a_bad_table_is_its_owners_matter(small: dict[str, Path], tmp_path: Path) -> None:
    """Faults of the data are told on the owner's terminal; the others learn that the party did not start."""
    with pair(tmp_path, small, start_deadline=START) as shells:
        own_table(shells, "p2", replaced(small["p2"], "p2_1", 41, float("nan")))
        shells.start()
        shells.all_end(["p2"], START)
        (line,) = lines_of(shells, ["p2"])
        path = shells.folders["p2"] / "own.parquet"
        assert line == f"{path}: p2_1 is NaN or infinite in data row 42; replace it or leave the row out"
        others = ["p1", "server", "dealer"]
        shells.all_end(others, START + SLACK)
        address = shells.job["party"][1]["address"].replace(":", " port ")
        for name, told in zip(others, lines_of(shells, others), strict=True):
            reason = "did not connect" if name == "p1" else "did not answer"
            assert told == f"p2 ({address}) {reason}; start it, or correct the job file ({START:g} s passed)"
        assert shells.leftovers() == []


def test_a_second_participant_of_one_name_cannot_disturb_the_first(small: dict[str, Path], tmp_path: Path) -> None:
    with pair(tmp_path, small) as shells:
        shells.start("p1")
        shells.until("p1", waiting)
        first = shells.processes["p1"]
        shells.start("p1", arguments=("--out", "again"))
        shells.all_end(["p1"], 30)
        (line,) = lines_of(shells, ["p1"])
        assert re.match(r"address 127.0.0.1 port \d+: cannot listen there \(Address already in use\); it must be", line)
        assert first.poll() is None
        shells.start("p2", "server", "dealer")
        shells.all_end(["p2", "server", "dealer"], 60)
        assert first.wait(timeout=10) == 0
        assert (shells.folders["p1"] / "out" / "model.json").exists()


@pytest.fixture
def run(tables: dict[str, Path], tmp_path: Path) -> Iterator[Run]:
    """`smpc run` with all participants connected."""
    run = Run(tmp_path, job_of(tables, deadline=DEADLINE, start_deadline=60))
    try:
        run.until("handshake", "row ids", "gram", "reveal", "request")
        assert set(run.participants) == {endpoint["name"] for endpoint in participants(run.job)}
        yield run
    finally:
        run.end()


@pytest.mark.parametrize("victim", ["p2", "server", "dealer"])
def test_run_names_a_killed_participant(run: Run, victim: str) -> None:
    os.kill(run.participants[victim], signal.SIGKILL)
    line = run.line(DEADLINE + SLACK)
    assert re.fullmatch(rf"smpc: {victim} was ended by SIGKILL at '[^']+'", line), line
    assert run.process.returncode == 1 and run.leftovers() == []


def test_run_names_a_frozen_participant(run: Run) -> None:
    os.kill(run.participants["p2"], signal.SIGSTOP)
    line = run.line(DEADLINE + 5 + SLACK)  # a frozen process is given 5 s to end by itself
    assert re.fullmatch(
        rf"smpc: (p1|p3|server|dealer): (\w+ reports( by way of \w+(, \w+)*)?: )?"
        rf"p2 is silent for {DEADLINE:g} s at '[^']+'",
        line,
    ), line
    assert run.process.returncode == 1 and run.leftovers() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_ended_from_outside_ends_everybody(run: Run, number: signal.Signals) -> None:
    os.kill(run.process.pid, number)
    assert run.line(5 + SLACK) == "smpc: interrupted"
    assert run.process.returncode == 130 and run.leftovers() == []


def test_ctrl_c_reaches_the_whole_terminal(run: Run) -> None:
    os.killpg(run.process.pid, signal.SIGINT)
    assert run.line(5 + SLACK) == "smpc: interrupted"
    assert run.process.returncode == 130 and run.leftovers() == []


def test_ctrl_c_twice_leaves_no_keys_behind(run: Run) -> None:
    """The second one falls into the clean-up, which a frozen participant draws out."""
    os.kill(run.participants["p2"], signal.SIGSTOP)
    os.kill(run.process.pid, signal.SIGINT)
    time.sleep(1)
    os.kill(run.process.pid, signal.SIGINT)
    assert run.line(5 + SLACK) == "smpc: interrupted"
    assert run.process.returncode == 130 and run.leftovers() == []


def test_participants_end_with_their_launcher(run: Run) -> None:
    """Nobody waits for the results of a launcher that was killed; only its temporary folder is left."""
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    left = run.leftovers(DEADLINE + SLACK)
    assert [path for path in left if "smpc-run-" not in path] == []
    assert not any(map(alive, run.participants.values()))


def test_run_tells_whose_table_is_bad(small: dict[str, Path], tmp_path: Path) -> None:
    job = job_of(small)
    bad = tmp_path / "bad.parquet"
    pa.parquet.write_table(replaced(small["p1"], "y", 3, np.inf), bad)
    job["party"][0]["table"] = "bad.parquet"
    run = Run(tmp_path, job)
    try:
        line = run.line(30)
        assert line == "smpc: p1: bad.parquet: y is NaN or infinite in data row 4; replace it or leave the row out"
        assert run.process.returncode == 1 and run.leftovers() == []
    finally:
        run.end()
