"""Released data as a Parquet file: numbers under their columns' names, and the metadata to learn from them anywhere.

Metadata: one JSON object under the key `sharewise.release`, with the method, the number of records, each column's
declared bounds, range and noise variance (the constants of debiasing), the guarantee, and the model, if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms import validate
from mechanisms.guarantee import Guarantee
from protocols.data_release.released_data import ONES, ReleasedColumn, ReleasedData, join
from protocols.schema import Column
from smpc.errors import InputError

KEY = b"sharewise.release"
VERSION = 1
_METHODS = ("rmgm", "dgm", "gram")


def to_parquet(data: ReleasedData) -> bytes:
    """The file's bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    about = {
        "version": VERSION,
        "release": data.release,
        "method": data.method,
        "records": data.records,
        "label": data.label,
        "columns": [
            {
                "name": item.column.name,
                "bounds": [item.column.low, item.column.high],
                "range": [item.low, item.high],
                "noise_variance": item.noise_variance,
            }
            for item in data.columns
        ],
        "guarantee": json.loads(data.guarantee.to_json()),
        "model": dict(data.model),
    }
    names = [ONES, *data.names]
    schema = pa.schema([pa.field(name, pa.float64(), nullable=False) for name in names])
    table = pa.table([pa.array(column) for column in data.values.T], schema=schema)
    file = BytesIO()
    parquet.write_table(table.replace_schema_metadata({KEY: json.dumps(about)}), file)
    return file.getvalue()


def read_released(paths: Sequence[Path]) -> ReleasedData:
    """The whole release from one file, or from the parts of several parties. Raises InputError that names the file."""
    parts = []
    for path in paths:
        try:
            parts.append(_read(path))
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise InputError(
                f"{path}: cannot be read as a released data set ({reason.splitlines()[0][:200]})"
            ) from None
    if not parts:
        raise InputError("no released file is given: name at least one")
    return join(parts)


def _read(path: Path) -> ReleasedData:
    from pyarrow import parquet

    with open(path, "rb") as file:
        table = parquet.read_table(file)
    metadata = table.schema.metadata or {}
    if KEY not in metadata:
        raise InputError("its metadata has no release")
    about: Mapping[str, Any] = json.loads(metadata[KEY])
    if about["version"] != VERSION:
        raise InputError(f"its version is {about['version']}, this software reads {VERSION}")
    if about["method"] not in _METHODS:
        raise InputError(f"its method is {about['method']!r}, known are {', '.join(_METHODS)}")
    columns = tuple(_column(item) for item in about["columns"])
    names = [ONES, *(item.column.name for item in columns)]
    if table.column_names != names:
        raise InputError(f"its columns are {table.column_names[:10]}, its metadata says {names[:10]}")
    return ReleasedData(
        release=str(about["release"]),
        method=str(about["method"]),
        records=validate.integer("records", about["records"], low=1),
        label=str(about["label"]),
        columns=columns,
        values=np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64),
        guarantee=Guarantee.from_json(json.dumps(about["guarantee"])),
        model={str(name): float(value) for name, value in about["model"].items()},
    )


def _column(item: Mapping[str, Any]) -> ReleasedColumn:
    low, high = (float(end) for end in item["range"])
    variance = float(item["noise_variance"])
    if not low < high or not 0 <= variance < np.inf:
        raise InputError(f"column {item['name']}: range [{low}, {high}], noise variance {variance} make no sense")
    smallest, largest = (float(end) for end in item["bounds"])
    return ReleasedColumn(Column(str(item["name"]), smallest, largest), low, high, variance)
