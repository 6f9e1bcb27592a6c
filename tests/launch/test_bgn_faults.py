"""A participant of a bgn job that sends what is malformed or false, or nothing: all name it, no file, nothing hangs."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launch.bgn_jobs import FAULTS, bgn_job_of, faulty
from tests.launch.processes import Shells, write_tables

pytestmark = pytest.mark.mpc

DEADLINE = 6.0
SLACK = 40.0
PAIR, LINEAR, THRESHOLD = ({"mode": mode} for mode in ("pair", "linear", "threshold"))
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("upload off the curve", PAIR, "p1", r"p1: encrypted columns: entry 0 is no element of G1; "),
    ("upload of wrong order", PAIR, "p1", r"p1: encrypted columns: entry 0 is no element of G1; "),
    ("upload of wrong order in G2", PAIR, "p2", r"p2: encrypted columns: entry 0 is no element of G2; "),
    ("upload truncated", PAIR, "p1", r"p1 is out of step: it sent 'encrypted columns uint8 \(3, 2, 29, 48\)'"),
    ("upload swapped", PAIR, "p1", r"a value left the window that its bounds and noise allow|p2 stopped at 'reveal"),
    ("sums of wrong order", PAIR, "server", r"server: encrypted sums: entry 0 is no element of GT; "),
    ("noisy sums of wrong order", PAIR, "p2", r"p2: noisy sums: entry 0 is no element of GT; "),
    ("noisy sums truncated", PAIR, "p2", r"p2 is out of step: it sent 'noisy sums uint8 \(\d+, 4, 576\)'"),
    ("partial of wrong order", PAIR, "p1", r"p1: partial decryption: entry 0 is no element of GT; "),
    ("partial truncated", PAIR, "p1", r"p1 is out of step: it sent 'partial decryption uint8 "),
    ("partial swapped", PAIR, "p1", r"p1: its partial decryption is not by its published key; "),
    ("key changed", PAIR, "p1", r"p1: its key of G2 comes without proof of its secret \(a rogue key\)"),
    ("key truncated", PAIR, "p2", r"p2 is out of step: it sent 'keys uint8 \(271,\)'"),
    ("upload off the curve", LINEAR, "p1", r"p1: encrypted columns: entry 0 is no element of G1; "),
    ("upload truncated", LINEAR, "p1", r"p1 is out of step: it sent 'encrypted columns uint8 "),
    ("upload swapped", LINEAR, "p1", r"a value left the window that its bounds and noise allow"),
    ("noisy sums off the curve", LINEAR, "p2", r"p2: noisy sums: entry 0 is no element of G1; "),
    ("key changed", LINEAR, "p1", r"p1: its key of G1 comes without proof of its secret \(a rogue key\)"),
    ("upload of wrong order in G2", THRESHOLD, "p2", r"p2: encrypted columns: entry 0 is no element of G2; "),
    ("sums of wrong order", THRESHOLD, "server", r"server: encrypted sums: entry 0 is no element of GT; "),
    ("final sums of wrong order", THRESHOLD, "p2", r"p2: final sums: entry 0 is no element of GT; "),
    ("answer swapped", THRESHOLD, "p1", r"p1: its partial decryption is not by its key share; "),
    ("last answer swapped", THRESHOLD, "p2", r"p2: its partial decryption is not by its key share; "),
    ("combined of wrong order", THRESHOLD, "server", r"server: combined decryption: entry 0 is no element of GT; "),
    ("material changed", THRESHOLD, "p1", r"p1: its key of G2 comes without proof of its secret; "),
    ("share changed", THRESHOLD, "p2", r"p2: its key share does not fit its commitments; "),
    ("digest changed", THRESHOLD, "p1", r"p1 and \w+ received other key material"),
]
# `smpc` whose plaintexts are one unit above what the job declares
TOO_LARGE = [
    sys.executable,
    "-c",
    "import sys; from protocols.functional.plan import Plan; honest = Plan.prepare; "
    "Plan.prepare = lambda *a: honest(*a) + (1 << a[0].bits); from launch.cli import main; sys.exit(main())",
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("tables"), 30, 2)


def reported(line: str) -> str:
    """A line without who found it and who passed it on."""
    return re.sub(r"^smpc: (\w+ reports( by way of \w+(, \w+)*)?: )?", "", line)


def failed_with(shells: Shells, named: str, culprit: str) -> None:
    """All end in time with status 1 and one line that names the culprit, which may be told of itself, and no trace."""
    shells.all_end(shells.names, SLACK)
    assert {shells.code(name) for name in shells.names} == {1}, [shells.said(name) for name in shells.names]
    lines = {name: reported(shells.line(name)) for name in shells.names}
    assert all(line.isprintable() for line in lines.values())
    assert any(re.match(named, line) for line in lines.values()), lines
    for name, line in lines.items():
        assert name == culprit or re.match(rf"{named}|{culprit}\b", line), lines
    assert shells.leftovers() == []


@pytest.mark.parametrize(("fault", "mode", "culprit", "named"), CASES, ids=[f"{c[1]['mode']} {c[0]}" for c in CASES])
def test_a_broken_message(
    fault: str, mode: dict[str, Any], culprit: str, named: str, tables: dict[str, Path], tmp_path: Path
) -> None:
    with Shells(tmp_path, bgn_job_of(tables, job=mode, deadline=30)) as shells:
        shells.start(*(name for name in shells.names if name != culprit))
        shells.start(culprit, program=faulty(fault))
        failed_with(shells, named, culprit)


def test_every_fault_is_tried() -> None:
    assert {case[0] for case in CASES} == set(FAULTS)


@pytest.mark.parametrize("mode", [PAIR, LINEAR, THRESHOLD], ids=lambda mode: mode["mode"])
def test_a_plaintext_out_of_range_stops_its_owner(
    mode: dict[str, Any], tables: dict[str, Path], tmp_path: Path
) -> None:
    with Shells(tmp_path, bgn_job_of(tables, job=mode, deadline=30)) as shells:
        shells.start("p1", "server")
        shells.start("p2", program=TOO_LARGE)
        failed_with(shells, r"p2: columns must be 2 x 30 within \+-\d+|p2 stopped at", "p2")
        assert re.match(r"smpc: p2: columns must be 2 x 30 within \+-\d+$", shells.line("p2"))


@pytest.mark.parametrize(
    ("victim", "mode"),
    [("p2", PAIR), ("server", PAIR), ("p2", LINEAR), ("p2", THRESHOLD)],
    ids=["pair p2", "pair server", "linear p2", "threshold p2"],
)
def test_one_that_never_answers_is_named_by_all_others(
    victim: str, mode: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """Frozen when the columns are on their way."""
    many = write_tables(tmp_path_factory.mktemp("many"), 6000, 2)
    with Shells(tmp_path, bgn_job_of(many, job=mode, deadline=DEADLINE)) as shells:
        shells.start()
        others = [name for name in shells.names if name != victim]
        shells.until("p1", lambda state: state[0].startswith("gram") and state[1] > 0)
        os.kill(shells.processes[victim].pid, signal.SIGSTOP)
        shells.all_end(others, DEADLINE + SLACK)
        for name in others:
            assert re.search(rf"\b{victim} is silent for {DEADLINE:g} s at '[^']+'", shells.line(name)), name
            assert shells.code(name) == 1
        os.kill(shells.processes[victim].pid, signal.SIGCONT)
        shells.all_end([victim], DEADLINE + SLACK)
        assert shells.leftovers() == []
