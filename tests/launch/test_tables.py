"""Tables: what is read is exact and sorted by id, every fault is one line, and no second table is held in memory."""

from __future__ import annotations

import datetime
import decimal
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import launch.tables.table
from launch.jobfile.parties import PartySpec
from launch.tables.files import column_names, is_here
from launch.tables.table import Table, TableError, read_table
from protocols.schema import Column

U, V = Column("u", 0, 10), Column("v", -5, 5)
HEADER = "id,u,v\n"
WIDE = "id," + "u" * 300_000 + "\n1,1\n"
FAR = "".join(f"{i},1,1\n" for i in range(300_000))  # more than two blocks of a file


def spec(path: Path, columns: tuple[Column, ...] = (U, V)) -> PartySpec:
    return PartySpec(
        name="a", address=None, certificate=None, table=path, id="id", columns=columns, ledger=None, data_set="a"
    )


def csv(folder: Path, content: str | bytes, *, clip: bool = False) -> Table:
    path = folder / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(spec(path), clip=clip)


def parquet(folder: Path, name: str = "t.parquet", **columns: Any) -> Table:
    """Three people 2, 1, 3 unless other columns are given."""
    path = folder / name
    three = {"id": [2, 1, 3], "u": [2.0, 1.0, 3.0], "v": [0.0, 1.0, 2.0]}
    pa.parquet.write_table(pa.table({**three, **columns}), path)
    return read_table(spec(path), clip=False)


def fault(folder: Path, content: str | bytes) -> str:
    """The one line that a CSV file is refused with, without the path that it must begin with."""
    with pytest.raises(TableError) as caught:
        csv(folder, content)
    return checked(caught.value, folder / "t.csv")


def parquet_fault(folder: Path, **columns: Any) -> str:
    with pytest.raises(TableError) as caught:
        parquet(folder, **columns)
    return checked(caught.value, folder / "t.parquet")


def checked(error: TableError, path: Path) -> str:
    line = str(error)
    assert line.startswith(f"{path}: ") and line.isprintable() and len(line) < len(str(path)) + 300, line
    return line.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "ids", "columns"),
    [
        ("2,1,2\n1,3,4\n", [1, 2], [[3, 1], [4, 2]]),
        ("2,1,2\n1,3,4", [1, 2], [[3, 1], [4, 2]]),
        ("10,1,2\n9,3,4\n-2,0,0\n", [-2, 9, 10], [[0, 3, 1], [0, 4, 2]]),  # as numbers, not as text
        ("b,1,2\na,3,4\n", ["a", "b"], [[3, 1], [4, 2]]),
        ("7,1,1\n007,2,2\n10,3,3\n", ["007", "10", "7"], [[2, 3, 1], [2, 3, 1]]),  # three people
        ("1,1,1\n99999999999999999999,2,2\n", ["1", "99999999999999999999"], [[1, 2], [1, 2]]),
        ('"a,b","1","2"\n"c""d",3,4\n', ["a,b", 'c"d'], [[1, 3], [2, 4]]),
        ('"b\nb",1,2\na,3,4\n', ["a", "b\nb"], [[3, 1], [4, 2]]),
        ("1,1,1\n\n2,2,2\n\n\n", [1, 2], [[1, 2], [1, 2]]),
        ("1,true,1\n2,False,0\n3,2.5,TRUE\n", [1, 2, 3], [[1, 0, 2.5], [1, 0, 1]]),
        ("1, 3 ,+1\n2,1e0,-.5\n", [1, 2], [[3, 1], [1, -0.5]]),
        ("1,10,-5\n2,0,5\n", [1, 2], [[10, 0], [-5, 5]]),  # the bounds belong to the interval
        ("1,1e-400,0\n2,9.999999999999999,0\n", [1, 2], [[0, 9.999999999999999], [0, 0]]),
    ],
)
def test_csv(tmp_path: Path, content: str, ids: list[Any], columns: list[list[float]]) -> None:
    table = csv(tmp_path, HEADER + content)
    assert table.ids.to_pylist() == ids
    np.testing.assert_array_equal(table.columns, columns)
    assert table.clipped == {}


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    table = csv(tmp_path, "v,note,id,u\n2,ä,2,1\n4,,1,3\n")
    np.testing.assert_array_equal(table.columns, [[3, 1], [4, 2]])
    path = tmp_path / "t.csv"
    np.testing.assert_array_equal(read_table(spec(path, (V, U)), clip=False).columns, [[4, 2], [3, 1]])


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_line_endings_and_byte_order_mark(tmp_path: Path, ending: str, start: bytes) -> None:
    table = csv(tmp_path, start + (HEADER + "2,1,2\n1,3,4\n").replace("\n", ending).encode())
    assert table.ids.to_pylist() == [1, 2]
    np.testing.assert_array_equal(table.columns, [[3, 1], [4, 2]])


