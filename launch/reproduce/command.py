"""`smpc reproduce`: a paper's measurements beside our own, as one page with its figures."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from launch.outputs import reserved
from launch.reproduce import data_release, ensemble, functional, split
from launch.reproduce.figure import check_can_draw
from launch.reproduce.page import Page

# By protocol: (quick, say) -> the page. `say` tells the user what is being measured, one line each.
PAGES: dict[str, Callable[[bool, Callable[[str], None]], Page]] = {
    "functional": functional.page,
    "data_release": data_release.page,
    "ensemble": ensemble.page,
    "split": split.page,
}


def reproduce(protocol: str, out: Path, *, quick: bool) -> None:
    """Write the page of a protocol in PAGES into the new folder `out`; progress goes to standard error."""
    check_can_draw()
    start = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - start:6.0f} s  {line}", file=sys.stderr, flush=True)

    with reserved(out):
        PAGES[protocol](quick, say).write(out)
    print(f"{out / protocol}.md")
