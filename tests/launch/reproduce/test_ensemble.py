"""The page of paper 3: every method at every epsilon, on a small table."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from launch.reproduce import ensemble
from launch.reproduce.page import Table
from protocols.ensemble.auxiliary import unit_rows
from protocols.ensemble.simulation import SOFT_VARIANTS
from protocols.ensemble.tables import Labelled
from protocols.evaluation import summarise


def small_table(folder: Path) -> Labelled:
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 2))
    return Labelled(unit_rows(x), (x[:, 0] > 0).astype(np.int64), 2)


def test_page_has_every_method_and_epsilon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = ensemble.Setting("small", "a small table", small_table, (20, 30), own=8, auxiliary=100, test=150)
    monkeypatch.setattr(ensemble, "SETTINGS", (small,))
    monkeypatch.setenv("SMPC_DATA", str(tmp_path))
    told: list[str] = []
    page = ensemble.page(True, told.append)
    tables = [part for part in page.parts if isinstance(part, Table)]
    assert told == ["small, split 1 of 2", "small, split 2 of 2"]
    assert [row[0] for row in tables[0].rows] == [
        "epsilon 10",
        "epsilon 1",
        "epsilon 0.2",
        "epsilon 0.1",
        "not private",
    ]
    assert all(len(row) == 1 + len(ensemble._ALL) for row in tables[0].rows)
    page.write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"ensemble.md", "ensemble-small.png"}


def test_compared_is_the_smallest_epsilon_that_is_accurate_enough() -> None:
    epsilons = [Fraction(10), Fraction(1), Fraction(1, 10)]
    accuracies = {"statistic": (0.93, 0.92, 0.8), "soft": (0.924, 0.6, 0.4), ensemble.BEST: (0.93, 0.9, 0.8)}
    private = {
        name: {e: summarise([value]) for e, value in zip(epsilons, values, strict=True)}
        for name, values in accuracies.items()
    }
    setting = ensemble.Setting("small", "small", small_table, (5,), 1, 1, 1)

    def rows(constant: float) -> list[tuple[str, ...]]:
        levels = {"constant": summarise([constant])}
        found = ensemble._comparison([ensemble.Measured(setting, 5, levels, private)]).rows
        assert [row[1] for row in found] == ["soft"] * 2 + [ensemble.BEST] * 2
        return [row[2:] for row in found]

    def one(value: float) -> str:
        return str(summarise([value]))

    first = ("10", one(0.924), one(0.92), "-")
    assert rows(0.5)[:2] == [(*first, "1", "10", "0.5"), ("1", one(0.6), one(0.8), "-", "0.1", "10", "0.5")]
    assert rows(0.6)[:2] == [(*first, "1", "10", "0.6"), ("1", one(0.6), one(0.8), "-", "-", "-", "0.6")]
    assert rows(0.5)[2:] == [
        ("10", one(0.93), one(0.92), "-", "10", "1", "0.5"),
        ("1", one(0.9), one(0.8), "-", "1", "1", "0.5"),
    ]


def test_the_paper_at_its_best_is_the_variant_with_the_largest_median() -> None:
    first, second, *others = SOFT_VARIANTS
    rest = dict.fromkeys([*others, *ensemble._ALL], 0.1)
    runs = [{**rest, first: a, second: b} for a, b in ((0.9, 0.7), (0.2, 0.8), (0.3, 0.6))]
    found = ensemble._by_method({Fraction(1): runs})
    assert found[ensemble.BEST][Fraction(1)].median == 0.7
