"""Raw tables as their origins publish them: a directory of files that the user has, and statsmodels' own tables."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smpc.errors import InputError


def data_directory(default: Path | None = None) -> Path:
    """$SMPC_DATA, or `default`. Raises InputError where neither is a directory."""
    chosen = os.environ.get("SMPC_DATA") or default
    if chosen is None or not Path(chosen).is_dir():
        raise InputError(f"SMPC_DATA={chosen}: set it to the directory that holds the folders adult, bike and so on")
    return Path(chosen)


def contents(path: Path, member: str | None = None) -> bytes:
    """The contents of a file: of a member of a .zip, unpacked of a .gz."""
    if not path.is_file():
        raise InputError(f"{path.parent.name}/{path.name} is not in {path.parent.parent}: put the origin's file there")
    try:
        if member is not None:
            with zipfile.ZipFile(path) as archive:
                return archive.read(member)
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path.parent.name}/{path.name} is damaged ({error}): fetch it again") from None


def text_columns(data: bytes, names: Sequence[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """Every column as text; `names` where there is no header line. Raises InputError for lines of another length."""
    from pyarrow import ArrowInvalid, csv, string

    header = list(names) if names else data.split(b"\n", 1)[0].decode().strip().replace('"', "").split(",")
    read = csv.ReadOptions(column_names=header, skip_rows=0 if names else 1)
    convert = csv.ConvertOptions(column_types={name: string() for name in header})
    try:
        table = csv.read_csv(BytesIO(data), read_options=read, convert_options=convert)
    except ArrowInvalid as error:
        raise InputError(f"table with the columns {', '.join(header[:5])}: {error}; fetch it again") from None
    return {name: np.array(table[name].to_pylist(), dtype=np.str_) for name in header}


def statsmodels_table(name: str) -> dict[str, npt.NDArray[Any]]:
    """Every column of a table that comes with statsmodels."""
    try:
        from statsmodels import datasets
    except ImportError:
        raise InputError(f"{name} comes with statsmodels, which is not installed: pip install statsmodels") from None
    frame = getattr(datasets, name).load_pandas().data
    return {column: frame[column].to_numpy() for column in frame.columns}
