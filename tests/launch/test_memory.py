"""A party holds two tables at most, whatever it does with them, from its file to the model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.launch.processes import Shells, job_of, write_tables

pytestmark = [
    pytest.mark.mpc,
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

ROWS, WIDTH = 1_000_000, 10
ROOM = 100_000_000
# `smpc` that leaves its largest resident size, in kB, behind: not getrusage's, which begins with the size of its parent
MEASURED = [
    sys.executable,
    "-c",
    "import sys; from launch.cli import main; code = main(); "
    "peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')); "
    "open('peak', 'w').write(peak); sys.exit(code)",
]


def peaks(folder: Path, rows: int) -> dict[str, int]:
    """The largest resident size of each party, in bytes, over a whole job of that many rows."""
    folder.mkdir()
    (folder / "shells").mkdir()
    with Shells(folder / "shells", job_of(write_tables(folder, rows, 2, WIDTH), width=WIDTH)) as shells:
        shells.start(program=MEASURED)
        shells.all_end(shells.names, 300)
        assert {shells.code(name) for name in shells.names} == {0}, [shells.said(name) for name in shells.names]
        return {name: 1024 * int((shells.folders[name] / "peak").read_text()) for name in ("p1", "p2")}


def test_a_party_grows_by_two_tables_and_little_more(tmp_path: Path) -> None:
    """Over a job of few rows, so that the libraries' own size, the same in both, does not count."""
    small, large = peaks(tmp_path / "small", 1000), peaks(tmp_path / "large", ROWS)
    for name, columns in (("p1", WIDTH + 1), ("p2", WIDTH)):
        growth, table = large[name] - small[name], ROWS * columns * 8
        print(f"{name}: {small[name] / 1e6:.0f} MB, grew by {growth / 1e6:.0f} MB; a table has {table / 1e6:.0f} MB")
        assert growth < 2 * table + ROOM, f"{name} grew by {growth / 1e6:.0f} MB"
