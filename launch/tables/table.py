"""A party's own table: CSV or Parquet, checked before any connection, details for the owner's terminal only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from launch.jobfile.parties import PartySpec
from launch.tables.files import TableError, batches, check_columns
from protocols.schema import MAX_BOUND, Column, Floats

EXACT_INTEGER = 2**53  # above, a float64 cannot hold every integer
_SHORTENED = r"^[0-9](\.[0-9]+)?[eE]\+[0-9]+$"  # 1.23E+05, as spreadsheets write long numbers: digits are lost
_MOST_FAULTS = 5  # in one line
_WORDS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}


@dataclass
class Table:
    """Rows sorted by id. `columns` has shape (width, rows), in the job's order; `clipped` counts values by column."""

    ids: pa.Array  # whole numbers (int64) or text
    columns: Floats
    clipped: dict[str, int] = field(default_factory=dict)
    alike: int = 0  # ids that are another one but for zeros in front

    @property
    def rows(self) -> int:
        return len(self.ids)


def read_table(spec: PartySpec, *, clip: bool | None, clip_in: str = "[job]") -> Table:
    """The id and the job's columns of a party's table. Raises TableError, one line with the first fault of each column.

    `clip`: values outside the bounds count as the bound; None: the job has no such choice, which else stands in the
    job file's table `clip_in`. The file is read twice, ids first: sorting them is over before the values take their
    memory, and each value goes straight to its place.
    """
    check_columns(spec.table, [spec.id, *spec.sources])
    ids, places = _sorted_ids(spec)
    values = np.empty((len(spec.columns), len(ids)))
    faults: dict[str, str] = {}
    start = 0
    for batch in batches(spec.table, spec.sources):
        rows = places[start : start + batch.num_rows]
        if len(rows) < batch.num_rows:
            raise _changed(spec)
        for i, column in enumerate(spec.columns):
            with _first_fault(column, faults) as sound:
                if sound:
                    values[i, rows] = _values(spec, column, batch, start)
        start += batch.num_rows
    if start < len(ids):
        raise _changed(spec)
    table = Table(ids, values, alike=_alike(ids))
    for i, column in enumerate(spec.columns):
        with _first_fault(column, faults) as sound:
            if sound:
                _check_bounds(spec, column, values[i], clip, clip_in, table.clipped)
    if faults:
        told = [fault.removeprefix(f"{spec.table}: ") for fault in faults.values()][:_MOST_FAULTS]
        more = [f"{len(faults) - len(told)} more columns"] if len(faults) > len(told) else []
        raise TableError(f"{spec.table}: {' | '.join([*told, *more])}")
    return table


@contextmanager
def _first_fault(column: Column, faults: dict[str, str]) -> Iterator[bool]:
    """Keep the TableError of a column, under its name in the table; False inside where it has had one."""
    name = column.category or column.name
    try:
        yield name not in faults
    except TableError as error:
        faults[name] = str(error)


def read_columns(path: Path, names: Sequence[str], categories: Mapping[str, tuple[str, ...]] | None = None) -> Floats:
    """The named columns of any table, shape (width, rows), in the file's order. Raises TableError.

    `categories`: the values of columns of text; indicators of all but the first are called NAME=VALUE.
    """
    indicators = {f"{name}={value}": name for name, values in (categories or {}).items() for value in values[1:]}
    columns = tuple(
        Column(name, 0, 1, indicators[name]) if name in indicators else Column(name, -MAX_BOUND, MAX_BOUND)
        for name in names
    )
    spec = PartySpec("reader", None, None, path, names[0], columns, None, "", categories or {})
    parts: list[list[Floats]] = [[np.empty(0)] for _ in names]
    start = 0
    for batch in batches(path, spec.sources):
        for part, column in zip(parts, columns, strict=True):
            values = _values(spec, column, batch, start)
            _refuse(spec, column.name, np.abs(values) > MAX_BOUND, start, f"is beyond {MAX_BOUND:g}", "correct it")
            part.append(values)
        start += batch.num_rows
    return np.array([np.concatenate(part) for part in parts])


