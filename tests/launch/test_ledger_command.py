"""`smpc ledger`: what an owner types and files an owner has; every fault is one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launch.cli import main


def test_a_cap_is_set_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "ledger.db")
    assert main(["ledger", "cap", place, "people", "1/3", "--delta", "1e-6", "--unit", "label"]) == 0
    assert main(["ledger", "cap", place, "people", "1e99"]) == 0
    capsys.readouterr()
    assert main(["ledger", "show", place]) == 0
    assert capsys.readouterr().out == (
        "people (label): epsilon 0 of 1/3 spent, delta 0 of 1e-06, 0 charges\n"
        "people (record): epsilon 0 of 1e+99 spent, delta 0 of 0, 0 charges\n"
    )


@pytest.mark.parametrize(
    "typed",
    [
        ["1e400"],
        ["1e99999999"],
        ["1e999999"],
        ["9" * 5000],
        ["nan"],
        ["1/0"],
        ["0"],
        ["1", "--delta", "1e-99999999"],
        ["1", "--delta", "1"],
    ],
    ids=lambda typed: " ".join(typed)[:20],
)
def test_numbers_that_cannot_be_leave_no_ledger(
    tmp_path: Path, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "cap", str(tmp_path / "ledger.db"), "people", *typed]) == 1
    told = capsys.readouterr().err
    assert told.startswith("smpc: ") and told.count("\n") == 1 and len(told) < 200
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_no_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert main(["ledger", "cap", str(tmp_path / "pipe"), "people", "1"]) == 1
    assert capsys.readouterr().err == f"smpc: {tmp_path}/pipe: is no regular file: name another place\n"
