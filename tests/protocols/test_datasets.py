"""The public tables: sizes, codings, bounds. Those in $SMPC_DATA are skipped where it is not set."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from protocols import datasets
from protocols.public_coding import Dataset
from protocols.raw_tables import contents, data_directory, text_columns
from smpc.errors import InputError

# rows, features, mean of the label in its unit (published, or counted in the origin's file by other means), loss
FILES: dict[str, tuple[Callable[[Path], Dataset], int, int, float, str]] = {
    "adult": (datasets.adult, 32_561, 43, 7_841 / 32_561, "logistic"),
    "dutch_census": (datasets.dutch, 60_420, 43, 28_763 / 60_420, "logistic"),
    "bike": (datasets.bike, 17_379, 12, 189.463, "linear"),
    "insurance": (datasets.insurance, 1_338, 8, 13_270.42, "linear"),
    "superconductor": (datasets.superconductor, 21_263, 81, 34.4212, "linear"),
    "gpu_sgemm": (datasets.gpu_sgemm, 241_600, 14, 4.62307, "linear"),
    "year_msd": (datasets.year_msd, 6_724, 12, 1_975.7851, "linear"),
}


def check(found: Dataset, rows: int, features: int, mean: float, loss: str) -> None:
    assert found.x.shape == (rows, features) and found.y.shape == (rows,)
    assert found.y.mean() == pytest.approx(mean, rel=1e-4)
    assert found.loss == loss
    assert len(set(found.names)) == features
    low, high = (np.array([getattr(c, end) for c in found.columns]) for end in ("low", "high"))
    assert (found.x >= low).all() and (found.x <= high).all()
    for signed in (True, False):
        x, y = found.scaled(signed=signed)
        assert np.abs(x).max() <= 1 and np.abs(y).max() <= 1
    # bounds are facts about the variables: few values lie on them by clipping, and they are not absurdly wide
    clipped = ((found.x == high) & ~found.indicators & (high > 1)).mean(axis=0)
    assert clipped.max() < 0.6
    assert np.ptp(found.x, axis=0)[~found.indicators] == pytest.approx(high[~found.indicators], rel=1)


@pytest.mark.data
@pytest.mark.parametrize("name", sorted(FILES))
def test_tables_of_the_directory(name: str) -> None:
    try:
        directory = data_directory()
    except InputError as error:
        pytest.skip(str(error))
    if not (directory / name).is_dir():
        pytest.skip(f"{name} is not in $SMPC_DATA")
    load, *expected = FILES[name]
    check(load(directory), *expected)  # type: ignore[arg-type]  # the tuple's types are FILES'


@pytest.mark.data
def test_adults_test_part_has_the_same_columns() -> None:
    try:
        directory = data_directory()
    except InputError as error:
        pytest.skip(str(error))
    found, train = datasets.adult(directory, "test"), datasets.adult(directory)
    assert found.x.shape == (16_281, 43) and found.columns == train.columns
    assert found.y.sum() == 3_846


def test_tables_of_statsmodels() -> None:
    pytest.importorskip("statsmodels")
    check(datasets.randhie(), 20_190, 9, 2.8604, "linear")
    check(datasets.fair(), 6_366, 16, 0.3224945, "logistic")


def test_directory_is_the_variables_or_the_given_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SMPC_DATA", str(tmp_path))
    assert data_directory() == data_directory(Path("/nowhere")) == tmp_path
    monkeypatch.delenv("SMPC_DATA")
    assert data_directory(tmp_path) == tmp_path
    for absent in (None, tmp_path / "absent"):
        with pytest.raises(InputError, match="SMPC_DATA"):
            data_directory(absent)


def test_absent_and_damaged_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"adult/adult\.data\.gz is not in"):
        datasets.adult(tmp_path)
    folder = tmp_path / "x"
    folder.mkdir()
    whole = gzip.compress(b"a,b\n1,2\n" * 100)
    (folder / "cut.gz").write_bytes(whole[:-9])
    (folder / "text.gz").write_bytes(b"a,b\n")
    (folder / "text.zip").write_bytes(b"a,b\n")
    with zipfile.ZipFile(folder / "good.zip", "w") as archive:
        archive.writestr("in.csv", "a,b\n")
    assert contents(folder / "good.zip", "in.csv") == b"a,b\n"
    for name, member in (("cut.gz", None), ("text.gz", None), ("text.zip", "in.csv"), ("good.zip", "out.csv")):
        with pytest.raises(InputError, match=r"damaged .*fetch it again") as caught:
            contents(folder / name, member)
        assert "\n" not in str(caught.value)


def test_text_columns_with_and_without_a_header() -> None:
    assert text_columns(b'"a",b\r\n1, x\n')["a"].tolist() == ["1"]
    assert text_columns(b"1,x\n2,y\n\n", ["a", "b"])["b"].tolist() == ["x", "y"]
    with pytest.raises(InputError, match="table"):
        text_columns(b"a,b\n1,2,3\n")