def test_line_breaks_inside_cells_across_blocks(tmp_path: Path) -> None:
    """Newlines are counted to size the table; those inside cells are no rows."""
    rows = 120_000
    table = csv(tmp_path, "id,u,v,note\n" + "".join(f'{i},{i % 10},1,"one\ntwo\r\n"\n' for i in range(rows)))
    assert table.columns.shape == (2, rows)
    np.testing.assert_array_equal(table.columns[0], np.arange(rows) % 10)


@given(
    st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(0, 10), st.floats(-5, 5)),
        min_size=2,
        max_size=30,
        unique_by=lambda row: row[0],
    ),
    st.booleans(),
    st.booleans(),
)
@example([(2**53 + 1, 0.1 + 0.2, -5.0), (2**53, 5e-324, 5.0)], True, False)
def test_shuffled_rows_read_exactly_and_sorted(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, float, float]], as_csv: bool, as_text: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    mark = "p" if as_text else ""  # p1, p2, ... are text
    if as_csv:
        table = csv(folder, HEADER + "".join(f"{mark}{i},{u!r},{v!r}\n" for i, u, v in rows))
    else:
        ids = [f"{mark}{i}" for i, _, _ in rows] if as_text else [i for i, _, _ in rows]
        table = parquet(folder, id=ids, u=[row[1] for row in rows], v=[row[2] for row in rows])
    wanted = sorted(rows, key=lambda row: f"p{row[0]}") if as_text else sorted(rows)
    assert table.ids.to_pylist() == [f"p{i}" if as_text else i for i, _, _ in wanted]
    assert table.columns.tolist() == [[row[1] for row in wanted], [row[2] for row in wanted]]


def test_ids_are_the_same_whatever_the_file(tmp_path: Path) -> None:
    """Parties with different tools must find the same order of the same people."""
    orders = {
        tuple(map(str, ids.to_pylist()))
        for ids in (
            csv(tmp_path, HEADER + "10,1,1\n9,1,1\n2,1,1\n").ids,
            parquet(tmp_path, id=pa.array([9, 10, 2], pa.int8())).ids,
            parquet(tmp_path, id=pa.array([9, 10, 2], pa.uint64())).ids,
            parquet(tmp_path, id=pa.array(["10", "9", "2"])).ids,
            parquet(tmp_path, id=pa.array(["10", "9", "2"], pa.large_string()).dictionary_encode()).ids,
            parquet(tmp_path, id=pa.array([9.0, 10.0, 2.0])).ids,
        )
    }
    assert orders == {("2", "9", "10")}


def test_clipping_counts(tmp_path: Path) -> None:
    table = csv(tmp_path, HEADER + "1,11,1\n2,-1,2\n3,5,5\n", clip=True)
    np.testing.assert_array_equal(table.columns, [[10, 0, 5], [1, 2, 5]])
    assert table.clipped == {"u": 2}
    content = HEADER + "1,11,1\n2,-1,-5.000001\n3,5,5\n"
    remedy = "correct the bounds, or say clip = true in [job]"
    assert fault(tmp_path, content) == (
        f"u is outside its bounds [0, 10] in 2 rows; {remedy} | v is outside its bounds [-5, 5] in 1 rows; {remedy}"
    )


