"""`smpc report`, and what `smpc run` says of it, with and without matplotlib."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from launch.cli import main
from launch.report.command import report, report_line
from launch.report.markup import Markup
from smpc.errors import InputError
from tests.launch.report.support import write_results


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_the_command_writes_and_names_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_results(tmp_path / "run")
    (folder / "report.html").write_text("an old one")
    assert main(["report", str(folder)]) == 0
    path = folder / "report.html"
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text().startswith("<!DOCTYPE html>") and path.stat().st_mode & 0o777 == 0o644
    assert not list(folder.glob(".*"))
    assert report_line(folder) == f"report: {path}"


def test_a_run_does_not_fail_for_its_report(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run")
    (folder / "cost.json").write_text("{}")
    assert report_line(folder).startswith(f"no report: {folder}/cost.json: is not the result file")


@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_results(tmp_path / "run")
    assert report_line(folder) == f"no report: pip install 'sharewise[report]', then smpc report {folder}"
    assert report_line(Path("a run")).endswith(", then smpc report 'a run'")
    assert main(["report", str(folder)]) == 1
    assert capsys.readouterr().err == "smpc: a report needs matplotlib: pip install 'sharewise[report]'\n"
    assert not list(folder.glob("*.html"))


def test_a_folder_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "none")]) == 1
    line = capsys.readouterr().err
    assert (
        line == f"smpc: {tmp_path}/none: is no folder; name the one that `smpc run` or `smpc party` wrote with --out\n"
    )


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_results(tmp_path / "run")
    monkeypatch.setattr("launch.report.page.page", lambda *_: Markup("x"))
    (folder / "report.html").mkdir()
    with pytest.raises(InputError, match=r"report.html: cannot be written \(Is a directory\)"):
        report(folder)
    assert not list(folder.glob(".*"))
