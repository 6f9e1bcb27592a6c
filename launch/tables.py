"""A party's own table: CSV or Parquet, checked before any connection, details for the owner's terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from launch.job import PartySpec
from protocols.schema import Column, Floats
from smpc.errors import InputError

EXACT_INTEGER = 2**53  # above, a float64 cannot hold every integer


class TableError(InputError):
    """A table that cannot be used."""


@dataclass
class Table:
    """Rows sorted by id. `columns` has shape (width, rows), the job's column order; `clipped` counts by column."""

    ids: npt.NDArray[Any]
    columns: Floats
    clipped: dict[str, int] = field(default_factory=dict)


def read_table(spec: PartySpec, *, clip: bool) -> Table:
    """The id and the job's columns of a party's table. Raises TableError, one line, for whatever is wrong with it."""
    names = [spec.id, *(column.name for column in spec.columns)]
    rows, batches = _open(spec.table, names)
    values = np.empty((len(spec.columns), rows))
    ids: list[pa.Array] = []
    start = 0
    for batch in batches:
        if start + batch.num_rows > rows:
            raise TableError(f"{spec.table}: grew while it was read; run again")
        ids.append(_ids(spec, batch.column(0)))
        for i, column in enumerate(spec.columns):
            values[i, start : start + batch.num_rows] = _numbers(spec, column, batch.column(i + 1), start)
        start += batch.num_rows
    if start < 2:
        raise TableError(f"{spec.table}: has {start} rows; needs at least 2")
    values = values[:, :start] if start < rows else values
    table = Table(_sort(spec, pa.chunked_array(ids), values), values)
    for i, column in enumerate(spec.columns):
        _check_bounds(spec, column, values[i], clip, table.clipped)
    return table


def _open(path: Path, names: list[str]) -> tuple[int, Iterator[pa.RecordBatch]]:
    """The number of rows (an upper bound) and the record batches of the named columns."""
    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            file = pa.parquet.ParquetFile(path)
            _check_columns(path, names, file.schema_arrow.names)
            batches = (batch.select(names) for batch in file.iter_batches(batch_size=1 << 14, columns=names))
            return file.metadata.num_rows, _guarded(path, batches)
        with open(path, "rb") as raw:
            lines = sum(part.count(b"\n") for part in iter(lambda: raw.read(1 << 20), b"")) + 1
        read = pa.csv.ReadOptions(block_size=1 << 20)
        with pa.csv.open_csv(path, read_options=read) as probe:
            _check_columns(path, names, probe.schema.names)
        # read as text: pyarrow would guess a column's type from its first block and fail in a later one
        convert = pa.csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.string()))
        return lines, _guarded(path, pa.csv.open_csv(path, read_options=read, convert_options=convert))
    except FileNotFoundError:
        raise TableError(f"{path}: does not exist; the job file's `table` names it") from None
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"{path}: cannot be read as a table ({_one_line(error)})") from None


def _guarded(path: Path, batches: Any) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except (OSError, pa.ArrowException) as error:
        raise TableError(f"{path}: cannot be read as a table ({_one_line(error)})") from None


def _check_columns(path: Path, names: list[str], found: list[str]) -> None:
    for name in names:
        if found.count(name) != 1:
            problem = "is missing" if name not in found else "appears twice"
            raise TableError(f"{path}: column {name!r} {problem}; the table has {', '.join(found[:20])}")


def _ids(spec: PartySpec, array: pa.Array) -> pa.Array:
    if array.null_count or (pa.types.is_string(array.type) and pc.any(pc.equal(array, "")).as_py()):
        raise TableError(f"{spec.table}: {spec.id} is empty in some rows; every row needs an id")
    return array.cast(pa.string())


def _numbers(spec: PartySpec, column: Column, array: pa.Array, start: int) -> Floats:
    """One batch of a column as float64."""
    if array.null_count or (pa.types.is_string(array.type) and pc.any(pc.equal(array, "")).as_py()):
        raise TableError(f"{spec.table}: {column.name} is empty in some rows; fill them in or leave the rows out")
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if pa.types.is_string(array.type):
        array = _parsed(spec, column, array, start)
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        raise TableError(f"{spec.table}: {column.name} holds {array.type}; a column of numbers is needed")
    if pa.types.is_integer(array.type):
        exact = array.to_numpy(zero_copy_only=False)
        if exact.size and (int(exact.max()) > EXACT_INTEGER or int(exact.min()) < -EXACT_INTEGER):
            raise TableError(f"{spec.table}: {column.name} holds integers beyond 2^53; scale the column down")
    values = np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    bad = int(np.count_nonzero(~np.isfinite(values)))
    if bad:
        raise TableError(f"{spec.table}: {column.name} is NaN or infinite in {bad} of its rows; remove or replace them")
    return values


def _parsed(spec: PartySpec, column: Column, array: pa.Array, start: int) -> pa.Array:
    words = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}
    try:
        return array.cast(pa.float64())
    except pa.ArrowException:
        for row, text in enumerate(array.to_pylist()):
            try:
                float(words.get(text, text))
            except ValueError:
                raise TableError(
                    f"{spec.table}: {column.name} has the text {text[:20]!r} in data row {start + row + 1}; "
                    "a number is needed"
                ) from None
        return pa.array([float(words.get(text, text)) for text in array.to_pylist()])


def _sort(spec: PartySpec, ids: pa.ChunkedArray, values: Floats) -> npt.NDArray[Any]:
    """Sorts `values` in place by id; the sorted ids. Whole numbers are compared as numbers."""
    try:
        keys = ids.cast(pa.int64()).to_numpy()
        if pc.any(pc.not_equal(pa.chunked_array([pa.array(keys)]).cast(pa.string()), ids)).as_py():
            raise pa.ArrowInvalid  # 007 and 7 are different ids
    except pa.ArrowException:
        keys = np.asarray(ids.to_pylist(), dtype=np.str_)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    repeated = np.flatnonzero(keys[1:] == keys[:-1])
    if repeated.size:
        example = str(keys[repeated[0]])[:40]
        raise TableError(
            f"{spec.table}: {repeated.size} ids of {spec.id} are repeated, {example!r} for one; keep one row an id"
        )
    if (order[1:] < order[:-1]).any():
        for row in values:  # one column at a time: no second table
            row[:] = row[order]
    return np.asarray(keys)


def _check_bounds(spec: PartySpec, column: Column, values: Floats, clip: bool, clipped: dict[str, int]) -> None:
    outside = int(np.count_nonzero((values < column.low) | (values > column.high)))
    if not outside:
        return
    if not clip:
        raise TableError(
            f"{spec.table}: {column.name} is outside its bounds [{column.low:g}, {column.high:g}] in {outside} rows; "
            "correct the bounds, or say clip = true in the job"
        )
    np.clip(values, column.low, column.high, out=values)
    clipped[column.name] = outside


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0][:200]