NUMBER = "a number is needed"


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("x", f"has the text 'x' in data row 2; {NUMBER}"),
        ("NA", f"has the text 'NA' in data row 2; {NUMBER}"),
        ("0x10", f"has the text '0x10' in data row 2; {NUMBER}"),
        ("1_0", f"has the text '1_0' in data row 2; {NUMBER}"),
        ("٣", f"has the text '٣' in data row 2; {NUMBER}"),
        ("1 2", f"has the text '1 2' in data row 2; {NUMBER}"),
        ('"1,5"', f"has the text '1,5' in data row 2; {NUMBER}, with a decimal point"),
        ("2024-06-06", f"has the text '2024-06-06' in data row 2; {NUMBER}: make a date days or years"),
        ("6.6.2024", f"has the text '6.6.2024' in data row 2; {NUMBER}: make a date days or years"),
        ("10.0.0.7", f"has the text '10.0.0.7' in data row 2; {NUMBER}"),
        ("3%", f"has the text '3%' in data row 2; {NUMBER}"),
        ("\x1b[2J", rf"has the text '\x1b[2J' in data row 2; {NUMBER}"),
        ("y" * 1000, f"has the text '{'y' * 20}' in data row 2; {NUMBER}"),
        ("", "is empty in data row 2; fill it in or leave the row out"),
        ('""', "is empty in data row 2; fill it in or leave the row out"),
        ("nan", "is NaN or infinite in data row 2; replace it or leave the row out"),
        ("NaN", "is NaN or infinite in data row 2; replace it or leave the row out"),
        ("-Infinity", "is NaN or infinite in data row 2; replace it or leave the row out"),
        ("1e400", "is NaN or infinite in data row 2; replace it or leave the row out"),
    ],
)
def test_bad_cell(tmp_path: Path, cell: str, problem: str) -> None:
    assert fault(tmp_path, HEADER + f"1,1,1\n2,{cell},1\n3,true,1\n") == f"u {problem}"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("x,oops,1", "u has the text 'oops' in data row 300001; a number is needed"),
        ("x,1,nan", "v is NaN or infinite in data row 300001; replace it or leave the row out"),
        ("x,,1", "u is empty in data row 300001; fill it in or leave the row out"),
        (",1,1", "id is empty in data row 300001; every row needs an id"),
        ("x,1", "line 300002 has 2 values, the first line 3; commas separate them"),
    ],
)
def test_a_bad_row_in_a_later_block_is_named(tmp_path: Path, row: str, problem: str) -> None:
    assert fault(tmp_path, f"{HEADER}{FAR}{row}\n").startswith(problem)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("", "is empty; needs a line of column names and at least 2 data rows"),
        ("\n\n\n", "is empty; needs a line of column names and at least 2 data rows"),
        ("id,u,v", "is empty; needs a line of column names and at least 2 data rows"),
        (HEADER, "has 0 data rows; needs at least 2"),
        (HEADER + "1,1,1\n", "has 1 data rows; needs at least 2"),
        (HEADER + "1,1,1\n1,2,2\n2,1,1\n2,1,1\n", "2 ids of id are repeated, '1' for one; keep one row an id"),
        (HEADER + "7,1,1\n1.2E+05,2,2\n", "id was shortened by a spreadsheet in data row 2; export the ids as text"),
        (HEADER + "b,1,1\na,2,2\nb,1,1\n", "1 ids of id are repeated, 'b' for one; keep one row an id"),
        ("id,u\n1,1\n2,1\n", "column 'v' is missing; the table has 'id', 'u'"),
        ("id,u,v,u\n1,1,1,1\n", "column 'u' appears twice; the table has 'id', 'u', 'v', 'u'"),
        ("id, u,v\n1,1,1\n", "column 'u' is missing; the table has 'id', ' u', 'v'"),
        ("id;u;v\n1;1;1\n", "column 'id' is missing; the table has 'id;u;v'; semicolons separate its columns: "
         "save it with commas, and numbers with decimal points"),
        ("id;u;v\n1;1,5;1\n", "line 2 has 2 values, the first line 1; semicolons separate its columns: "
         "save it with commas, and numbers with decimal points"),
        ("ID,u,v\n1,1,1\n", "column 'id' is missing; the table has 'ID', 'u', 'v'; is 'ID' meant?"),
        ("id,\x1b[2J\n1,1\n", "column 'u' is missing; the table has 'id', '\\x1b[2J'"),
        (",".join(map(str, range(20))) + "\n", "column 'id' is missing; the table has '0', '1', '2', '3', '4', '5', "
         "'6', '7', '8', '9' and 10 more"),
        ("my table\nid,u,v\n1,1,1\n", "line 2 has 3 values, the first line 1; the first line must be the column names"),
        pytest.param(WIDE, "the first line, of column names, is longer than 262144 bytes", id="wide"),
        (HEADER + "1,1,1\n2,1\n", "line 3 has 2 values, the first line 3; commas separate them"),
        (HEADER + "1,1,1,1\n2,1,1\n", "line 2 has 4 values, the first line 3; commas separate them"),
        (HEADER + '1,"1,2\n2,3,4\n', "line 2 has 2 values, the first line 3; commas separate them"),
        (HEADER + '1,"1,2\n' + FAR, "has a row longer than 262144 bytes; is a quotation mark left open?"),
        ((HEADER + "1,1,1\n2,1,1\n").encode("utf-16"), "is not UTF-8 text; save it as CSV in UTF-8, or as Parquet"),
        ((HEADER + "1,1,1\n2,1,1\n").encode("utf-16-be"), "is not UTF-8 text; save it as CSV in UTF-8, or as Parquet"),
        (b"id,u,v\n\xe4,1,1\nb,1,1\n", "is not UTF-8 text; save it as CSV in UTF-8, or as Parquet"),
        (b"id,u,v,\xe4\n1,1,1,1\n2,1,1,1\n", "is not UTF-8 text; save it as CSV in UTF-8, or as Parquet"),
        (bytes(1000), "is not UTF-8 text; save it as CSV in UTF-8, or as Parquet"),
        (gzip.compress(b"id,u,v\n", mtime=0), "is a compressed file or a spreadsheet; save it as plain CSV or Parquet"),
        (b"PK\x03\x04" + bytes(50), "is a compressed file or a spreadsheet; save it as plain CSV or Parquet"),
        (b"PAR1" + bytes(50), "cannot be read as a table (Parquet magic bytes not found in footer."),
    ],
)  # fmt: skip
def test_bad_csv(tmp_path: Path, content: str | bytes, wanted: str) -> None:
    assert fault(tmp_path, content).startswith(wanted)


