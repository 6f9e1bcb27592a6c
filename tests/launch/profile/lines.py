"""What a profile wrote."""

from __future__ import annotations

import csv
from pathlib import Path


def lines_of(out: Path) -> list[dict[str, str]]:
    assert (out / "profile.png").read_bytes().startswith(b"\x89PNG")
    with open(out / "profile.csv") as file:
        return list(csv.DictReader(file))
