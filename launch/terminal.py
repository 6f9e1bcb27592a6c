"""Lines for the person who started this process."""

from __future__ import annotations

import sys
from contextlib import suppress


def tell(text: str, *, end: str = "\n") -> None:
    """Print to standard error. A terminal that has gone, or a full disk behind it, ends no job: it may be charged."""
    with suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)
