"""The server's memory does not grow with the rows: encrypted columns stream through it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.launch.bgn_jobs import bgn_job_of
from tests.launch.processes import Shells, write_tables

pytestmark = [pytest.mark.mpc, pytest.mark.long]

FEW, MANY = 1024, 16384
# `smpc` that leaves the largest resident size of its own memory behind, in kB
MEASURED = [
    sys.executable,
    "-c",
    "import re, sys; from launch.cli import main; code = main(); "
    "open('peak', 'w').write(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]); sys.exit(code)",
]
UPLOADED = 2 * 96 + 192  # bytes of a row's ciphertexts: p1 has two columns, p2 one


def peaks(folder: Path, rows: int) -> dict[str, int]:
    """The largest resident size of each participant, in bytes, over a whole job of that many rows."""
    folder.mkdir()
    (folder / "shells").mkdir()
    tables = write_tables(folder, rows, 2, 1)
    job = bgn_job_of(tables, job={})
    for party in job["party"]:
        party["columns"].pop(f"{party['name']}_1")
    with Shells(folder / "shells", job) as shells:
        shells.start(program=MEASURED)
        shells.all_end(shells.names, 300)
        assert {shells.code(name) for name in shells.names} == {0}, [shells.said(name) for name in shells.names]
        return {name: 1024 * int((shells.folders[name] / "peak").read_text()) for name in shells.names}


def test_the_server_keeps_no_ciphertexts(tmp_path: Path) -> None:
    small, large = peaks(tmp_path / "small", FEW), peaks(tmp_path / "large", MANY)
    for name in small:
        growth = large[name] - small[name]
        print(f"{name}: {small[name] / 1e6:.1f} MB at {FEW:,} rows, {growth / 1e6:+.1f} MB at {MANY:,}")
    ciphertexts = UPLOADED * (MANY - FEW)
    growth = large["server"] - small["server"]
    print(f"{ciphertexts / 1e6:.1f} MB of ciphertexts more passed through the server")
    assert growth < ciphertexts / 3