def test_no_file_to_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path / "none.csv", "does not exist; correct its name"),
        (tmp_path / "none.parquet", "does not exist; correct its name"),
        (tmp_path, "is a folder; a table is a file"),
        (tmp_path / "file" / "x.csv", "does not exist; correct its name"),
    ):
        with pytest.raises(TableError) as caught:
            read_table(spec(path), clip=False)
        assert str(caught.value).startswith(f"{path}: {reason}")


def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be waited for without a word."""
    pipe, loop, link, device = (tmp_path / name for name in ("pipe.csv", "loop.csv", "link.parquet", "zero.csv"))
    os.mkfifo(pipe)
    loop.symlink_to(loop.name)
    link.symlink_to(pipe.name)
    device.symlink_to("/dev/zero")
    for path, reason in (
        (pipe, "is a pipe; a table is a file, which is read more than once"),
        (link, "is a pipe; a table is a file, which is read more than once"),
        (device, "is a device; a table is a file, which is read more than once"),
        (loop, "is a link that leads back to itself; correct it"),
        (tmp_path / ("x" * 300), "cannot be read (File name too long); correct its name"),
    ):
        for ask in (is_here, column_names, lambda path: read_table(spec(path), clip=False)):
            with pytest.raises(TableError) as caught:
                ask(path)
            assert str(caught.value) == f"{path}: {reason}"
    assert not is_here(tmp_path / "none") and not is_here(Path("null\0byte"))


def test_a_link_to_a_table_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(HEADER + "1,1,0\n2,1,1\n")
    (tmp_path / "link").symlink_to("t.csv")
    assert is_here(tmp_path / "link") and read_table(spec(tmp_path / "link"), clip=False).rows == 2


@pytest.mark.parametrize(
    ("u", "values"),
    [
        (pa.array([2, 1, 3], pa.int8()), [1, 2, 3]),
        (pa.array([2, 1, 3], pa.uint64()), [1, 2, 3]),
        (pa.array(np.array([2, 1, 3], np.float16)), [1, 2, 3]),
        (pa.array([0.1, 1, 3], pa.float32()), [1, float(np.float32(0.1)), 3]),
        (pa.array([True, False, True]), [0, 1, 1]),
        (pa.array([decimal.Decimal("1.25"), decimal.Decimal("0.1"), decimal.Decimal("2")]), [0.1, 1.25, 2]),
        (pa.array([decimal.Decimal("1.25")] * 3, pa.decimal256(60, 2)), [1.25] * 3),
        (pa.array([2, 1, 3]).dictionary_encode(), [1, 2, 3]),
        (pa.array(["2", "1e0", "3"]), [1, 2, 3]),
        (pa.array(["2", "1e0", "3"], pa.large_string()), [1, 2, 3]),
        (pa.array(["2", "true", "3"]).dictionary_encode(), [1, 2, 3]),  # pandas' categorical
    ],
)
def test_parquet_types(tmp_path: Path, u: pa.Array, values: list[float]) -> None:
    for name in ("t.parquet", "t.csv"):  # the content tells what a file is, not its name
        table = parquet(tmp_path, name, u=u)
        assert table.ids.to_pylist() == [1, 2, 3]
        np.testing.assert_array_equal(table.columns, [values, [1, 0, 2]])


HOLDS = "a column of numbers is needed"


@pytest.mark.parametrize(
    ("u", "problem"),
    [
        (pa.array([1, None, 3]), "u is empty in data row 2; fill it in or leave the row out"),
        (pa.nulls(3), "u is empty in data row 1; fill it in or leave the row out"),
        (pa.array(["1", "", "3"], pa.large_string()), "u is empty in data row 2; fill it in or leave the row out"),
        (pa.array([1.0, 2.0, float("nan")]), "u is NaN or infinite in data row 3; replace it or leave the row out"),
        (pa.array([1.0, float("-inf"), 2]), "u is NaN or infinite in data row 2; replace it or leave the row out"),
        (pa.array([1, 2, 2**53 + 1]), "u holds integers beyond 2^53; scale the column down"),
        (pa.array([1, 2, 2**64 - 1], pa.uint64()), "u holds integers beyond 2^53; scale the column down"),
        (pa.array([decimal.Decimal(10) ** 30] * 3), "u is outside its bounds [0, 10] in 3 rows"),
        (pa.array([[1], [2], [3]]), f"u holds list<element: int64>; {HOLDS}"),
        (pa.array([{"x": 1}] * 3), f"u holds struct<x: int64>; {HOLDS}"),
        (pa.array([datetime.date(2020, 1, 1)] * 3), f"u holds date32[day]; {HOLDS}: make a date days or years"),
        (pa.array([datetime.datetime(2020, 1, 1)] * 3), f"u holds timestamp[us]; {HOLDS}: make a date days or years"),
        (pa.array([b"1", b"2", b"\xff"]), f"u holds binary; {HOLDS}"),
        (pa.array(["1", "x", "3"]), "u has the text 'x' in data row 2; a number is needed"),
    ],
)
def test_bad_parquet_column(tmp_path: Path, u: pa.Array, problem: str) -> None:
    assert parquet_fault(tmp_path, u=u).startswith(problem)


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (pa.array([1, None, 3]), "id is empty in data row 2; every row needs an id"),
        (pa.array(["a", "", "c"]).dictionary_encode(), "id is empty in data row 2; every row needs an id"),
        (pa.array([[1], [2], [3]]), "id holds list<element: int64>; ids are whole numbers or text"),
        (pa.array([b"1", b"\xff", b"2"]), "id holds binary; ids are whole numbers or text"),
        (pa.array([1, 1, 1]), "2 ids of id are repeated, '1' for one; keep one row an id"),
    ],
)
def test_bad_parquet_ids(tmp_path: Path, ids: pa.Array, problem: str) -> None:
    assert parquet_fault(tmp_path, id=ids) == problem


@pytest.mark.parametrize("more", ["", "4,4,4\n5,5,5\n"])
def test_a_file_that_changes_between_its_two_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    """Rows are lost or added after the ids were read."""
    path = tmp_path / "t.csv"
    path.write_text(HEADER + "1,1,1\n2,2,2\n3,3,3\n")
    sorted_ids = launch.tables.table._sorted_ids

    def then_change(of: PartySpec) -> Any:
        result = sorted_ids(of)
        path.write_text(HEADER + "1,1,1\n2,2,2\n" + more)
        return result

    monkeypatch.setattr(launch.tables.table, "_sorted_ids", then_change)
    with pytest.raises(TableError) as caught:
        read_table(spec(path), clip=False)
    assert checked(caught.value, path) == "changed while it was read; run again"


def test_bad_parquet_files(tmp_path: Path) -> None:
    parquet(tmp_path)
    path = tmp_path / "t.parquet"
    good = path.read_bytes()
    for content in (b"", good[:-100], good[:40] + bytes(20) + good[60:], HEADER.encode() + b"1,1,1\n2,2,2\n"):
        path.write_bytes(content)
        with pytest.raises(TableError) as caught:
            read_table(spec(path), clip=False)
        assert checked(caught.value, path).startswith("cannot be read as a table (")
    pa.parquet.write_table(pa.table({"id": pa.array([], pa.int64()), "u": pa.nulls(0), "v": pa.nulls(0)}), path)
    with pytest.raises(TableError, match="has 0 data rows"):
        read_table(spec(path), clip=False)


def test_parquet_row_groups_dots_and_duplicate_names(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    ids = np.random.default_rng(0).permutation(50_000)
    pa.parquet.write_table(pa.table({"id": ids, "u.x": ids % 7, "v": ids % 5}), path, row_group_size=777)
    table = read_table(spec(path, (Column("u.x", 0, 10), V)), clip=False)
    np.testing.assert_array_equal(table.columns, [np.arange(50_000) % 7, np.arange(50_000) % 5])
    one = pa.array([1, 2])
    pa.parquet.write_table(pa.Table.from_arrays([one, one, one, one], ["id", "u", "v", "u"]), path)
    with pytest.raises(TableError, match="column 'u' appears twice"):
        read_table(spec(path), clip=False)


pieces = st.sampled_from([b"id", b",", b"\n", b"\r", b'"', b"u", b"v", b"1", b"-", b"e", b"\0", b"\xff", b"nan", b" "])


@given(
    st.binary(max_size=200) | st.lists(pieces, max_size=60).map(b"".join), st.sampled_from([b"", b"id,u,v\n", b"PAR1"])
)
@example(b"1,1,1\n2,2,2\n", b"id,u,v\n")
def test_any_bytes_are_a_table_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, start: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        table = csv(folder, start + content)
    except TableError as error:
        checked(error, folder / "t.csv")
    else:
        assert table.columns.shape == (2, len(table.ids)) and np.isfinite(table.columns).all()


@given(st.data())
def test_a_damaged_parquet_file_is_a_table_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp()
    parquet(folder)
    path = folder / "t.parquet"
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        table = read_table(spec(path), clip=False)
    except TableError as error:
        checked(error, path)
    else:
        assert table.columns.shape == (2, len(table.ids))


ROWS, WIDTH = 1_000_000, 10
TABLE_BYTES = ROWS * WIDTH * 8
GROWTH = """
import sys
from pathlib import Path
import numpy, pyarrow.compute, pyarrow.csv, pyarrow.parquet
from launch.tables.table import read_table
from tests.launch.test_tables import WIDTH, spec
from protocols.schema import Column
columns = tuple(Column(f"c{i}", 0, 1) for i in range(WIDTH))
def peak():  # not getrusage's, which begins with the size of the process that started this one
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
table = read_table(spec(Path(sys.argv[1]), columns), clip=False)
print(peak() - before, table.ids.nbytes, *table.columns.shape, table.columns.flags.c_contiguous)
"""


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A table of ten columns and a million shuffled people, as Parquet and CSV, ids as numbers and as long text.

    `flat` is the hardest: one row group, neither compressed nor with the dictionaries that repeated values allow.
    """
    folder = tmp_path_factory.mktemp("million")
    rng = np.random.default_rng(0)
    columns = {f"c{i}": rng.integers(0, 1000, ROWS) / 1000 for i in range(WIDTH)}
    ids = rng.permutation(ROWS)
    text = pa.array(np.char.mod("00000000-0000-4000-8000-%012d", ids))
    numbers, texts = pa.table({"id": ids, **columns}), pa.table({"id": text, **columns})
    paths = {name: folder / name for name in FILES}
    pa.parquet.write_table(numbers, paths["numbers.parquet"])
    pa.parquet.write_table(texts, paths["text.parquet"])
    pa.parquet.write_table(texts, paths["flat.parquet"], row_group_size=ROWS, compression="none", use_dictionary=False)
    pa.csv.write_csv(numbers, paths["numbers.csv"])
    pa.csv.write_csv(texts, paths["text.csv"])
    return paths


