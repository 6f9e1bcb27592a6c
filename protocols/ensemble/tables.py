"""The tables of paper 3's experiments: rows in the unit ball with an intercept inside, and class numbers.

Everything follows public rules: declared bounds and categories, fixed projections. Loaders take the directory
(`raw_tables.data_directory`) with one folder a table, files as their origins publish them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from protocols.ensemble.auxiliary import unit_rows
from protocols.evaluation import words_of
from protocols.public_coding import Category, Numeric, Table, encode
from protocols.raw_tables import contents, text_columns
from protocols.schema import Floats

Classes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Labelled:
    """Rows x (n, d) with |x| <= 1, the last column constant, and classes y (n,) in 0 .. classes - 1."""

    x: Floats
    y: Classes
    classes: int


# The KDD Cup's task description names the columns. Sizes, durations and counts of events are wide: their logarithms.
# Counts of the last two seconds stay below 512, those of the last 100 connections of a host below 256; rates are in
# [0, 1]. The service has 70 values, most of them rare: left out.
_KDD_COLUMNS = (
    *("duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "land", "wrong_fragment", "urgent"),
    *("hot", "num_failed_logins", "logged_in", "num_compromised", "root_shell", "su_attempted", "num_root"),
    *("num_file_creations", "num_shells", "num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login"),
    *("count", "srv_count", "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate"),
    *("diff_srv_rate", "srv_diff_host_rate", "dst_host_count", "dst_host_srv_count", "dst_host_same_srv_rate"),
    *("dst_host_diff_srv_rate", "dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate"),
    *("dst_host_serror_rate", "dst_host_srv_serror_rate", "dst_host_rerror_rate", "dst_host_srv_rerror_rate"),
)
_LOGARITHMS = {"duration": 2.0**17, "src_bytes": 2.0**31, "dst_bytes": 2.0**31} | dict.fromkeys(
    ("hot", "num_compromised", "num_root", "num_file_creations", "num_access_files"), 2.0**13
)
_HIGHEST = (
    dict.fromkeys(("wrong_fragment", "urgent", "su_attempted", "num_shells"), 5.0)
    | {"num_failed_logins": 5.0, "num_outbound_cmds": 9.0, "count": 511.0, "srv_count": 511.0}
    | {"dst_host_count": 255.0, "dst_host_srv_count": 255.0}
)
_KDD_CATEGORIES = (
    Category("protocol_type", ("tcp", "udp", "icmp")),
    Category("flag", ("SF", "S0", "REJ", "RSTR", "RSTO", "SH", "S1", "S2", "S3", "RSTOS0", "OTH")),
)
_NORMAL = Category("label", ("normal", "attack"))


def kdd99(directory: Path) -> Labelled:
    """KDD Cup 1999, the 10 % file: 494,021 connections, normal or attack."""
    return _kdd(contents(directory / "kddcup99" / "kddcup.data_10_percent.gz"), ("label",))


def nsl_kdd(directory: Path) -> Labelled:
    """NSL-KDD, Train+: 125,973 connections, normal or attack."""
    return _kdd(contents(directory / "nsl_kdd" / "NSL_KDD.zip", "KDDTrain+.txt"), ("label", "difficulty"))


def _kdd(data: bytes, last: tuple[str, ...]) -> Labelled:
    from pyarrow import csv, string

    texts = ("protocol_type", "service", "flag", "label")
    table = csv.read_csv(
        BytesIO(data),
        read_options=csv.ReadOptions(column_names=[*_KDD_COLUMNS, *last]),
        convert_options=csv.ConvertOptions(column_types={name: string() for name in texts}),
    )
    features: list[Numeric | Category] = []
    for name in _KDD_COLUMNS:
        if name in _LOGARITHMS:
            features.append(Numeric(name, 0.0, float(np.log1p(_LOGARITHMS[name])), np.log1p))
        elif name not in texts:
            features.append(Numeric(name, 0.0, _HIGHEST.get(name, 1.0)))
    columns = {name: table[name].to_numpy() for name in _KDD_COLUMNS}
    columns["label"] = np.where(
        np.char.rstrip(table["label"].to_numpy().astype(np.str_), ".") == "normal", "normal", "attack"
    )
    return _binary(columns, [*features, *_KDD_CATEGORIES], _NORMAL)


# The columns of the table's own description: 0 and 1 but for the depth, the number of path segments.
_PHISHING = (
    *("Have_IP", "Have_At", "URL_Length", "Redirection", "https_Domain", "TinyURL", "Prefix/Suffix", "DNS_Record"),
    *("Web_Traffic", "Domain_Age", "Domain_End", "iFrame", "Mouse_Over", "Right_Click", "Web_Forwards"),
)


def phishing_urls(directory: Path) -> Labelled:
    """10,000 addresses, 16 features, legitimate (0) or phishing (1)."""
    table = text_columns(contents(directory / "phishing_urls" / "urldata.csv.gz"))
    features = [*(Numeric(name, 0.0, 1.0) for name in _PHISHING), Numeric("URL_Depth", 0.0, 10.0)]
    return _binary(table, features, Category("Label", ("0", "1")))


def _binary(table: Table, features: Sequence[Numeric | Category], label: Category) -> Labelled:
    coded = encode(table, features, label)
    low = np.array([column.low for column in coded.columns])
    high = np.array([column.high for column in coded.columns])
    return Labelled(unit_rows((coded.x - low) / (high - low)), coded.y.astype(np.int64), 2)


_HASHED = 50  # columns that sparse or wide rows are projected to


def malicious_url(directory: Path) -> Labelled:
    """Ma et al. 2009, 1,200 addresses of six days: sparse features added up with public random signs in 50 columns."""
    rows, labels = [], []
    for day in range(6):
        for line in contents(directory / "malicious_url" / f"Day{day}_mini.svm").decode().splitlines():
            label, *entries = line.split()
            row = np.zeros(_HASHED)
            for entry in entries:
                index, value = entry.split(":")
                word = (int(index) * 0x9E3779B97F4A7C15) % 2**64 >> 32
                row[word % _HASHED] += float(value) * (1 if word >> 31 else -1)
            rows.append(row / 8)
            labels.append(int(float(label) > 0))
    return Labelled(unit_rows(np.array(rows)), np.array(labels), 2)


def har(directory: Path) -> Labelled:
    """UCI 341 (part): 1,554 windows of smartphone sensors, 561 features projected to 50, 12 activities.

    Features are in [-1, 1], most in the lower half: -1/2 and 100 are public constants, not fitted.
    """
    with np.load(BytesIO(contents(directory / "har" / "hapt_train_subset_1554x561.npz"))) as arrays:
        x, y = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    words = words_of("projection", x.shape[1]).words(x.shape[1] * _HASHED).reshape(x.shape[1], _HASHED)
    signs = 1.0 - 2.0 * (words >> np.uint64(63)).astype(np.float64)
    return Labelled(unit_rows((x + 0.5) @ signs / 100), y, 12)
