"""What a person sees while a job runs: one line with phase, rows and bytes, rewritten in place on a terminal."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from launch.terminal import tell
from smpc.engine.network import Network

_SECONDS = 0.25


class Progress:
    """Tells one participant's progress: to a pipe (for `smpc run`), else to the terminal if there is one."""

    def __init__(self, name: str, pipe: int | None = None) -> None:
        self._name = name
        self._pipe = None if pipe is None else os.fdopen(pipe, "w", buffering=1)
        self._terminal = pipe is None and sys.stderr.isatty()

    def say(self, phase: str) -> None:
        """Tell a phase that has no rows or bytes: a line that stays."""
        if self._pipe is None:
            tell(f"{self._name}: {phase}")
        else:
            self._tell(phase, 0, 0, 0)

    @contextmanager
    def watch(self, network: Network) -> Iterator[None]:
        """Tell the network's step, rows and bytes until the block ends."""
        done = threading.Event()

        def loop() -> None:
            while not done.wait(_SECONDS):
                self._tell(network.step, *network.rows, sum(network.sent().values()))

        thread = threading.Thread(target=loop, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self._tell(network.step, *network.rows, sum(network.sent().values()))
            if self._terminal:
                tell("")

    def _tell(self, phase: str, rows: int, of: int, sent: int) -> None:
        if self._pipe is not None:
            try:
                print(json.dumps([self._name, phase, rows, of, sent]), file=self._pipe, flush=True)
            except OSError:  # the launcher has gone, and with it whoever wants the results
                self._pipe = None
                os.kill(os.getpid(), signal.SIGTERM)
        elif self._terminal:
            tell(line(phase, rows, of, sent), end="")


def line(phase: str, rows: int, of: int, sent: int) -> str:
    """One terminal line that replaces the last."""
    share = rows / of if of else 0.0
    bar = "#" * int(20 * share)
    counted = f" [{bar:<20}] {rows:,} of {of:,} rows" if of else ""
    return f"\r\x1b[2K{phase[:40]:<40}{counted}  {sent / 1e6:.2f} MB sent"


class Board:
    """Collects what several participants tell through one pipe and shows the least advanced as one line."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self.told = 0  # how many times anybody has told anything: who works does so all the time
        self._state: dict[str, tuple[str, int, int, int]] = {}
        self._terminal = sys.stderr.isatty()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        shown = 0.0
        with os.fdopen(self.read) as lines:
            for text in lines:
                name, phase, rows, of, sent = json.loads(text)
                self._state[name] = (phase, rows, of, sent)
                self.told += 1
                if self._terminal and time.monotonic() - shown > _SECONDS:
                    shown = time.monotonic()
                    phase, rows, of, _ = min(self._state.values(), key=lambda s: s[1] / s[2] if s[2] else 1.0)
                    total = sum(state[3] for state in self._state.values())
                    tell(line(phase, rows, of, total), end="")

    def phase(self, name: str) -> str | None:
        """What `name` told last."""
        state = self._state.get(name)
        return state[0] if state else None

    def close(self) -> None:
        os.close(self.write)
        self._thread.join(timeout=2)
        if self._terminal:
            tell("\r\x1b[2K", end="")
