"""Why a peer ended the job, as it is told from one participant to the next."""

from __future__ import annotations

import re
from collections.abc import Iterable


def told(names: Iterable[str], peer: str, text: str) -> str:
    """The line for what `peer` says, with one prefix: who reported it first, and through whose hands it came.

    `names` are all participants'. Everybody on the way is named, once, for each of them could have made it up. A peer
    that speaks of itself needs no prefix.
    """
    anybody = f"(?:{'|'.join(map(re.escape, names))})"
    prefix = re.compile(f"({anybody}) reports(?: by way of ({anybody}(?:, {anybody})*))?: ")
    hands: list[str] = []
    while found := prefix.match(text):
        hands += [found[1], *(found[2].split(", ") if found[2] else ())]
        text = text[found.end() :]
    if not hands and text.startswith(f"{peer} "):
        return text
    first, *others = dict.fromkeys([*hands, peer])
    return f"{first} reports{' by way of ' if others else ''}{', '.join(others)}: {text}"
