"""A model on the reader's own table: numbers by definition, and a page that says whose rows it shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.report.command import report
from launch.report.local_table import roc
from smpc.errors import InputError
from tests.launch.report.support import Page, write_results

scores_of_one = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=1)
labelled = st.builds(
    lambda zeros, ones: [(0, score) for score in zeros] + [(1, score) for score in ones], scores_of_one, scores_of_one
).flatmap(st.permutations)


@given(labelled)
def test_a_roc_curve_by_its_definition(rows: Sequence[tuple[int, float]]) -> None:
    actual, scores = np.array([label for label, _ in rows], dtype=float), np.array([score for _, score in rows])
    false, true = roc(actual, scores)
    expected = [(0.0, 0.0)]
    for threshold in sorted(set(scores), reverse=True):
        called = scores >= threshold
        expected.append((called[actual == 0].mean(), called[actual == 1].mean()))
    np.testing.assert_allclose(np.column_stack([false, true]), expected)


@given(labelled)
def test_the_area_is_the_chance_that_a_one_scores_higher_than_a_zero(rows: Sequence[tuple[int, float]]) -> None:
    actual, scores = np.array([label for label, _ in rows], dtype=float), np.array([score for _, score in rows])
    false, true = roc(actual, scores)
    pairs = [(a > b) + (a == b) / 2 for a in scores[actual == 1] for b in scores[actual == 0]]
    area = np.sum(np.diff(false) * (true[1:] + true[:-1]) / 2)
    assert area == pytest.approx(np.mean(pairs))


def table(folder: Path, rows: Sequence[Sequence[float]], columns: str = "v,u,other,y") -> Path:
    path = folder / "all <b>.csv"
    path.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_predicted_against_actual(tmp_path: Path) -> None:
    """y = 0.5 - 1.25 u + 2 v, two rows off by 1."""
    folder = write_results(tmp_path / "run")
    path = table(tmp_path, [(0, 0, 7, 0.5), (1, 0, 7, 2.5), (0, 2, 7, -1), (1, 2, 7, 1)])
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    written = report(folder, path)
    assert written == folder / "report-with-table.html"
    found = Page(written.read_text(), whole=True)
    assert "rows 4 mean squared error 0.5 of predicting the mean 1.562 R squared 0.6800" in found.text
    assert "The guarantee of the run says nothing about it" in found.text and "all <b>.csv" in found.text
    assert "4 rows; mean squared error 0.5" in found.titles["predicted-alt"]
    written.unlink()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before  # no rows in what is passed on


def test_roc_of_a_logistic_model(tmp_path: Path) -> None:
    """Scores 0.5, 2.5, -2, 0 of labels 1, 1, 0, 1: of three pairs, all in order; the last score's class is one."""
    folder = write_results(tmp_path / "run", model={"loss": "logistic"})
    path = table(tmp_path, [(0, 0, 7, 1), (1, 0, 7, 1), (0, 2, 7, 0), (1, 2, 7, 1), (0, 2, 7, 1)])
    found = Page(report(folder, path).read_text(), whole=True)
    assert "rows 5 area under the curve 0.8750 misclassified 20.00% of always the same class 20.00%" in found.text
    assert "area under it 0.8750" in found.titles["roc-alt"]


def test_constant_labels_have_no_r_squared(tmp_path: Path) -> None:
    found = Page(report(write_results(tmp_path / "run"), table(tmp_path, [(0, 0, 7, 1), (1, 0, 7, 1)])).read_text())
    assert "R squared" not in found.text and "of predicting the mean 0" in found.text


@pytest.mark.parametrize("labels", [(0, 0), (1, 1), (0, 2), (0.5, 1)])
def test_labels_that_are_no_two_classes(tmp_path: Path, labels: tuple[float, float]) -> None:
    folder = write_results(tmp_path / "run", model={"loss": "logistic"})
    path = table(tmp_path, [(0, 0, 7, label) for label in labels])
    with pytest.raises(InputError, match="y must be 0 and 1, both in the table, for a logistic model"):
        report(folder, path)


def test_a_table_without_rows(tmp_path: Path) -> None:
    for loss in ("linear", "logistic"):
        folder = write_results(tmp_path / loss, model={"loss": loss})
        with pytest.raises(InputError, match=r"\.csv: has no rows to compare the model with$"):
            report(folder, table(tmp_path, []))


def test_a_table_without_a_column_or_a_run_without_model(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run")
    with pytest.raises(InputError, match="column 'y' is missing"):
        report(folder, table(tmp_path, [(1, 2, 3, 4)], "v,u,other,z"))
    (folder / "model.json").write_text(json.dumps({"protocol": "split"}))
    with pytest.raises(InputError, match=r"is not the model\.json of a linear or logistic model"):
        report(folder, table(tmp_path, [(1, 2, 3, 4)]))
    assert not list(folder.glob("*.html"))
