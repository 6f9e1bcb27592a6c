"""Signals that wait: for what has to be done to its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ignored(*numbers: signal.Signals) -> Iterator[None]:
    """None of these is heard in the block, nor ever by a process that is started in it.

    Only the main thread can say so, and hears them: in another one this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        numbers = ()
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
