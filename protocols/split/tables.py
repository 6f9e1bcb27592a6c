"""Tables as the split-learning experiments use them: numbers, category codes and classes, all by public rules.

Categories become codes by a checksum modulo BUCKETS, so that nothing about which values occur is read off the data.
Directories as for `protocols.datasets`.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from protocols import datasets
from protocols.public_coding import Dataset, Table
from protocols.raw_tables import contents, text_columns
from protocols.split.sides import Floats32
from smpc.ring import Integers

BUCKETS = 1000


@dataclass(frozen=True)
class Coded:
    """numbers (n, a) of about unit size, codes (n, c) below `sizes`, labels (n,) of 0 and 1."""

    name: str
    numbers: Floats32
    codes: Integers
    sizes: tuple[int, ...]
    labels: Integers

    def inputs(self, rows: npt.NDArray[np.integer]) -> list[Tensor]:
        """The feature party's tensors of these records."""
        return [torch.from_numpy(self.numbers[rows]), torch.from_numpy(self.codes[rows])]


def criteo(directory: Path) -> Coded:
    """The first 10,000 rows of the Criteo Kaggle training file: 13 counts, 26 categories; label: a click."""
    names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    raw = contents(directory / "criteo" / "train_examples_10k.txt.gz")
    table = text_columns(raw.replace(b"\t", b","), names)
    return _coded("Criteo, first 10,000 rows", table, names[1:14], names[14:], table["label"] == "1")


def avazu(directory: Path) -> Coded:
    """8,999 rows of one hour of the Avazu Kaggle training file: 22 categories; label: a click."""
    table = text_columns(contents(directory / "avazu" / "avazu_union.csv.gz"))
    categories = [name for name in table if name not in ("id", "click")]
    return _coded("Avazu, one hour", table, [], categories, table["click"] == "1")


def kdd99(directory: Path) -> Coded:
    """The 10 % file of KDD Cup 1999, 494,021 rows: 38 numbers, 3 categories; label: an attack."""
    names = [f"c{i}" for i in range(42)]
    table = text_columns(contents(directory / "kddcup99" / "kddcup.data_10_percent.gz"), names)
    categories = ["c1", "c2", "c3"]
    numbers = [name for name in names[:41] if name not in categories]
    return _coded("KDD99, 10 % file", table, numbers, categories, table["c41"] != "normal.")


def adult(directory: Path) -> Coded:
    """UCI 2, both parts: 48,842 rows; label: above 50K."""
    parts = [datasets.adult(directory, part) for part in ("data", "test")]
    return _numeric("Adult", parts)


def fair() -> Coded:
    """Fair's survey of 1974, with statsmodels: 6,366 rows; label: any time spent in affairs."""
    return _numeric("fair", [datasets.fair()])


def _numeric(name: str, parts: Sequence[Dataset]) -> Coded:
    x = np.concatenate([part.scaled()[0] for part in parts]).astype(np.float32)
    y = np.concatenate([part.y for part in parts]).astype(np.int64)
    return Coded(name, x, np.zeros((len(y), 0), dtype=np.int64), (), y)


def _coded(
    name: str, table: Table, numbers: Sequence[str], categories: Sequence[str], positive: npt.NDArray[np.bool_]
) -> Coded:
    columns = [_number(table[column]) for column in numbers]
    codes = [_codes(column, table[column]) for column in categories]
    count = len(positive)
    return Coded(
        name,
        np.column_stack(columns) if columns else np.zeros((count, 0), dtype=np.float32),
        np.column_stack(codes) if codes else np.zeros((count, 0), dtype=np.int64),
        (BUCKETS,) * len(codes),
        positive.astype(np.int64),
    )


def _number(values: npt.NDArray[np.str_]) -> Floats32:
    """log(1 + x) / 4, 0 for what is missing or below 0: counts of any size come to about one."""
    filled = np.where(values == "", "0", values).astype(np.float64)
    return np.asarray(np.log1p(np.maximum(filled, 0)) / 4, dtype=np.float32)


def _codes(column: str, values: npt.NDArray[np.str_]) -> Integers:
    different, places = np.unique(values, return_inverse=True)
    codes = [zlib.crc32(f"{column}={value}".encode()) % BUCKETS for value in different.tolist()]
    return np.array(codes, dtype=np.int64)[places]
