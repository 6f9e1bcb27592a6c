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
        (lambda t: t.set_column(1, "ann0", pa.array(["x"] * len(t))), "cannot be read"),
        (lambda t: t.set_column(1, "ann0", pa.array([float("nan")] * len(t))), "not finite"),
        (lambda t: t.set_column(1, "ann0", pa.array([None] * len(t), pa.float64())), "not finite"),
        (changed(lambda a: a.update(version=99)), "version is 99"),
        (changed(lambda a: a.update(method="magic")), "method is 'magic'"),
        (changed(lambda a: a.update(records=0)), "records=0"),
        (changed(lambda a: a.update(records=True)), "records=True"),
        (changed(lambda a: a.pop("guarantee")), "guarantee"),
        (changed(lambda a: a["guarantee"].pop("rows")), "guarantee"),
        (changed(lambda a: a["columns"][0].update(noise_variance=-1)), "noise variance -1"),
        (changed(lambda a: a["columns"][0].update(noise_variance="nan")), "noise variance nan"),
        (changed(lambda a: a["columns"][0].update(range=[1, 1])), r"range \[1.0, 1.0\]"),
        (changed(lambda a: a["columns"][0].update(range=[1])), "cannot be read"),
        (changed(lambda a: a["columns"][0].update(bounds=[2, 1])), "need low < high"),
        (changed(lambda a: a.update(label="nobody")), "no part has the label nobody"),
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
