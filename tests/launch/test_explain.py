"""`smpc explain`: the protocol's table, the guarantee and the bytes of a job that has not run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from launch.cli import main
from launch.job import load_job
from launch.tasks.own_table import SAME_IDS
from protocols.functional import protocol as functional
from smpc.transcript import full_table
from tests.launch.jobs import valid_job, write_job


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["explain", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("noise", ["shares", "joint", "paper"])
def test_everything_that_is_known_before_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], noise: str) -> None:
    job = valid_job()
    job["job"]["noise"] = noise
    path = write_job(tmp_path, job)
    code, text = explained(capsys, str(path), "--rows", "1000000")
    assert code == 0 and "1,000,000 rows, 2 parties" in text
    flat = " ".join(text.split())
    steps = full_table(functional.script(noise).__doc__ or "")
    assert len(steps) >= 4
    for number, (route, message, learns) in enumerate(steps, 1):
        assert f"{number} {route} {message}" in flat and learns.split()[0] in flat
    loaded = load_job(path)
    outlook = loaded.task.outlook(loaded.cast, 1_000_000)
    assert str(outlook.guarantee) in text and outlook.forecast is not None
    for name in ("a", "b"):
        assert f"{outlook.forecast.sent(name) / 1000:,.1f} kB" in text
        assert outlook.forecast.sent(name) == pytest.approx(16_000_000, rel=0.02)


def test_rows_are_counted_in_a_table_that_is_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_job(tmp_path, valid_job())
    code, text = explained(capsys, str(path))
    assert code == 1 and text == f"smpc: {path}: no party's table is on this machine; say how many rows with --rows\n"
    (tmp_path / "b.csv").write_text("person,w,y\n" + "".join(f"{i},1,1\n" for i in range(123)))
    text = explained(capsys, str(path))[1]
    assert "123 rows" in text
    assert text.endswith(f"not checked, for it is not on this machine:\n  {tmp_path}/a.csv of a\n")
    noise = r"^noise: [0-9.]+ of the largest possible sum of 123 rows: the model says next to nothing"
    assert re.search(noise, text, re.MULTILINE)
    (tmp_path / "a.csv").write_text("person,u,v\n1,0,0\n2,1,1\n")
    told = f"smpc: {path}: the tables' rows differ: a has 2, b has 123"
    assert explained(capsys, str(path)) == (1, f"{told}; {SAME_IDS}\n")
    assert explained(capsys, str(path), "--rows", "7") == (1, f"{told}, --rows says 7; {SAME_IDS}\n")
    (tmp_path / "a.csv").write_text("person,u,v\n" + "".join(f"{i},2,1\n" for i in range(123)))
    assert "a.csv: u is outside its bounds [0, 1] in 123 rows" in explained(capsys, str(path))[1]
    (tmp_path / "a.csv").write_text("person,u,v\n" + "".join(f"{1 + i},1,1\n" for i in range(123)))
    assert "job.toml: a and b do not hold the same ids: keep the same people" in explained(capsys, str(path))[1]
    (tmp_path / "a.csv").write_text("person,u,v\n" + "".join(f"\u00a0{i} \u202f,1,1\n" for i in range(123)))
    assert explained(capsys, str(path))[0] == 0  # blanks around ids, no-break ones too, are cut off
    assert explained(capsys, str(path), "--rows", "1") == (1, "smpc: --rows 1: must be from 2 to 1,000,000,000\n")


def test_who_asks_about_a_budget_reads_what_it_is_for_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = valid_job()
    job["party"][1]["ledger"] = "b.ledger"
    path = write_job(tmp_path, job)
    (tmp_path / "b.csv").write_text("person,w,y\n" + "".join(f"{i},1,1\n" for i in range(123)))
    code, text = explained(capsys, str(path))
    assert code == 1 and "123 rows, 2 parties" in text and "bytes that will be sent" in text
    assert text.splitlines()[-1].startswith("smpc: b: no cap for one record in b.ledger; set one with `smpc ledger cap")


def test_a_row_may_go_on_in_the_next_line() -> None:
    table = full_table(
        "step  from -> to   message  the receiver learns\n"
        "1     a -> b       x        much\n"
        "                            more\n"
    )
    assert table == [("a -> b", "x", "much more")]


def test_a_table_that_is_no_file_is_told_and_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_job(tmp_path, valid_job())
    (tmp_path / "b.csv").symlink_to("b.csv")
    told = f"smpc: {tmp_path}/b.csv: is a link that leads back to itself; correct it\n"
    assert explained(capsys, str(path), "--rows", "9") == (1, told)
    (tmp_path / "b.csv").unlink()
    os.mkfifo(tmp_path / "b.csv")
    told = f"smpc: {tmp_path}/b.csv: is a pipe; a table is a file, which is read more than once\n"
    assert explained(capsys, str(path), "--rows", "9") == (1, told)
