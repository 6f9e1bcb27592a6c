"""Neighbour relations: what may differ between two inputs that the noise has to make alike. The size of the input is
public in all of them (replace, never add or remove)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReplaceRecord:
    """The data of one record change: all its columns, or only the columns that the party `holder` has."""

    holder: str | None = None

    def __str__(self) -> str:
        return "replace one record" if self.holder is None else f"replace one record's columns at {self.holder}"


@dataclass(frozen=True)
class ReplaceParty:
    """All data of one party change, of a voter where votes are counted; the number of parties stays."""

    def __str__(self) -> str:
        return "replace all data of one voter"


@dataclass(frozen=True)
class FlipLabel:
    """The label of one record changes, its other columns stay."""

    def __str__(self) -> str:
        return "change one label"


Neighbours = ReplaceRecord | ReplaceParty | FlipLabel
