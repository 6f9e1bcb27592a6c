"""What one participant spent at one size, measured or extrapolated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cost:
    """`seconds`: the median of the repeats, `least` and `most` of them; parts of it: `local`, `waited`, `sockets`.

    `memory`: by how many bytes its memory grew above what it was with its tables in it.
    """

    backend: str
    sizes: Mapping[str, int]
    participant: str
    extrapolated: bool
    seconds: float
    least: float
    most: float
    local: float
    waited: float
    sockets: float
    bytes_sent: int
    bytes_predicted: int
    rounds: int
    memory: int

    @property
    def rows(self) -> int:
        return self.sizes["rows"]

    @property
    def others(self) -> tuple[tuple[str, int], ...]:
        """All sizes but the rows."""
        return tuple((name, value) for name, value in self.sizes.items() if name != "rows")

    def at(self, rows: int, predicted: int) -> Cost:
        """The same at more rows: times and memory in proportion, bytes by the formulas."""
        times = rows / self.rows
        return replace(
            self,
            sizes={**self.sizes, "rows": rows},
            extrapolated=True,
            seconds=self.seconds * times,
            least=self.least * times,
            most=self.most * times,
            local=self.local * times,
            waited=self.waited * times,
            sockets=self.sockets * times,
            bytes_sent=predicted,
            bytes_predicted=predicted,
            memory=round(self.memory * times),
        )
