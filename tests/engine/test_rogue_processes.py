"""A rogue party among real `smpc` processes: each other one ends with one line that names it, and no traceback."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

from tests.launch.processes import Shells, job_of, write_tables

pytestmark = pytest.mark.mpc

ROOT = Path(__file__).parents[2]
NAME = "p2"
MESSAGES = 9  # that it sends in this job, its goodbyes included
LIMIT = 45.0


def ends_well(seed: int, folder: Path, tables: dict[str, Path]) -> None:
    folder.mkdir()
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.engine.rogue import main"
    with Shells(folder, job_of(tables, deadline=10, start_deadline=60)) as shells:
        others = [name for name in shells.names if name != NAME]
        shells.start(*others)
        shells.start(NAME, program=[sys.executable, "-c", f"{program}; main({NAME!r}, {seed}, {MESSAGES})"])
        shells.all_end(others, LIMIT)
        for name in others:
            said = shells.said(name)
            assert not any("Traceback" in line for line in said), (seed, name, said)
            if shells.code(name):
                assert shells.code(name) == 1 and said[-1].startswith("smpc: ") and said[-1].isprintable(), (seed, said)
                assert re.search(rf"\b{NAME}\b", said[-1]), (seed, name, said[-1])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("tables"), 500, 2)


@pytest.mark.parametrize("seed", range(4))
def test_all_others_end_with_one_line_that_names_it(seed: int, tmp_path: Path, tables: dict[str, Path]) -> None:
    ends_well(seed, tmp_path / "job", tables)


@pytest.mark.long
def test_so_they_do_for_many_others(tmp_path: Path, tables: dict[str, Path]) -> None:
    start = random.SystemRandom().randrange(10**9)
    for seed in range(start, start + 30):
        ends_well(seed, tmp_path / str(seed), tables)