FILES = ("numbers.parquet", "text.parquet", "flat.parquet", "numbers.csv", "text.csv")


@pytest.mark.mpc
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", FILES)
def test_reading_takes_one_table_and_little_more(million: dict[str, Path], name: str) -> None:
    command = [sys.executable, "-c", GROWTH, str(million[name])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "."})
    *numbers, contiguous = done.stdout.split()
    growth, ids, width, rows = map(int, numbers)
    assert (width, rows, contiguous) == (WIDTH, ROWS, "True")
    assert growth < TABLE_BYTES + ids + 90_000_000, f"{(growth - TABLE_BYTES - ids) / 1e6:.0f} MB"


def test_the_first_fault_of_every_column_is_told_at_once(tmp_path: Path) -> None:
    assert fault(tmp_path, "id,u,v\n1,x,9\n2,1,9\n3,1,0\n") == (
        "u has the text 'x' in data row 1; a number is needed | v is outside its bounds [-5, 5] in 2 rows; correct the "
        "bounds, or say clip = true in [job]"
    )
    columns = tuple(Column(f"c{i}", 0, 1) for i in range(8))
    path = tmp_path / "wide.csv"
    path.write_text(
        "id," + ",".join(column.name for column in columns) + "\n" + "1" + ",2" * 8 + "\n2" + ",0" * 8 + "\n"
    )
    with pytest.raises(TableError) as caught:
        read_table(spec(path, columns), clip=False)
    told = str(caught.value)
    assert told.count(" in 1 rows; ") == 5 and told.endswith(" | 3 more columns") and told.count(str(path)) == 1


def test_ids_are_compared_without_blanks_around_them_and_zeros_in_front_are_told(tmp_path: Path) -> None:
    assert fault(tmp_path, HEADER + "0017,1,1\n 0017,2,2\n") == (
        "1 ids of id are repeated, '0017' for one; keep one row an id"
    )
    assert csv(tmp_path, HEADER + "0017,1,1\n17,2,2\n017,3,3\n18,4,4\n").alike == 2
    assert csv(tmp_path, HEADER + "0017,1,1\n0018,2,2\n").alike == 0
    assert csv(tmp_path, HEADER + "17,1,1\n18,2,2\n").alike == 0


def test_who_cannot_clip_is_not_told_to(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEADER + "1,11,1\n2,1,1\n")
    for clip, where, remedy in (
        (None, "[job]", ""),
        (False, "[auxiliary]", ", or say clip = true in [auxiliary]"),
    ):
        with pytest.raises(TableError, match=r"; correct the bounds" + re.escape(remedy) + "$"):
            read_table(spec(path), clip=clip, clip_in=where)
