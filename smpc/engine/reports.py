"""Why a peer ended the job, as it is told from one participant to the next."""

from __future__ import annotations

import re
from collections.abc import Iterable


def told(names: Iterable[str], peer: str, text: str) -> str:
    """The line for what `peer` says, with one prefix: who reported it first and, if another, who passes it on.

    `names` are all participants'. A peer that speaks of itself needs no prefix.
    """
    anybody = "|".join(map(re.escape, names))
    prefix = re.compile(f"({anybody}) reports(?: by way of (?:{anybody}))?: ")
    origin = ""
    while found := prefix.match(text):
        origin, text = origin or found[1], text[found.end() :]
    if not origin and text.startswith(f"{peer} "):
        return text
    passed_on = f" by way of {peer}" if origin not in ("", peer) else ""
    return f"{origin or peer} reports{passed_on}: {text}"
