"""What a released file says about its numbers: one JSON object, written here and read here with every fact checked.

It comes from strangers: whatever is in it, reading gives facts that fit together, or one InputError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mechanisms.guarantee import Guarantee
from protocols.data_release.released_data import ONES, ReleasedColumn, ReleasedData
from protocols.schema import Column
from smpc.engine import public_json
from smpc.errors import InputError

VERSION = 1
_METHODS = ("rmgm", "dgm", "gram")
_INTERCEPT = "intercept"
_LONGEST = 200  # letters of a name
_MOST_BYTES = 1 << 24
_MOST_RECORDS = 2**53
_MOST_COLUMNS = 10_000
_MOST_ROWS = 10_000  # of a guarantee, which compares all pairs
_LARGEST_VARIANCE = 2.0**124  # of noise in the ring
_WIDEST, _NARROWEST = 2.0, 0.5  # columns are released in ranges within [-1, 1], or [0, 1]


@dataclass(frozen=True)
class Metadata:
    """`ReleasedData` without its values."""

    release: str
    method: str
    records: int
    label: str
    columns: tuple[ReleasedColumn, ...]
    guarantee: Guarantee
    model: Mapping[str, float]


def to_json(data: ReleasedData) -> str:
    columns = [
        {
            "name": item.column.name,
            "bounds": [item.column.low, item.column.high],
            "range": [item.low, item.high],
            "noise_variance": item.noise_variance,
        }
        for item in data.columns
    ]
    about = {
        "version": VERSION,
        "release": data.release,
        "method": data.method,
        "records": data.records,
        "label": data.label,
        "columns": columns,
        "guarantee": json.loads(data.guarantee.to_json()),
        "model": dict(data.model),
    }
    return json.dumps(about)


def from_json(text: bytes) -> Metadata:
    """Raises InputError, one line of printable characters, for anything but what `to_json` writes."""
    try:
        if len(text) > _MOST_BYTES:
            raise ValueError
        parsed = public_json.read(text)
    except ValueError:
        raise InputError("its metadata are no JSON text of finite numbers, or too long or too deep") from None
    about = _object("the whole", parsed)
    version = _whole("version", _of(about, "version"))
    if version != VERSION:
        raise InputError(f"its version is {version}, this software reads {VERSION}")
    method = _text("method", _of(about, "method"))
    if method not in _METHODS:
        raise InputError(f"its method is {method!r}, known are {', '.join(_METHODS)}")
    columns = tuple(map(_column, _list("columns", _of(about, "columns"), _MOST_COLUMNS)))
    label = _text("label", _of(about, "label"))
    names = [item.column.name for item in columns]
    if not columns or len({*names, ONES, _INTERCEPT}) < len(names) + 2:
        raise InputError(f"its columns {_shown(names)} must be one or more, all different, none of them {ONES}")
    return Metadata(
        release=_text("release", _of(about, "release")),
        method=method,
        records=_whole("records", _of(about, "records")),
        label=label,
        columns=columns,
        guarantee=_guarantee(_object("guarantee", _of(about, "guarantee"))),
        model=_model(_object("model", _of(about, "model")), [_INTERCEPT, *(n for n in names if n != label)]),
    )


def _column(item: object) -> ReleasedColumn:
    fields = _object("column", item)
    name = _text("column", _of(fields, "name"))
    low, high = _pair(f"range of {name}", _of(fields, "range"))
    if max(-low, high) > _WIDEST or high - low < _NARROWEST:
        raise InputError(f"range of {name} is [{low}, {high}]: must be at least {_NARROWEST} wide, within +-{_WIDEST}")
    variance = _number(f"noise variance of {name}", _of(fields, "noise_variance"))
    if not 0 <= variance <= _LARGEST_VARIANCE:
        raise InputError(f"noise variance of {name} is {variance}: must be from 0 to 2^124")
    return ReleasedColumn(Column(name, *_pair(f"bounds of {name}", _of(fields, "bounds"))), low, high, variance)


def _guarantee(item: Mapping[str, Any]) -> Guarantee:
    _list("rows of the guarantee", item.get("rows"), _MOST_ROWS)
    _list("parties of the guarantee", item.get("parties"), _MOST_ROWS)
    try:
        return Guarantee.from_json(json.dumps(item))
    except ValueError as error:
        raise InputError(f"its guarantee is none: {_shown(str(error))}") from None


def _model(item: Mapping[str, Any], names: list[str]) -> dict[str, float]:
    if item and sorted(item) != sorted(names):
        raise InputError(f"its model has the coefficients {_shown([*item])}, its columns need {_shown(names)}")
    return {name: _number(f"coefficient of {name}", value) for name, value in item.items()}


def _of(item: Mapping[str, Any], key: str) -> object:
    if key not in item:
        raise InputError(f"its metadata have no {key}")
    return item[key]


def _object(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{name} of its metadata is {_shown(value)}: must be a JSON object")
    return value


def _list(name: str, value: object, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        raise InputError(f"{name}: must be a list of at most {most}")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= _LONGEST:
        raise InputError(f"{name} is {_shown(value)}: must be 1 to {_LONGEST} printable characters")
    return value


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_RECORDS:
        raise InputError(f"{name} is {_shown(value)}: must be a whole number from 1 to 2^53")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300:
        return float(value)
    raise InputError(f"{name} is {_shown(value)}: must be a number")


def _pair(name: str, value: object) -> tuple[float, float]:
    ends = _list(name, value, 2)
    if len(ends) != 2:
        raise InputError(f"{name} is {_shown(value)}: must be [low, high]")
    return _number(name, ends[0]), _number(name, ends[1])


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
