"""Released files: read back as written, the guarantee with them; damaged files are refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from protocols.data_release.fit import fit
from protocols.data_release.plan import ReleasePlan
from protocols.data_release.protocol import release
from protocols.data_release.released_data import ONES, ReleasedData
from protocols.data_release.released_file import KEY, read_released, to_parquet
from protocols.data_release.released_metadata import to_json
from smpc import Cast, ClearSession, InputError
from smpc.values import value_of
from tests.support import held, schema, tables


@pytest.fixture(scope="module")
def released() -> dict[str, ReleasedData]:
    of = schema(200, {"ann": 2, "bob": 1, "cid": 3}, "bob")
    plan = ReleasePlan.make(of, epsilon=Fraction(1), delta=Fraction(1, 10**5), rows=50)
    s = ClearSession(Cast(tuple(of.features), dealer=None))
    done = release(s, held(s, tables(of)), plan, "abc")
    return {name: value_of(data) for name, data in done.data.items()}


def test_a_file_is_the_release_exactly(tmp_path: Path, released: dict[str, ReleasedData]) -> None:
    (tmp_path / "r.parquet").write_bytes(to_parquet(released["server"]))
    back = read_released([tmp_path / "r.parquet"])
    assert np.array_equal(back.values, released["server"].values)
    for name in ("release", "method", "records", "label", "columns", "guarantee", "model"):
        assert getattr(back, name) == getattr(released["server"], name), name
    weights = fit(back).weights
    assert np.allclose(weights, list(back.model.values()), rtol=1e-12)


def test_parts_make_the_whole_whatever_their_order(tmp_path: Path, released: dict[str, ReleasedData]) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in ("cid", "ann", "bob")]
    for path in paths:
        path.write_bytes(to_parquet(released[path.stem]))
    joined = fit(read_released(paths)).weights
    whole = released["server"]
    assert joined[0] == pytest.approx(fit(whole).weights[0])
    assert sorted(joined[1:]) == pytest.approx(sorted(fit(whole).weights[1:]))


def test_metadata_is_readable_without_us(tmp_path: Path, released: dict[str, ReleasedData]) -> None:
    """Any Parquet reader sees named columns, and one JSON text with everything public."""
    (tmp_path / "r.parquet").write_bytes(to_parquet(released["server"]))
    table = parquet.read_table(tmp_path / "r.parquet")
    assert table.column_names == [ONES, *released["server"].names]
    about = json.loads(table.schema.metadata[KEY])
    assert about["method"] == "rmgm" and about["records"] == 200
    assert {"name", "bounds", "range", "noise_variance"} == set(about["columns"][0])
    assert about["guarantee"]["rows"][0]["delta"] == "1/100000"


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[pa.Table], pa.Table]:
    def do(table: pa.Table) -> pa.Table:
        about = json.loads(table.schema.metadata[KEY])
        change(about)
        return table.replace_schema_metadata({KEY: json.dumps(about)})

    return do


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda t: t.replace_schema_metadata({}), "no release"),
        (lambda t: t.replace_schema_metadata({KEY: "{"}), "cannot be read"),
        (lambda t: t.replace_schema_metadata({KEY: "[]"}), "cannot be read"),
        (lambda t: t.drop_columns(["ann0"]), "its columns are"),
        (lambda t: t.set_column(1, "ann0", pa.array(["x"] * len(t))), "all of type double"),
        (lambda t: t.set_column(1, "ann0", pa.array([float("nan")] * len(t))), "not finite"),
        (lambda t: t.set_column(1, "ann0", pa.array([None] * len(t), pa.float64())), "not finite"),
        (changed(lambda a: a.update(version=99)), "version is 99"),
        (changed(lambda a: a.update(method="magic")), "method is 'magic'"),
        (changed(lambda a: a.update(records=0)), "records is 0: must be a whole number from 1"),
        (changed(lambda a: a.update(records=True)), "records is True"),
        (changed(lambda a: a.pop("guarantee")), "guarantee"),
        (changed(lambda a: a["guarantee"].pop("rows")), "guarantee"),
        (changed(lambda a: a["columns"][0].update(noise_variance=-1)), "noise variance of ann0 is -1"),
        (changed(lambda a: a["columns"][0].update(noise_variance="nan")), "noise variance of ann0 is 'nan': must be"),
        (changed(lambda a: a["columns"][0].update(range=[1, 1])), r"range of ann0 is \[1.0, 1.0\]: must be"),
        (changed(lambda a: a["columns"][0].update(range=[1])), "cannot be read"),
        (changed(lambda a: a["columns"][0].update(bounds=[2, 1])), "need low < high"),
        (changed(lambda a: a.update(label="nobody", model={})), "no part has the label nobody"),
        (changed(lambda a: a.update(label="ann0")), "its model has the coefficients"),
        (changed(lambda a: a.update(model=[])), r"model of its metadata is \[\]: must be a JSON object"),
        (changed(lambda a: a["model"].update(ann0="1")), "coefficient of ann0 is '1': must be a number"),
        (changed(lambda a: a["model"].update(ann0=10**400)), "metadata are no JSON text of finite numbers"),
        (changed(lambda a: a.update(records=2**53 + 1)), "must be a whole number from 1 to 2.53"),
        (changed(lambda a: a.update(records=49)), "it has 50 rows, a rmgm release of 49 records 1 to 49"),
        (changed(lambda a: a.update(method="gram")), "it has 50 rows, a gram release of 200 records 8 to 8"),
        (changed(lambda a: a.update(method="dgm")), "it has 50 rows, a dgm release of 200 records 200 to 200"),
        (changed(lambda a: a.update(method="dgm", records=50)), "other numbers than 1"),
        (changed(lambda a: a["columns"][0].update(range=[-1, 1e400])), "no JSON text of finite numbers"),
        (changed(lambda a: a["columns"][0].update(range=[-1, 1e200])), "range of ann0 is .* must be at least 0.5 wide"),
        (changed(lambda a: a["columns"][0].update(name="a\x1b[2J")), r"column is 'a\\x1b\[2J': must be 1 to 200 print"),
        (changed(lambda a: a["columns"][0].update(name="ann1")), "all different"),
        (changed(lambda a: a["columns"][0].update(noise_variance=2.0**125)), "must be from 0 to 2.124"),
        (changed(lambda a: a["guarantee"]["rows"][0].update(epsilon="1/0")), "guarantee is none: .*'1/0' is no number"),
        (changed(lambda a: a["guarantee"]["rows"][0].update(epsilon="1e99999999")), "is no number: it must be"),
        (changed(lambda a: a["guarantee"]["rows"][0].update(epsilon="9" * 400)), "is above 2.1000: say inf"),
        (changed(lambda a: a["guarantee"]["rows"][0].update(mechanism="\x07")), "no line of printable characters"),
        (changed(lambda a: a.update(version=True)), "version is True"),
        (lambda t: t.replace_schema_metadata({KEY: "[" * 10**5 + "]" * 10**5}), "too long or too deep"),
        (lambda t: t.replace_schema_metadata({KEY: b"\xff"}), "no JSON text"),
        (lambda t: t.slice(0, 0), "it has 0 rows"),
        (lambda t: t.set_column(1, "ann0", pa.array(["1"] * len(t))), "all of type double"),
        (lambda t: t.set_column(1, "ann0", pa.array([1e300] * len(t))), "not finite, or beyond 2.62"),
    ],
)
def test_damaged_files_are_refused_in_one_line(
    tmp_path: Path, released: dict[str, ReleasedData], damage: Callable[[pa.Table], pa.Table], said: str
) -> None:
    path = tmp_path / "r.parquet"
    path.write_bytes(to_parquet(released["server"]))
    parquet.write_table(damage(parquet.read_table(path)), path)
    with pytest.raises(InputError, match=said) as caught:
        read_released([path])
    assert "\n" not in str(caught.value)


def test_no_file_a_missing_one_and_one_that_is_no_parquet(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no released file is given"):
        read_released([])
    with pytest.raises(InputError, match=r"absent.parquet: cannot be read .*No such file"):
        read_released([tmp_path / "absent.parquet"])
    (tmp_path / "text.parquet").write_text("hello")
    with pytest.raises(InputError, match=r"text.parquet: cannot be read"):
        read_released([tmp_path / "text.parquet"])


def test_a_small_file_does_not_fill_the_memory(tmp_path: Path, released: dict[str, ReleasedData]) -> None:
    """24 million numbers, all the same."""
    whole = pa.table({name: np.ones(10**6) for name in [ONES, *released["server"].names]})
    about = json.loads(to_json(released["server"]))
    about.update(method="dgm", records=3 * 10**6)
    schema = pa.schema([field.with_nullable(False) for field in whole.schema]).with_metadata({KEY: json.dumps(about)})
    with parquet.ParquetWriter(tmp_path / "r.parquet", schema) as file:
        for _ in range(3):
            file.write_table(whole.cast(schema))
    assert (tmp_path / "r.parquet").stat().st_size < 10**6
    with pytest.raises(InputError, match=r"it says that it has 24000000 numbers in \d+ bytes"):
        read_released([tmp_path / "r.parquet"])
