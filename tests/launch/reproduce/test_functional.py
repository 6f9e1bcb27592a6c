"""The page of paper 1: its parts, ratios and words, from a run too short to measure anything."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from launch.reproduce import functional, functional_methods, functional_scaling
from launch.reproduce.comparison import Comparison, Ratio, compare, ratio_table, ratios, verdict
from launch.reproduce.figure import Figure
from launch.reproduce.page import Table
from launch.reproduce.synthetic import synthetic
from launch.reproduce.trial import Trial
from protocols import datasets
from protocols.evaluation import summarise
from protocols.functional.options import Options

ONE, TEN = Fraction(1), Fraction(10)


def comparison() -> Comparison:
    private = {"ours": [1.5, 1.1], "paper a": [2.0, 1.2], "paper b": [3.0, 1.0]}
    by = {n: {e: summarise([m]) for e, m in zip((ONE, TEN), ms, strict=True)} for n, ms in private.items()}
    return Comparison("bike", by, {"exact": summarise([1.0])})


def test_ratios_take_the_papers_best_at_each_epsilon() -> None:
    first, second = ratios(comparison(), "ours", ("paper a", "paper b"), "exact")
    assert (first.error, first.excess) == (0.75, 0.5)
    assert (second.error, second.excess) == (1.1, float("inf"))
    assert verdict([first, second]) == (
        "Lower median error on 1 of 2 (not on bike at 10); at most half the excess error on 1 of 2."
    )
    assert ratio_table([first]).rows == (("bike", "1", "1.5", "2", "0.750", "0.50"),)


def test_verdict_without_misses() -> None:
    assert verdict([Ratio("a", ONE, 1.0, 2.0, 0.9)]).startswith("Lower median error on 1 of 1; at most half")


def test_tables_and_panels_of_a_comparison() -> None:
    found = comparison()
    table = found.table()
    assert table.columns == ("bike", "epsilon 1", "epsilon 10")
    assert table.rows[0] == ("ours", "1.5 [1.5, 1.5]", "1.1 [1.1, 1.1]") and table.rows[-1][0] == "exact"
    panel = found.panel(("paper b",), ("exact",))
    assert panel.lines[0].x == (1.0, 10.0) and panel.levels == {"exact": 1.0}


def test_compare_gives_every_method_every_trial() -> None:
    calls: list[tuple[int, Fraction]] = []

    def method(trial: Trial, epsilon: Fraction) -> float:
        calls.append((trial.draw, epsilon))
        return float(trial.draw)

    first = Trial(synthetic(20, 2), 0)
    found = compare("t", [first.again(d) for d in (1, 2, 6)], {"m": method}, {"l": lambda t: 2.0 * t.draw}, (ONE, TEN))
    assert calls == [(d, e) for d in (1, 2, 6) for e in (ONE, TEN)]
    assert found.private["m"][TEN].median == 2 and found.levels["l"].median == 4


def test_our_variant_is_chosen_by_the_loss_alone() -> None:
    assert functional_methods.best("linear") == Options(weights="balanced", repair="posterior")
    assert functional_methods.best("logistic") == Options(loss="logistic", weights="balanced", repair="rescaled")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("statsmodels")
    monkeypatch.delenv("SMPC_DATA", raising=False)
    monkeypatch.setattr(functional, "SEEDS", {True: range(1)})
    monkeypatch.setattr(functional_scaling, "ROWS", 1500)
    for name in ("fair", "randhie"):
        whole = getattr(datasets, name)()
        monkeypatch.setattr(datasets, name, lambda whole=whole: replace(whole, x=whole.x[::10], y=whole.y[::10]))


def test_the_page_has_all_tables_figures_and_predictors(short: None) -> None:
    said: list[str] = []
    page = functional.page(True, said.append)
    tables = [part for part in page.parts if isinstance(part, Table)]
    assert [table.columns[0] for table in tables] == [
        "Fair",
        "randhie",
        "data set",
        "columns, share of weights not 0",
        "parties",
    ]
    assert [part.name for part in page.parts if isinstance(part, Figure)] == ["classes", "numbers", "parties"]
    for table in (tables[0], tables[1], tables[3], tables[4]):
        assert any(row[0] == "predict zero" for row in table.rows)
    text = page.markdown()
    assert "SMPC_DATA is not set: without Adult, Dutch" in said
    assert "1,286,406" in text and "smpc reproduce functional --out DIR --quick" in text
    assert "{" not in text  # every number is filled in


def test_without_tables_full_and_quick_use_what_is_embedded(short: None, tmp_path: Path) -> None:
    found = functional._tables(functional.NUMBERS, {"randhie": datasets.randhie}, False, lambda line: None)
    assert list(found) == ["randhie"]


@pytest.mark.data
def test_quick_leaves_out_the_large_tables() -> None:
    if not os.environ.get("SMPC_DATA"):
        pytest.skip("SMPC_DATA is not set")
    found = functional._tables(functional.NUMBERS, {}, True, lambda line: None)
    assert list(found) == ["bike", "insurance"]
