"""CSV and Parquet files as record batches: formats told apart, columns found by name, memory bounded."""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from launch.jobfile.fields import shown
from smpc.errors import InputError, printable

_BLOCK = 1 << 18  # bytes read at once; no row of a CSV file is longer
_KINDS = {"a folder": stat.S_ISDIR, "a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK, "a device": stat.S_ISCHR}


class TableError(InputError):
    """A table that cannot be used."""


def is_here(path: Path) -> bool:
    """Whether there is a table. Raises TableError for what is no file: opening a pipe waits for somebody to write."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a name with a null byte
        return False
    except OSError as error:
        loop = "is a link that leads back to itself; correct it"
        told = loop if error.errno == errno.ELOOP else f"cannot be read ({error.strerror}); correct its name"
        raise TableError(f"{path}: {told}") from None
    if not stat.S_ISREG(mode):
        kind = next((name for name, is_one in _KINDS.items() if is_one(mode)), "no file")
        raise TableError(f"{path}: is {kind}; a table is a file, which is read more than once")
    return True


def batches(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The record batches of the named columns, in this order; the file may have more. Raises TableError."""
    check_columns(path, names)
    try:
        yield from (_parquet if _is_parquet(path) else _csv)(path, list(names))
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def column_names(path: Path) -> list[str]:
    """The names of a table's columns, in order. Raises TableError."""
    if not is_here(path):
        raise TableError(f"{path}: does not exist; correct its name")
    try:
        if not _is_parquet(path):
            return _csv_names(path)
        with pa.parquet.ParquetFile(path) as file:
            names: list[str] = file.schema_arrow.names
        return names
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None


def _is_parquet(path: Path) -> bool:
    with open(path, "rb") as raw:
        first = raw.read(4)
    if first == b"PAR1" or path.suffix.lower() in (".parquet", ".pq"):
        return True
    if first.startswith((b"\x1f\x8b", b"PK")):
        raise TableError(f"{path}: is a compressed file or a spreadsheet; save it as plain CSV or Parquet")
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in first:
        raise TableError(f"{path}: is not UTF-8 text; save it as CSV in UTF-8, or as Parquet")
    return False


def _parquet(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    # a file may be one row group: neither its bytes nor, with threads, its columns fit beside the table
    with pa.parquet.ParquetFile(path, buffer_size=_BLOCK, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=1 << 14, columns=names, use_threads=False):
            yield batch.select(names)


def _csv(path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    # read as text: pyarrow would guess a column's type from its first block and fail in a later one
    convert = pa.csv.ConvertOptions(include_columns=names, column_types=dict.fromkeys(names, pa.string()))
    with pa.OSFile(str(path)) as file, pa.csv.open_csv(file, convert_options=convert, **_csv_options()) as found:
        yield from found


def _csv_names(path: Path) -> list[str]:
    with pa.OSFile(str(path)) as file, pa.csv.open_csv(file, **_csv_options()) as probe:
        names: list[str] = probe.schema.names
    return names


def _csv_options() -> dict[str, Any]:
    return {
        "read_options": pa.csv.ReadOptions(block_size=_BLOCK, use_threads=False),  # in order: errors tell the row
        "parse_options": pa.csv.ParseOptions(newlines_in_values=True),
    }


def _unreadable(path: Path, error: Exception) -> TableError:
    reason = printable((str(error).splitlines() or [""])[0])
    if "Empty CSV" in reason and path.stat().st_size > _BLOCK:
        return TableError(f"{path}: the first line, of column names, is longer than {_BLOCK} bytes; shorten the names")
    if "Empty CSV" in reason:
        return TableError(f"{path}: is empty; needs a line of column names and at least 2 data rows")
    odd = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", reason)
    if odd:  # the rest of the reason is the row itself
        row, expected, got = odd.groups()
        commas = "commas separate them, a decimal comma makes two of one"
        names = "the first line must be the column names, without a title above" if expected == "1" else commas
        return TableError(
            f"{path}: line {row} has {got} values, the first line {expected}; {_semicolons(path) or names}"
        )
    if "straddl" in reason:
        return TableError(f"{path}: has a row longer than {_BLOCK} bytes; is a quotation mark left open?")
    if "UTF8" in reason or isinstance(error, UnicodeDecodeError):
        return TableError(f"{path}: is not UTF-8 text; save it as CSV in UTF-8, or as Parquet")
    known = reason.split(":")[0][:100]  # what follows may be values
    return TableError(f"{path}: cannot be read as a table ({known}); is it CSV with commas, or Parquet?")


def _semicolons(path: Path) -> str:
    """What to do about a table of the kind that spreadsheets write where the comma is the decimal sign."""
    with open(path, "rb") as raw:
        first = raw.readline(_BLOCK)
    separated = b";" in first and b"," not in first
    return "semicolons separate its columns: save it with commas, and numbers with decimal points" if separated else ""


def check_columns(path: Path, names: Sequence[str]) -> None:
    """Raises TableError unless the table has every one of these columns once."""
    found = column_names(path)
    for name in names:
        if found.count(name) != 1:
            problem = "is missing" if name not in found else "appears twice"
            alike = [other for other in found if other.lower() == name.lower() != other]
            hint = f"; is {shown(alike[0])} meant?" if alike and name not in found else ""
            if len(found) == 1:
                hint = f"; {_semicolons(path) or 'commas must separate its columns'}"
            listed = ", ".join(shown(other) for other in found[:10])
            more = f" and {len(found) - 10} more" if len(found) > 10 else ""
            raise TableError(f"{path}: column {name!r} {problem}; the table has {listed}{more}{hint}")
