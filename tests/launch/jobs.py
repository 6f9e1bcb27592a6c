"""Job files for tests: a valid one as nested dictionaries, and a writer of TOML."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any


class Raw(str):
    """TOML text to be written as it stands: 1e400, nan, a date."""


def valid_job() -> dict[str, Any]:
    """Two parties of two columns each, tables a.csv and b.csv beside the job file; the label is y of b."""
    return {
        "job": {"name": "test", "protocol": "functional", "epsilon": Raw("0.1")},
        "label": {"party": "b", "column": "y"},
        "server": {"name": "server"},
        "dealer": {"name": "dealer"},
        "party": [
            {"name": "a", "table": "a.csv", "id": "person", "columns": {"u": [0, 1], "v": [Raw("-2.5"), 4]}},
            {"name": "b", "table": "b.csv", "id": "person", "columns": {"w": [0, 10], "y": [0, 3]}},
        ],
    }


def free_addresses(hosts: Iterable[str]) -> list[str]:
    """A free port on each host, as host:port. All are held until the last is found, so that no two are the same."""
    with ExitStack() as held:
        servers = [held.enter_context(socket.create_server((host, 0))) for host in hosts]
        return [f"{host}:{port}" for host, port in (server.getsockname() for server in servers)]


def write_job(folder: Path, job: dict[str, Any] | str, name: str = "job.toml") -> Path:
    """The path of a job file with this content."""
    path = folder / name
    path.write_text(job if isinstance(job, str) else toml(job), encoding="utf-8")
    return path


def toml(job: dict[str, Any]) -> str:
    """The whole job as one inline table a key: any nesting of dictionaries, lists and values can be written."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in job.items())


def _key(key: str) -> str:
    return json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value)  # text, whole numbers, true and false are written alike in TOML