def _changed(spec: PartySpec) -> TableError:
    return TableError(f"{spec.table}: changed while it was read; run again")


def _ids(spec: PartySpec, array: pa.Array, start: int) -> pa.Array:
    array = _plain(array)
    _refuse(spec, spec.id, _empty(array), start, "is empty", "every row needs an id")
    try:
        texts = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
    except pa.ArrowException:
        raise TableError(f"{spec.table}: {spec.id} holds {array.type}; ids are whole numbers or text") from None
    shortened = pc.fill_null(pc.match_substring_regex(texts, _SHORTENED), False).to_numpy(zero_copy_only=False)
    _refuse(spec, spec.id, shortened, start, "was shortened by a spreadsheet", "export the ids as text")
    return texts


def _numbers(spec: PartySpec, column: Column, array: pa.Array, start: int) -> Floats:
    """One batch of a column as float64."""
    array = _plain(array)
    _refuse(spec, column.name, _empty(array), start, "is empty", "fill it in or leave the row out")
    if pa.types.is_string(array.type):
        array = _parsed(spec, column, array, start)
    elif pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    elif pa.types.is_integer(array.type):
        exact = array.to_numpy(zero_copy_only=False)
        if exact.size and (int(exact.max()) > EXACT_INTEGER or int(exact.min()) < -EXACT_INTEGER):
            raise TableError(f"{spec.table}: {column.name} holds integers beyond 2^53; scale the column down")
    elif not (pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        date = ": make a date days or years" if pa.types.is_temporal(array.type) else ""
        raise TableError(f"{spec.table}: {column.name} holds {array.type}; a column of numbers is needed{date}")
    values = np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    _refuse(spec, column.name, ~np.isfinite(values), start, "is NaN or infinite", "replace it or leave the row out")
    return values


def _values(spec: PartySpec, column: Column, batch: pa.RecordBatch, start: int) -> Floats:
    """One batch of a column, a number or an indicator."""
    array = batch.column(spec.sources.index(column.category or column.name))
    return _numbers(spec, column, array, start) if column.category is None else _indicator(spec, column, array, start)


def _indicator(spec: PartySpec, column: Column, array: pa.Array, start: int) -> Floats:
    """One batch of a column of text as the indicator of one of its values."""
    name = str(column.category)
    array = _plain(array)
    _refuse(spec, name, _empty(array), start, "is empty", "give missing values a category of their own")
    try:
        texts = pc.utf8_trim_whitespace(array.cast(pa.string()))
    except pa.ArrowException:
        raise TableError(f"{spec.table}: {name} holds {array.type}; its values are whole numbers or text") from None
    values = spec.categories[name]
    known = pc.is_in(texts, value_set=pa.array(values)).to_numpy(zero_copy_only=False)
    if not known.all():
        first = int(np.argmin(known))
        found = texts[first].as_py()[:40]
        listed = ", ".join(values[:10])
        raise TableError(f"{spec.table}: {name} is {found!r} in data row {start + first + 1}; its values are {listed}")
    same = pc.equal(texts, column.name.removeprefix(f"{name}="))
    return np.asarray(same.to_numpy(zero_copy_only=False), dtype=np.float64)


def _plain(array: pa.Array) -> pa.Array:
    """The same values without the dictionary or the wide offsets in which they may be stored."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.string()) if str(array.type) in ("large_string", "string_view") else array


def _empty(array: pa.Array) -> npt.NDArray[np.bool_]:
    missing = array.is_null()
    if pa.types.is_string(array.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(array, ""), False))
    return np.asarray(missing.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _refuse(spec: PartySpec, name: str, bad: npt.NDArray[np.bool_], start: int, problem: str, remedy: str) -> None:
    """Raise TableError that names the first of the bad rows of a batch."""
    if bad.any():
        raise TableError(f"{spec.table}: {name} {problem} in data row {start + int(bad.argmax()) + 1}; {remedy}")


def _parsed(spec: PartySpec, column: Column, array: pa.Array, start: int) -> pa.Array:
    try:
        return array.cast(pa.float64())
    except pa.ArrowException:
        numbers = []
    for row, text in enumerate(array.to_pylist(), start + 1):
        try:
            if "_" in text or not text.isascii():  # float() takes 1_000 and other scripts' digits
                raise ValueError
            numbers.append(float(_WORDS.get(text, text)))
        except ValueError:
            raise TableError(
                f"{spec.table}: {column.name} has the text {text[:20]!r} in data row {row}; "
                f"a number is needed{_hint(text)}"
            ) from None
    return pa.array(numbers, pa.float64())


def _hint(text: str) -> str:
    """What a text may be that looks like a number to people."""
    if re.fullmatch(r"[-+]?[0-9]+,[0-9]+", text.strip()):
        return ", with a decimal point"
    if re.fullmatch(r"[0-9]{1,4}([-./])[0-9]{1,2}\1[0-9]{1,4}", text.strip()):
        return ": make a date days or years"
    return ""


def _sorted_ids(spec: PartySpec) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The ids in order, and the place in it of every row of the file. Whole numbers are compared as numbers."""
    parts: list[pa.Array] = []
    start = 0
    for batch in batches(spec.table, [spec.id]):
        parts.append(_ids(spec, batch.column(0), start))
        start += batch.num_rows
    if start < 2:
        raise TableError(f"{spec.table}: has {start} data rows; needs at least 2")
    keys = _as_numbers(pa.concat_arrays(parts))
    del parts
    pa.default_memory_pool().release_unused()  # Arrow keeps what was freed; the sorted ids and the table need it
    order = pc.array_sort_indices(keys)
    keys = keys.take(order)
    repeated = np.flatnonzero(pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False))
    if repeated.size:
        example = str(keys[int(repeated[0])].as_py())[:40]
        raise TableError(
            f"{spec.table}: {repeated.size} ids of {spec.id} are repeated, {example!r} for one; keep one row an id"
        )
    places = np.empty(start, dtype=np.int64)
    places[order.to_numpy()] = np.arange(start)
    del order
    pa.default_memory_pool().release_unused()
    return keys, places


