"""Tables as text, and medians with their range."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns to the right, the first to the left."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in lines
    )


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median and, in brackets, the least and the most."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"
