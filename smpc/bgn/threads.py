"""Threads over row blocks: the library's calls leave Python's lock, so blocks run on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_all_cores(f: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> list[R]:
    """[f(item) for item in items], on `threads` threads (all cores without it)."""
    count = threads or cores()
    if count == 1:
        return [f(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(f, items))


def row_blocks(rows: int, block: int) -> list[slice]:
    """The rows in pieces of `block`."""
    return [slice(start, min(rows, start + block)) for start in range(0, rows, block)]
