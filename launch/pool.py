"""Long-lived participants on this machine that run one task after another: for tests, benchmarks and the demo.

Starting a torch process costs seconds; a pool pays that once. Each process has its own TLS identity and network, as in
a real job.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any

from launch.backend import Backend
from launch.interrupts import ignored
from launch.keys import make_keys
from launch.scratch import naming_tmpdir
from smpc.cast import Cast
from smpc.engine.dealer import Dealer
from smpc.engine.start import join
from smpc.engine.tls import Contexts, Identity, listen
from smpc.errors import PeerError, SmpcError

Task = Callable[..., Any]


class TaskFailed(SmpcError):
    """A task raised in one or more participants; the message has each one's traceback."""


class Pool:
    """Parties, server and dealer as processes. `run(task)` calls task(session, **arguments) in all but the dealer."""

    def __init__(
        self,
        cast: Cast,
        *,
        deadline: float = 30.0,
        record: bool = False,
        backend: Backend = Backend(),  # noqa: B008  # a frozen value without state
    ) -> None:
        self.cast = cast
        self._patience = deadline + 10.0  # until all have noticed that one has failed
        self._folder = tempfile.TemporaryDirectory(prefix="smpc-pool-")  # readable by this user only
        folder = Path(self._folder.name)
        with naming_tmpdir(folder):
            keys = {name: make_keys(name, folder) for name in cast.everyone}
        listeners = {name: listen(("127.0.0.1", 0)) for name in cast.everyone}
        addresses = {name: listener.getsockname() for name, listener in listeners.items()}
        context = multiprocessing.get_context("spawn")
        self.processes: dict[str, Any] = {}
        self._pipes: dict[str, Connection] = {}
        try:
            for name in cast.everyone:
                here, there = context.Pipe()
                process = context.Process(
                    target=_serve,
                    args=(there, cast, Identity(name, *keys[name]), addresses, {n: k[1] for n, k in keys.items()}),
                    kwargs={"listener": listeners[name], "deadline": deadline, "record": record, "backend": backend},
                    daemon=True,
                )
                with ignored(signal.SIGINT):  # Ctrl-C is for this process, which ends the others
                    process.start()
                there.close()
                listeners[name].close()
                self.processes[name] = process
                self._pipes[name] = here
        except BaseException:
            self.close(now=True)
            raise

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close(now=error is not None)  # if it is, nobody wants to know any more what they compute

    def run(
        self, task: Task, /, per_party: Mapping[str, Mapping[str, Any]] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """The results of task(session, **arguments, **per_party[name]) by participant.

        The task is a module-level function; with `record` it also gets `frames`, the list of all (direction, peer,
        frame) of its process so far. Raises TaskFailed if any participant does; the pool is finished then.
        """
        workers = [name for name in self.cast.everyone if name != self.cast.dealer]
        for name in workers:
            self._pipes[name].send((task, {**arguments, **(per_party or {}).get(name, {})}))
        results: dict[str, Any] = {}
        failures: dict[str, str] = {}
        left = list(workers)
        while left and (ready := wait([self._pipes[name] for name in left], self._patience if failures else None)):
            for name in [name for name in left if self._pipes[name] in ready]:
                left.remove(name)
                try:
                    good, result = self._pipes[name].recv()
                except (EOFError, ConnectionResetError):
                    good, result = False, "the process ended"
                (results if good else failures)[name] = result
        failures |= dict.fromkeys(left, "the process does not answer")
        if failures:
            raise TaskFailed("\n".join(f"{name}: {failures[name]}" for name in workers if name in failures))
        return {name: results[name] for name in workers}

    def close(self, *, now: bool = False) -> None:
        """End all processes, `now` or after their task; those that do not end by themselves are killed."""
        for process in self.processes.values():
            if now:
                process.terminate()
        for name, pipe in self._pipes.items():
            if name != self.cast.dealer:
                try:
                    pipe.send(None)
                except (BrokenPipeError, OSError):
                    continue
        for process in self.processes.values():
            process.join(timeout=10)
            if process.is_alive():
                process.kill()
                process.join()
        self._folder.cleanup()


def _serve(
    pipe: Connection,
    cast: Cast,
    identity: Identity,
    addresses: Mapping[str, tuple[str, int]],
    certificates: Mapping[str, Path],
    *,
    listener: socket.socket,
    deadline: float,
    record: bool,
    backend: Backend,
) -> None:
    """One participant's process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the participants share this machine's cores
    frames: list[Any] = []
    tap = (lambda *event: frames.append(event)) if record else None
    network, agreement = join(
        cast,
        Contexts(identity, certificates),
        addresses,
        listener,
        {},
        deadline=deadline,
        start_deadline=60.0,
        tap=tap,
    )
    if identity.name == cast.dealer:
        with contextlib.suppress(PeerError), network:  # a failed task ends the pool; the caller is told by the others
            Dealer(network, agreement, cast.parties).serve()
        return
    with network, contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # whoever asks has gone
        session = backend.session(cast, network, agreement)
        while (job := pipe.recv()) is not None:
            task, arguments = job
            try:
                pipe.send((True, task(session, **arguments, **({"frames": frames} if record else {}))))
            except Exception as error:
                pipe.send((False, traceback.format_exc()))
                network.abort(error)
                os._exit(1)  # the traceback has gone to the caller


def _end_with_parent() -> None:
    """Whatever this process does when its parent is killed, nobody waits for it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
