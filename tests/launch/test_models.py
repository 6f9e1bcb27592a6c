"""Released models predict what their coefficients say, as estimators and on tables; anything else is one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import r2_score

from launch.cli import main
from launch.models import ReleasedModel
from smpc.errors import InputError

COEFFICIENTS = {"intercept": 0.5, "u": -2.0, "v": 3.0}


def written(folder: Path, loss: str = "linear", **changes: Any) -> Path:
    about = {"loss": loss, "label": "y", "coefficients": COEFFICIENTS, **changes}
    (folder / "model.json").write_text(json.dumps(about))
    return folder


@given(arrays(np.float64, (2, 7), elements=st.floats(-300, 300)))
def test_predictions_are_those_of_the_estimator(columns: Any) -> None:
    for loss in ("linear", "logistic"):
        model = ReleasedModel(loss, "y", ("u", "v"), np.array([-2.0, 3.0]), 0.5)
        frame = pd.DataFrame({"v": columns[1], "u": columns[0]})[["u", "v"]]
        estimator = model.estimator()
        theirs = estimator.predict_proba(frame)[:, 1] if loss == "logistic" else estimator.predict(frame)
        np.testing.assert_allclose(model.predict(columns), theirs, rtol=1e-9, atol=1e-300)
        score = -2 * columns[0] + 3 * columns[1] + 0.5
        expected = 1 / (1 + np.exp(-np.clip(score, -700, 700))) if loss == "logistic" else score
        np.testing.assert_allclose(model.predict(columns), expected, rtol=1e-9, atol=1e-280)


def test_an_estimator_scores_and_checks_names(tmp_path: Path) -> None:
    estimator = ReleasedModel.load(written(tmp_path)).estimator()
    frame = pd.DataFrame({"u": [0.0, 1.0, 2.0], "v": [1.0, 0.0, 5.0]})
    truth = np.array([3.0, -1.0, 12.0])
    assert estimator.score(frame, truth) == pytest.approx(r2_score(truth, [3.5, -1.5, 11.5]))
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame.rename(columns={"u": "w"}))


def test_tables_in_their_own_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    (tmp_path / "t.csv").write_text("v,who,u\n1,b,0\n0,a,1\n1,b,0\n")
    assert main(["predict", str(tmp_path), str(tmp_path / "t.csv")]) == 0
    assert capsys.readouterr().out == "y\n3.5\n-1.5\n3.5\n"
    pyarrow.parquet.write_table(pa.table({"u": [0, 1], "v": [1.0, 0.0]}), tmp_path / "t.parquet")
    out = tmp_path / "predictions.csv"
    assert main(["predict", str(tmp_path / "model.json"), str(tmp_path / "t.parquet"), "--out", str(out)]) == 0
    assert out.read_text() == "y\n3.5\n-1.5\n"
    written(tmp_path, "logistic")
    assert main(["predict", str(tmp_path), str(tmp_path / "t.csv")]) == 0
    heading, first, *_ = capsys.readouterr().out.splitlines()
    assert heading == "probability of y" and float(first) == pytest.approx(1 / (1 + np.exp(-3.5)))


@pytest.mark.parametrize(
    "change",
    [
        {"loss": "hinge"},
        {"coefficients": {"u": 1.0}},
        {"coefficients": {"intercept": 1.0}},
        {"coefficients": {"intercept": 1.0, "u": float("nan")}},
        {"coefficients": {"intercept": 1.0, "u": "x"}},
        {"coefficients": [1.0]},
        {"bounds": {"u": [1.0]}},
        {"bounds": [0.0, 1.0]},
        {"bounds": {"u": [0, 10**400]}},
        {"coefficients": {"intercept": 1.0, "u": 10**400}},
        {"label": "y\n1"},
        {"label": "\x1b[2J"},
        {"label": 3},
        {"coefficients": {"intercept": 1.0, "u\n": 1.0}},
        {"categories": {"u": ["a", "b"]}},  # one column of a table cannot be both
    ],
)
def test_what_is_no_model(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"model.json: is not the model.json of a linear or logistic model; "):
        ReleasedModel.load(written(tmp_path, **change))


def test_a_label_with_a_comma_is_one_column_of_the_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("u,v\n0,1\n")
    assert main(["predict", str(written(tmp_path, label='a,"b')), str(tmp_path / "t.csv")]) == 0
    assert list(csv.reader(capsys.readouterr().out.splitlines())) == [['a,"b'], ["3.5"]]


def test_a_number_called_like_the_reference_value_of_a_text_is_that_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    coefficients = {"intercept": 0.0, "a=c": 1.0, "a=b": 10.0}
    folder = written(tmp_path, coefficients=coefficients, categories={"a": ["b", "c"]})
    (tmp_path / "t.csv").write_text("a,a=b\nb,0.25\nc,0.5\n")
    assert main(["predict", str(folder), str(tmp_path / "t.csv")]) == 0
    assert capsys.readouterr().out == "y\n2.5\n6.0\n"


def test_numbers_that_no_table_has_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("u,v\n0,1\n1e308,1\n")
    assert main(["predict", str(written(tmp_path)), str(tmp_path / "t.csv")]) == 1
    assert capsys.readouterr().err.endswith("t.csv: u is beyond 1e+100 in data row 2; correct it\n")


def test_deep_brackets_are_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"is not the model\.json"):
        ReleasedModel.load(tmp_path)


def test_rows_beyond_the_bounds_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, bounds={"u": [0, 1], "v": [-1, 1]})
    (tmp_path / "t.csv").write_text("u,v\n0,-1\n1.5,1\n-0.1,0\n")
    assert main(["predict", str(tmp_path), str(tmp_path / "t.csv")]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 4
    assert shown.err == (
        f"smpc: {tmp_path}/t.csv: u is outside [0, 1], the bounds of the model's rows, in 2 rows; "
        "their predictions are extrapolated\n"
    )


def test_files_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    for model, table, wanted in (
        (tmp_path / "none", tmp_path / "t.csv", "none: cannot be read (No such file or directory)"),
        (tmp_path, tmp_path / "t.csv", "t.csv: does not exist"),
    ):
        assert main(["predict", str(model), str(table)]) == 1
        error = capsys.readouterr().err
        assert wanted in error and error.count("\n") == 1
    (tmp_path / "t.csv").write_text("u\n1\n")
    assert main(["predict", str(tmp_path), str(tmp_path / "t.csv")]) == 1
    assert "column 'v' is missing" in capsys.readouterr().err
