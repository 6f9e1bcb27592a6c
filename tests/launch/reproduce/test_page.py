"""Pages of results: Markdown, figures, the folder they are written to, and `smpc reproduce` without matplotlib."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from launch.cli import main
from launch.reproduce.command import PAGES
from launch.reproduce.figure import Figure, Line, Panel, Points, check_can_draw, draw
from launch.reproduce.page import Page, Table
from protocols.averages import mean
from protocols.evaluation import Summary, summarise
from smpc.errors import InputError

PNG = b"\x89PNG\r\n\x1a\n"
LINE = Line("ours", (0.1, 1.0), (summarise([1, 2, 3]), summarise([0.5, 0.6])))
FIGURE = Figure("errors", "epsilon", "error", (Panel("bike", (LINE,), {"predict zero": 2.5}), Panel("adult", (LINE,))))


def test_markdown_of_a_page() -> None:
    page = Page("p", "Title", ("Some text.\n", Table(("a", "b|c"), (("1", "2"),)), FIGURE))
    assert page.markdown() == (
        "# Title\n\nSome text.\n\n| a | b\\|c |\n| --- | --- |\n| 1 | 2 |\n\n![errors](errors.png)\n"
    )


def test_a_table_with_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="has not the 2 cells"):
        Table(("a", "b"), (("1", "2"), ("1",))).markdown()


def test_folder_of_a_page(tmp_path: Path) -> None:
    Page("p", "Title", (FIGURE,)).write(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["errors.png", "p.md"]
    assert (tmp_path / "out" / "errors.png").read_bytes().startswith(PNG)


def test_equal_results_give_equal_figures_and_intervals_show() -> None:
    wider = Line("ours", LINE.x, (summarise([0, 2, 9]), LINE.results[1]))
    first, again, other = (
        draw(Figure("e", "x", "y", (Panel("t", (line,)),), log))
        for line, log in ((LINE, "x"), (LINE, "x"), (wider, "x"))
    )
    assert first == again != other
    assert draw(Figure("e", "x", "y", (Panel("t", (LINE,)),), "xy")) != first


def test_without_matplotlib_the_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'sharewise\[reproduce\]'"):
        check_can_draw()
    assert main(["reproduce", "functional", "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == "smpc: figures need matplotlib: pip install 'sharewise[reproduce]'\n"
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use_is_refused_before_measuring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("x")
    assert main(["reproduce", "functional", "--out", str(tmp_path)]) == 1
    assert "not an empty folder" in capsys.readouterr().err


def test_an_unknown_protocol_lists_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["reproduce", "nothing", "--out", str(tmp_path / "out")])
    errors = capsys.readouterr().err
    assert all(name in errors for name in PAGES)


def test_points_and_averages_are_drawn() -> None:
    cloud = Points("ours", (0.1, 0.2), (1.0, 3.0))
    line = Line("ours", (1.0,), (mean([1.0, 2.0]),))
    figures = [draw(Figure("e", "x", "y", (Panel("t", (line,), points=points),))) for points in ((), (cloud,))]
    assert figures[0] != figures[1] and all(figure.startswith(PNG) for figure in figures)


@pytest.mark.parametrize(("log", "spread"), [("", False), ("y", False), ("x", True)])
def test_lines_are_moved_apart_on_a_logarithmic_axis_only(
    log: str, spread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There x is a setting; elsewhere it is measured, and a share must not come out above 1."""
    frames: list[Axes] = []
    own = Axes.set_title
    monkeypatch.setattr(Axes, "set_title", lambda frame, *a, **k: (frames.append(frame), own(frame, *a, **k))[1])
    result = Summary(0.5, 0.4, 0.6, 0.95, 10)
    lines = tuple(Line(name, (0.5, 1.0), (result, result)) for name in ("one", "other"))
    draw(Figure("f", "x", "y", (Panel("p", lines),), log=log))
    (frame,) = frames
    found = {float(max(line.get_xdata())) for line in frame.get_lines() if len(line.get_xdata()) == 2}
    assert (found != {1.0}) == spread
    if spread:
        assert [tick.get_text() for tick in frame.get_xticklabels()] == ["0.5", "1"]
