"""The result files of one run, of any protocol and from any participant, read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mechanisms.guarantee import Guarantee
from smpc.cost import CostReport
from smpc.engine import public_json
from smpc.errors import InputError
from smpc.transcript import Transcript

T = TypeVar("T")
_MOST_BYTES = 1 << 26  # of one file


@dataclass(frozen=True)
class Results:
    """What a run left behind, `costs` by participant. None, or an empty one, where there is no such file."""

    model: Mapping[str, Any]
    guarantee: Guarantee | None
    costs: Mapping[str, CostReport]
    transcript: Transcript

    @classmethod
    def load(cls, folder: Path) -> Results:
        """From a result folder. Raises InputError where there is none, or a file in it is not what its name says."""
        if not folder.is_dir():
            raise InputError(f"{folder}: is no folder; name the one that `smpc run` or `smpc party` wrote with --out")
        results = cls(
            _read(folder / "model.json", _model) or {},
            _read(folder / "guarantee.json", Guarantee.from_json),
            _read(folder / "cost.json", _costs) or {},
            _read(folder / "transcript.jsonl", Transcript.from_jsonl) or Transcript(),
        )
        if not (results.model or results.guarantee or results.costs):
            raise InputError(f"{folder}: holds no model.json, guarantee.json or cost.json; name a run's result folder")
        return results


def _read(path: Path, parse: Callable[[str], T]) -> T | None:
    try:
        size = path.stat().st_size
        if size <= _MOST_BYTES:
            return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(f"{path}: is not the result file of a run of this version; run the job again") from None
    raise InputError(f"{path}: has {size:,} bytes; result files have at most {_MOST_BYTES:,}")


def _model(text: str) -> Mapping[str, Any]:
    model = public_json.read(text.encode())
    if not isinstance(model, dict) or not model:
        raise ValueError
    return model


def _costs(text: str) -> Mapping[str, CostReport]:
    found: Any = public_json.read(text.encode())
    reports = {str(name): CostReport(**report) for name, report in found["participants"].items()}
    for report in reports.values():
        counts = [report.handshake_bytes, report.bytes_sent, report.messages_sent, report.predicted, report.counted]
        if report.predicted.keys() != report.counted.keys():
            raise ValueError
        numbers = [report.rounds, report.peak_memory, *(number for count in counts for number in count.values())]
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise ValueError
        seconds = [report.waited, report.sockets, *report.seconds.values()]
        if not all(isinstance(value, int | float) and 0 <= value < math.inf for value in seconds):
            raise ValueError
    return reports
