"""Unmodified CrypTen 0.4.1 in real processes over gloo: what the attacks and benchmarks are compared with."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any

Task = Callable[..., Any]


class StockFailed(RuntimeError):
    """A task raised, a process ended, or the deadline passed; all processes have been killed."""


class StockParties:
    """Long-lived stock parties, one process each, and the third party's if `provider` is "TTP" (CrypTen's own: "TFP").

    `run(task)` calls task(rank) in every party. Starting torch costs seconds; this pays for it once.
    """

    def __init__(self, parties: int, *, provider: str = "TFP", deadline: float = 120.0) -> None:
        self.parties = parties
        self._deadline = deadline
        self._folder = tempfile.TemporaryDirectory(prefix="stock-crypten-")
        rendezvous = (Path(self._folder.name) / "rendezvous").as_uri()
        context = multiprocessing.get_context("spawn")
        self.processes: list[Any] = []
        self._pipes: list[Connection] = []
        for rank in range(parties + 1 if provider == "TTP" else parties):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, rank, parties, provider, rendezvous), daemon=True)
            process.start()
            there.close()
            self.processes.append(process)
            self._pipes.append(here)
        self._collect()  # every party says that it is connected

    def __enter__(self) -> StockParties:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def run(self, task: Task, /, per_rank: Sequence[Mapping[str, Any]] | None = None, **arguments: Any) -> list[Any]:
        """The results of task(rank, **arguments, **per_rank[rank]) by rank; `task` is a module-level function."""
        for rank in range(self.parties):
            self._pipes[rank].send((task, {**arguments, **(per_rank[rank] if per_rank else {})}))
        return self._collect()

    def _collect(self) -> list[Any]:
        """One answer of every party, or StockFailed as soon as one fails."""
        end = time.monotonic() + self._deadline
        results: dict[int, Any] = {}
        pending = {self._pipes[rank]: rank for rank in range(self.parties)}
        while pending:
            ready = wait(list(pending), timeout=max(0.0, end - time.monotonic()))
            if not ready:
                self.kill()
                raise StockFailed(f"no answer from rank {sorted(pending.values())} within {self._deadline:g} s")
            for pipe in ready:
                rank = pending.pop(pipe)  # type: ignore[call-overload]  # wait() returns what it was given
                try:
                    good, results[rank] = self._pipes[rank].recv()
                except (EOFError, ConnectionResetError):
                    good, results[rank] = False, "the process ended"
                if not good:
                    self.kill()
                    raise StockFailed(f"rank {rank}: {results[rank]}")
        return [results[rank] for rank in range(self.parties)]

    def close(self) -> None:
        """Let all processes leave; kill those that stay."""
        for process, pipe in zip(self.processes, self._pipes, strict=True):
            if process.is_alive():
                pipe.send(None)
        for process in self.processes:
            process.join(timeout=10)
        self.kill()

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()
        self._folder.cleanup()


def _serve(pipe: Connection, rank: int, parties: int, provider: str, rendezvous: str) -> None:
    """One process: joins the group, then works off tasks until it gets None or the caller is gone."""
    os.environ.update(
        DISTRIBUTED_BACKEND="gloo",
        GLOO_SOCKET_IFNAME="lo",
        OMP_NUM_THREADS="1",  # the processes share this machine's cores
        RANK=str(rank),
        RENDEZVOUS=rendezvous,
        WORLD_SIZE=str(parties),
    )
    from smpc.engine.compat import load_crypten  # only makes crypten importable, changes nothing in it

    crypten: Any = load_crypten()
    import torch

    torch.set_num_threads(1)
    crypten.cfg.mpc.provider = provider
    if rank == parties:
        crypten.mpc.provider.TTPServer()  # serves until the first party leaves
        return
    crypten.init()
    pipe.send((True, None))
    while (job := pipe.recv()) is not None:
        task, arguments = job
        try:
            pipe.send((True, task(rank, **arguments)))
        except Exception:
            pipe.send((False, traceback.format_exc()))
    crypten.uninit()
