"""`smpc demo`: all of its folder or nothing, so that the next one can have the name."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch import demo
from launch.cli import main

pytest.importorskip("statsmodels")


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("step", ["load_job", "run_locally"])
def test_an_interrupted_demo_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], step: str, kept: bool
) -> None:
    out = tmp_path / "out"
    if kept:
        out.mkdir()

    def interrupted(path: Path, *_: object) -> None:
        assert path.exists()
        if step == "run_locally":
            assert {"clinic.csv", "insurer.csv", "survey.csv"} <= {table.name for table in out.iterdir()}
            (out / "release").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, step, interrupted)
    for _ in range(2):  # the name is free again
        assert main(["demo", "--out", str(out)]) == 130
        assert capsys.readouterr().err == "smpc: interrupted\n"
        assert list(tmp_path.rglob("*")) == ([out] if kept else [])


def test_an_interrupted_demo_leaves_what_is_not_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"

    def interrupted(*_: object) -> None:
        (out / "mine").mkdir()
        (out / "mine" / "notes.txt").touch()
        (out / "release").symlink_to(out / "mine")
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_locally", interrupted)
    assert main(["demo", "--out", str(out)]) == 130
    assert sorted(path.name for path in out.rglob("*")) == ["mine", "notes.txt", "release"]


def test_what_was_released_stays_when_the_comparison_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_locally", lambda _, release: release.mkdir())
    monkeypatch.setattr(demo, "summary", str)
    monkeypatch.setattr(demo, "report_line", str)
    monkeypatch.setattr(demo, "_compare", interrupted)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 130
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "randhie.toml", "clinic.csv", "insurer.csv", "survey.csv", "release",
    }  # fmt: skip
