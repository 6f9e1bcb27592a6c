"""Participants as threads of this process, each with its own network over real TLS on loopback. No torch."""

from __future__ import annotations

import atexit
import contextlib
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from launch.keys import make_keys
from smpc.cast import Cast
from smpc.engine.dealer import Dealer
from smpc.engine.frames import Frame
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.session import CryptenSession
from smpc.engine.start import join
from smpc.engine.tls import Contexts, Identity, listen
from smpc.ring import Integers

Work = Callable[[Network, Agreement], Any]


@cache
def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="smpc-tests-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def keys(name: str) -> tuple[Path, Path]:
    """(key, certificate) of a name: made once for all tests."""
    return make_keys(name, _folder())


def cast_of(parties: int, *, dealer: bool = True) -> Cast:
    """p0, p1, ... with the server and, if asked for, the dealer."""
    return Cast(tuple(f"p{rank}" for rank in range(parties)), dealer="dealer" if dealer else None)


class Participants:
    """Everybody of a cast, connected. `run(work)` calls work(network, agreement) in each one's thread."""

    def __init__(
        self,
        cast: Cast,
        *,
        facts: Mapping[str, Mapping[str, str]] | None = None,
        deadline: float = 20.0,
        record: bool = False,
    ) -> None:
        self.cast = cast
        self.frames: dict[str, list[tuple[str, str, Frame]]] = {name: [] for name in cast.everyone}
        self.joined: dict[str, tuple[Network, Agreement]] = {}
        self._threads = {name: ThreadPoolExecutor(1) for name in cast.everyone}
        listeners = {name: listen(("127.0.0.1", 0)) for name in cast.everyone}
        addresses = {name: listener.getsockname() for name, listener in listeners.items()}
        certificates = {name: keys(name)[1] for name in cast.everyone}

        def connect(name: str) -> tuple[Network, Agreement]:
            log = self.frames[name]
            return join(
                cast,
                Contexts(Identity(name, *keys(name)), certificates),
                addresses,
                listeners[name],
                (facts or {}).get(name, {}),
                deadline=deadline,
                start_deadline=deadline,
                tap=(lambda *event: log.append(event)) if record else None,
            )

        self.joined = self._all({name: (connect, (name,)) for name in cast.everyone})

    def __enter__(self) -> Participants:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close(error)

    def run(self, work: Work | Mapping[str, Work]) -> dict[str, Any]:
        """Each one's result; raises what the first in the cast's order raised."""
        return raised_first(self.outcomes(work))

    def outcomes(self, work: Work | Mapping[str, Work]) -> dict[str, Any]:
        """Each one's result, or the exception it raised (which it has told the others)."""
        return {name: future.result(timeout=60) for name, future in self.start(work).items()}

    def start(self, work: Work | Mapping[str, Work]) -> dict[str, Future[Any]]:
        """The outcomes to come."""

        def guarded(name: str, do: Work) -> Any:
            network, agreement = self.joined[name]
            try:
                return do(network, agreement)
            except Exception as error:
                network.abort(error)
                return error

        jobs = work if isinstance(work, Mapping) else dict.fromkeys(self.cast.everyone, work)
        return {name: self._threads[name].submit(guarded, name, do) for name, do in jobs.items()}

    def close(self, error: BaseException | None = None) -> None:
        """All say goodbye, or tell each other of `error`."""
        finish = (lambda network: network.abort(error)) if error else (lambda network: network.finish())
        with contextlib.suppress(Exception) if error else contextlib.nullcontext():
            self._all({name: (finish, (network,)) for name, (network, _) in self.joined.items()})
        for threads in self._threads.values():
            threads.shutdown(wait=False)

    def _all(self, calls: Mapping[str, tuple[Callable[..., Any], Sequence[Any]]]) -> dict[str, Any]:
        futures = {name: self._threads[name].submit(f, *arguments) for name, (f, arguments) in calls.items()}
        errors = {name: future.exception(timeout=60) for name, future in futures.items()}
        return raised_first({name: errors[name] or future.result() for name, future in futures.items()})


def cause(line: str) -> str:
    """An error's line without who told of it: one prefix at most."""
    return re.sub(r"^\w+ reports( by way of \w+(, \w+)*)?: ", "", line)


def raised_first(outcomes: Mapping[str, Any]) -> dict[str, Any]:
    for outcome in outcomes.values():
        if isinstance(outcome, BaseException):
            raise outcome
    return dict(outcomes)


class ArraySession(CryptenSession):
    """The secure session with plain arrays as shares: CrypTen only wraps them, and its state is per process."""

    def _install(self, dealer: str) -> None:
        """No CrypTen here, and so no comparisons."""

    def _tensor(self, share: Integers, bits: int = 0) -> Integers:
        return np.asarray(share, order="C")

    def _integers(self, share: Integers) -> Integers:
        return share


class Sessions:
    """A session for each party and the server, and a serving dealer, over `Participants`; all new after a failure."""

    def __init__(self, parties: int, *, record: bool = False) -> None:
        self.cast = cast_of(parties)
        self._record = record
        self._open()

    def _open(self) -> None:
        self.participants = Participants(self.cast, record=self._record)
        self.frames = self.participants.frames
        self.sessions = {
            name: ArraySession(self.cast, *self.participants.joined[name]) for name in (*self.cast.parties, "server")
        }

        def serve(network: Network, agreement: Agreement) -> None:
            Dealer(network, agreement, self.cast.parties).serve()

        self._dealer = self.participants.start({"dealer": serve})

    def __enter__(self) -> Sessions:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.participants.close(error)

    def run(self, task: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """task(session, *arguments) of each party and the server."""

        def work(network: Network, _: Agreement) -> Any:
            return task(self.sessions[network.me], *arguments)

        try:
            return self.participants.run(dict.fromkeys(self.sessions, work))
        except BaseException as error:
            self.participants.close(error)
            self._open()
            raise
