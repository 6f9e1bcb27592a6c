"""Who may put their views together, and which such coalitions every guarantee has to name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Coalition:
    """The named roles `members` together with any `parties` of the remaining parties."""

    members: frozenset[str]
    parties: int = 0

    def __str__(self) -> str:
        any_parties = [f"any {self.parties} part{'y' if self.parties == 1 else 'ies'}"] if self.parties else []
        return " + ".join([*sorted(self.members), *any_parties])

    def within(self, other: Coalition) -> bool:
        """Whether `other` sees all that this one sees."""
        return self.members <= other.members and self.parties <= other.parties


def required(parties: Sequence[str], server: str | None, dealer: str | None) -> list[Coalition]:
    """The coalitions that every table has to state, the empty one left out."""
    outside = frozenset({server} if server else ())
    coalitions = [Coalition(outside, count) for count in range(0 if server else 1, len(parties))]
    if dealer and server:
        coalitions.append(Coalition(frozenset({server, dealer})))
    if dealer:
        coalitions.append(Coalition(frozenset({dealer}), 1))
    return coalitions
