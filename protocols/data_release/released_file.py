"""Released data as a Parquet file: numbers under their columns' names, and the metadata to learn from them anywhere.

Metadata: one JSON object under the key `sharewise.release`, with the method, the number of records, each column's
declared bounds, range and noise variance (the constants of debiasing), the guarantee, and the model, if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import SEEK_END, BytesIO
from pathlib import Path

import numpy as np

from protocols.data_release.released_data import ONES, ReleasedData, join
from protocols.data_release.released_metadata import Metadata, from_json, to_json
from protocols.schema import Floats
from smpc.errors import InputError

KEY = b"sharewise.release"
_LARGEST = 2.0**62  # no released number leaves the ring
_SMALLEST = 0.5  # bytes of a number in a file: an honest one needs 1.7, however it is compressed


def to_parquet(data: ReleasedData) -> bytes:
    """The file's bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    names = [ONES, *data.names]
    schema = pa.schema([pa.field(name, pa.float64(), nullable=False) for name in names])
    table = pa.table([pa.array(column) for column in data.values.T], schema=schema)
    file = BytesIO()
    parquet.write_table(table.replace_schema_metadata({KEY: to_json(data)}), file)
    return file.getvalue()


def read_released(paths: Sequence[Path]) -> ReleasedData:
    """The whole release from one file, or from the parts of several parties. Raises InputError that names the file."""
    import pyarrow as pa

    parts = []
    for path in paths:
        try:
            parts.append(_read(path))
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            line = "".join(filter(str.isprintable, (reason.splitlines() or [type(error).__name__])[0][:300]))
            raise InputError(f"{path}: cannot be read as a released data set ({line})") from None
    if not parts:
        raise InputError("no released file is given: name at least one")
    return join(parts)


def _read(path: Path) -> ReleasedData:
    from pyarrow import parquet

    with open(path, "rb") as file:
        stored = parquet.ParquetFile(file)
        schema = stored.schema_arrow
        metadata = schema.metadata or {}
        if KEY not in metadata:
            raise InputError("its metadata have no release")
        about = from_json(metadata[KEY])
        names = [ONES, *(item.column.name for item in about.columns)]
        if schema.names != names or any(str(kind) != "double" for kind in schema.types):
            found = f"{schema.names[:10]}"[:200]
            raise InputError(f"its columns are {found}, its metadata say {names[:10]}, all of type double")
        _check_shape(about, stored.metadata.num_rows)
        groups = map(stored.metadata.row_group, range(stored.metadata.num_row_groups))
        numbers = sum(group.column(i).num_values for group in groups for i in range(len(names)))
        size = file.seek(0, SEEK_END)
        if numbers * _SMALLEST > size:  # before any of them takes memory
            raise InputError(f"it says that it has {numbers} numbers in {size} bytes, which no noise fits into")
        table = stored.read()
    values: Floats = np.column_stack([table[name].to_numpy() for name in names])
    _check_values(about, values)
    return ReleasedData(
        release=about.release,
        method=about.method,
        records=about.records,
        label=about.label,
        columns=about.columns,
        values=values,
        guarantee=about.guarantee,
        model=about.model,
    )


def _check_shape(about: Metadata, rows: int) -> None:
    """As many rows as the method has; before any is read."""
    least, most = {
        "rmgm": (1, about.records),
        "dgm": (about.records, about.records),
        "gram": (1 + len(about.columns),) * 2,
    }[about.method]
    if not least <= rows <= most:
        raise InputError(f"it has {rows} rows, a {about.method} release of {about.records} records {least} to {most}")


def _check_values(about: Metadata, values: Floats) -> None:
    if not (np.abs(values) <= _LARGEST).all():  # written so that NaN fails
        raise InputError("released values are not finite, or beyond 2^62")
    if about.method == "gram" and (values[0, 0] != about.records or not np.array_equal(values, values.T)):
        raise InputError(f"its values are no Gram matrix of {about.records} records")
    if about.method == "dgm" and not (values[:, 0] == 1).all():
        raise InputError(f"its column {ONES} has other numbers than 1")
