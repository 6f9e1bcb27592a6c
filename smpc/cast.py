"""Who takes part in a job, and what its secrecy rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from smpc.errors import InputError


@dataclass(frozen=True)
class Cast:
    """Who takes part: the parties in order, the server ("" where there is none), and the dealer (None likewise).

    `roles`: how the transcript calls parties that play different parts; the others are P_k. `assumptions` are what the
    backend's secrecy rests on, for the guarantee; `quorum`: so many parties together hold keys that open everything.
    """

    parties: tuple[str, ...]
    server: str = "server"
    dealer: str | None = "dealer"
    roles: Mapping[str, str] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    quorum: int | None = None

    def __post_init__(self) -> None:
        names = [*self.parties, self.server, *([self.dealer] if self.dealer else [])]
        if not self.parties or len(set(names)) != len(names):
            raise InputError(f"cast {names}: needs at least one party, and each name once")

    @property
    def tolerated(self) -> int:
        """The most parties that may collude, whatever roles beside them, without opening everything."""
        return (self.quorum or len(self.parties)) - 1

    @property
    def everyone(self) -> tuple[str, ...]:
        """All participants, in the order in which they connect."""
        return (*self.parties, *filter(None, (self.server, self.dealer)))
