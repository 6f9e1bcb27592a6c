"""The page of paper 4: what it shows, on a small table; and a whole quick page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from launch.reproduce import split
from launch.reproduce.page import Table
from protocols.split.experiment import Method, Setting
from protocols.split.tables import Coded

COLUMNS = ("method", "epsilon", "test", *split.SHOWN, "form")


def small_table() -> Coded:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(600, 3)).astype(np.float32)
    labels = (numbers[:, 0] + rng.normal(size=600) * 0.3 > 0.8).astype(np.int64)
    return Coded("small", numbers, rng.integers(0, 4, (600, 2)), (4, 4), labels)


def test_page_has_every_method_with_its_closed_form(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    choices = [split.Choice(split.PLAIN, Method(split.PLAIN)), *split._private(["1", "8"])]
    choices.append(split.Choice(split.GAUSSIAN, Method("g", change=split.isotropic_gaussian(1.0)), strength="ratio 1"))
    monkeypatch.setattr(split, "_tables", lambda quick: [(small_table(), Setting(1, 64), choices)])
    told: list[str] = []
    page = split.page(True, told.append)
    table = next(part for part in page.parts if isinstance(part, Table))
    assert table.columns == COLUMNS and len(table.rows) == len(choices) == len(told)
    forms = {(row[0], row[1]): row[-1] for row in table.rows}
    assert forms[split.LAPLACE, "1"] == "0.724" and forms[split.DISCRETE, "8"] == "1.000"
    assert forms[split.POSTERIOR, "1"] == forms[split.PLAIN, "-"] == forms[split.GAUSSIAN, "ratio 1"] == "-"
    plain = table.rows[0]
    assert plain[COLUMNS.index(split.DISTANCE)].startswith("1.000 ")
    page.write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"split.md", "utility.png", "trade.png"}
    assert "lost at epsilon 1" in (tmp_path / "out" / "split.md").read_text()


@pytest.mark.long
def test_quick_page_runs_on_the_table_that_comes_along() -> None:
    page = split.page(True, print)
    table = next(part for part in page.parts if isinstance(part, Table))
    assert [row[0] for row in table.rows] == [split.PLAIN, split.LAPLACE, split.DISCRETE, split.POSTERIOR]
    assert float(table.rows[0][2][:5]) > float(table.rows[1][2][:5]) - 0.01 > 0.6