def _alike(ids: pa.Array) -> int:
    """How many ids another one has, too, but for zeros in front: one person in two spellings, perhaps."""
    lengths = None if pa.types.is_integer(ids.type) else pc.min_max(pc.binary_length(ids)).as_py()
    if lengths is None or lengths["min"] == lengths["max"]:
        return 0
    numbers = []
    for start in range(0, len(ids), 1 << 16):  # piece by piece: they are as large as the table
        piece = ids.slice(start, 1 << 16)
        digits = piece.filter(pc.match_substring_regex(piece, "^[0-9]{1,18}$"))
        numbers.append(digits.cast(pa.int64()).to_numpy())
    found = np.concatenate(numbers)
    return len(found) - len(np.unique(found))


def _as_numbers(keys: pa.Array) -> pa.Array:
    """Ids as whole numbers if that loses nothing: 007 and 7 are different ids."""
    try:
        numbers = keys.cast(pa.int64())
    except pa.ArrowException:  # text
        return keys
    return numbers if numbers.cast(pa.large_string()).equals(keys) else keys


def _check_bounds(
    spec: PartySpec, column: Column, values: Floats, clip: bool | None, clip_in: str, clipped: dict[str, int]
) -> None:
    outside = int(np.count_nonzero((values < column.low) | (values > column.high)))
    if not outside:
        return
    if not clip:
        choice = "" if clip is None else f", or say clip = true in {clip_in}"
        raise TableError(
            f"{spec.table}: {column.name} is outside its bounds [{column.low:g}, {column.high:g}] in {outside} rows; "
            f"correct the bounds{choice}"
        )
    np.clip(values, column.low, column.high, out=values)
    clipped[column.name] = outside
