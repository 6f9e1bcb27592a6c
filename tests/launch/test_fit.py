"""`smpc fit` on files from strangers: a model with finite coefficients, or one line of printable characters."""

from __future__ import annotations

import copy
import json
import warnings
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from launch.fit import fit_released
from mechanisms.guarantee import Guarantee
from protocols.data_release.fit import GRAM_SOLVERS, SOLVERS
from protocols.data_release.plan import ReleasePlan
from protocols.data_release.protocol import release
from protocols.data_release.released_file import KEY, to_parquet
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from smpc import Cast, ClearSession, InputError
from smpc.values import value_of
from tests.support import held, schema, tables


@cache
def table_of(method: str) -> pa.Table:
    """A real release of a few records, as a table with metadata; `part`: that of one party."""
    of = schema(12, {"ann": 1, "bob": 1}, "bob")
    delta = Fraction(1, 10**5)
    if method == "gram":
        plan: Any = Plan.make(of, epsilon=Fraction(1), options=Options(mechanism="gaussian", delta=delta))
    else:
        chosen = "dgm" if method == "dgm" else "rmgm"
        plan = ReleasePlan.make(of, epsilon=Fraction(1), delta=delta, method=chosen)
    s = ClearSession(Cast(tuple(of.features), dealer="dealer" if method == "gram" else None))
    done = release(s, held(s, tables(of)), plan, "abc")
    data = value_of(done.data["bob" if method == "part" else "server"])
    return parquet.read_table(pa.BufferReader(to_parquet(data)))


METHODS = ("rmgm", "part", "dgm", "gram")
ODD = st.sampled_from(
    [
        *(None, True, False, 0, -1, 1, 2, 12, 10**400, -(10**400), 2**53 + 1, 0.5, 1e-300, 1e300, -1e300),
        *(
            "",
            "1",
            "1/0",
            "1/3",
            "inf",
            "nan",
            "-1",
            "1e99999999",
            "9" * 999,
            "x" * 300,
            "a\x1b[2J\x07",
            "\n",
            "é",
            "\ud800",
        ),
        *("rmgm", "dgm", "gram", "(ones)", "intercept", "ann0", "y", "record", "party", "label", "ann", "server"),
        *([], {}, [1], [[]], [0, 1], [1, 0], [-1, 1], [-1e300, 1e300], [None, None], {"a": 1}, [{}], ["ann"]),
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a JSON value, the whole included."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [path, *(place for key in keys for place in places(value[key], (*path, key)))]


@st.composite
def mutated(draw: st.DrawFn, about: Any) -> Any:
    about = copy.deepcopy(about)
    for _ in range(draw(st.integers(1, 3))):
        *path, last = ("root", *draw(st.sampled_from(places(about))))
        where: Any = {"root": about}
        for key in path:
            where = where[key]
        change = draw(st.sampled_from(["replace", "replace", "replace", "remove", "repeat"]))
        if change == "replace":
            where[last] = copy.deepcopy(draw(ODD))
        elif change == "remove" and path:
            del where[last]
        elif isinstance(where, list):
            where.append(copy.deepcopy(where[last]))
        if not path:
            return where["root"]
    return about


@st.composite
def changed_table(draw: st.DrawFn, table: pa.Table) -> pa.Table:
    change = draw(st.sampled_from(["none", "none", "none", "rows", "value", "type", "drop", "rename", "twice"]))
    number = draw(st.integers(0, table.num_columns - 1))
    name = table.column_names[number]
    if change == "rows":
        return table.slice(0, draw(st.integers(0, len(table))))
    if change == "value":
        values = table[name].to_numpy().copy()
        values[draw(st.integers(0, len(values) - 1))] = draw(
            st.sampled_from([0.0, 1.0, -1e18, 1e18, 1e300, np.nan, np.inf])
        )
        return table.set_column(number, pa.field(name, pa.float64(), nullable=False), pa.array(values))
    if change == "type":
        kind, value = draw(st.sampled_from([(pa.float32(), 1), (pa.int64(), 1), (pa.string(), "1")]))
        return table.set_column(number, name, pa.array([value] * len(table), kind))
    if change == "drop":
        return table.drop_columns([name])
    if change == "rename":
        return table.rename_columns([draw(st.sampled_from(["a\x1b[2J", "", name, "y"])), *table.column_names[1:]])
    return table.append_column(name, table[name]) if change == "twice" else table


def check(path: Path, solver: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            said = fit_released([path], solver, None, path.with_suffix(".json"))
        except InputError as error:
            assert str(error).isprintable() and len(str(error)) < 2000
            return
    assert all(line.isprintable() for line in said.splitlines())
    model = json.loads(path.with_suffix(".json").read_text())
    assert np.isfinite(list(model["coefficients"].values())).all()
    path.with_suffix(".json").unlink()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fit")


def test_a_ridge_that_nobody_would_use_is_refused(folder: Path) -> None:
    parquet.write_table(table_of("gram"), folder / "gram.parquet")
    with pytest.raises(InputError, match=r"--ridge 0.5: a gram release finds its own"):
        fit_released([folder / "gram.parquet"], None, 0.5, None)
    parquet.write_table(table_of("rmgm"), folder / "rmgm.parquet")
    for ridge in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"ridge = .*: must be a number of at least 0"):
            fit_released([folder / "rmgm.parquet"], None, ridge, None)


@given(data=st.data())
@settings(max_examples=120)
@pytest.mark.parametrize("method", METHODS)
def test_mutated_files_give_a_model_or_one_line(method: str, folder: Path, data: st.DataObject) -> None:
    table = table_of(method)
    about = data.draw(mutated(json.loads(table.schema.metadata[KEY])))
    changed = data.draw(changed_table(table)).replace_schema_metadata({KEY: json.dumps(about)})
    parquet.write_table(changed, folder / "released.parquet")
    check(folder / "released.parquet", data.draw(st.sampled_from([None, *SOLVERS, *GRAM_SOLVERS, "magic"])))


@given(data=st.data())
@settings(max_examples=60)
def test_files_with_other_bytes_give_a_model_or_one_line(folder: Path, data: st.DataObject) -> None:
    path = folder / "bytes.parquet"
    parquet.write_table(table_of("rmgm"), path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content), len(content) // 2, 8, 0]))])
    check(path, None)


@given(data=st.data())
@settings(max_examples=100)
def test_a_mutated_guarantee_is_one_or_a_value_error(data: st.DataObject) -> None:
    about = data.draw(mutated(json.loads(table_of("rmgm").schema.metadata[KEY])["guarantee"]))
    try:
        found = Guarantee.from_json(json.dumps(about))
    except ValueError as error:
        assert str(error)
    else:
        assert all(line.isprintable() for line in str(found).splitlines())
