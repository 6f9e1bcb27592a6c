"""Whoever is stopped after its peers have ended is missed by none of them: `smpc run` gives it up in time."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch import run
from launch.progress import Board
from smpc.errors import PeerError
from tests.launch.jobs import write_job
from tests.launch.test_split_job import split_job, write_tables


@pytest.fixture
def board() -> Iterator[Board]:
    with contextlib.closing(Board()) as board:
        yield board


@contextlib.contextmanager
def started(board: Board, **scripts: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A shell for each participant, which may tell its progress to $board."""
    processes = {
        name: subprocess.Popen(["sh", "-c", f"board={board.write}; {text}"], pass_fds=[board.write])
        for name, text in scripts.items()
    }
    try:
        yield processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def tell(name: str, phase: str) -> str:
    return f"echo '{json.dumps([name, phase, 0, 0, 0])}' >/proc/self/fd/$board"


def test_who_is_silent_after_the_others_have_ended_is_named(board: Board, tmp_path: Path) -> None:
    text = f"{tell('server', 'reveal')}; exec sleep 60"
    with started(board, a="true", server=text, b="exit 0", dealer="exec sleep 60") as processes:
        start = time.monotonic()
        with pytest.raises(PeerError) as caught:
            run._wait(processes, board, tmp_path, 0.5)
        assert 0.4 < time.monotonic() - start < 10
        told = "server and dealer did not end: 0.5 s without a word after the others had ended; "
        assert str(caught.value) == f"{told}nothing is written, run again"


def test_who_works_on_is_waited_for(board: Board, tmp_path: Path) -> None:
    """A server that solves for a model, say, which takes longer than the others' patience with a silent peer."""
    text = f"for i in 1 2 3 4 5 6 7 8 9 10; do {tell('server', 'solving')}; sleep 0.2; done"
    with started(board, a="true", server=text) as processes:
        run._wait(processes, board, tmp_path, 1.0)
        assert board.phase("server") == "solving" and board.told == 10


def test_while_all_run_their_own_deadlines_count(board: Board, tmp_path: Path) -> None:
    with started(board, a="sleep 1", server="sleep 1") as processes:
        run._wait(processes, board, tmp_path, 0.2)


def test_a_failure_after_the_others_have_ended_is_told_as_ever(board: Board, tmp_path: Path) -> None:
    (tmp_path / "server.err").write_text("smpc: no room\n")
    scripts = {"a": "true", "server": "sleep 0.3; exit 1"}
    with started(board, **scripts) as processes, pytest.raises(PeerError, match=r"^server: no room$"):
        run._wait(processes, board, tmp_path, 5.0)


def test_patience_is_the_jobs_deadline_and_time_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And who is given up is ended; nothing is written."""
    write_tables(tmp_path)
    write_job(tmp_path, {**split_job(), "network": {"deadline": 7}})
    given: list[float] = []

    def start(_: object, __: object, ___: object, board: Board, processes: dict[str, object], *____: object) -> None:
        processes["a"] = subprocess.Popen(["sleep", "60"])

    def wait(processes: dict[str, subprocess.Popen[bytes]], _: Board, __: Path, patience: float) -> None:
        given.extend([patience, processes["a"].pid])
        processes["a"].send_signal(signal.SIGSTOP)
        raise PeerError("a did not end")

    monkeypatch.setattr(run, "_start", start)
    monkeypatch.setattr(run, "_wait", wait)
    monkeypatch.setattr(run, "_STOP_SECONDS", 0.2)
    with pytest.raises(PeerError, match="a did not end"):
        run.run_locally(tmp_path / "job.toml", tmp_path / "out")
    assert given[0] == 7 + run._WRITING_SECONDS and not (tmp_path / "out").exists()
    assert not Path(f"/proc/{given[1]}").exists()
