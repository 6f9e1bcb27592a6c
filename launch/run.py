"""`smpc run`: every participant of a job as a process of this machine. A convenience over `smpc party`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from launch.interrupts import ALL, ignored
from launch.job import Job, load_job
from launch.keys import make_keys
from launch.outputs import cost_json, remove_leftovers, reserved, write_folder
from launch.progress import Board
from launch.scratch import naming_tmpdir
from launch.trace import NAME as TRACE
from launch.trace import merged
from smpc.engine.tls import listen
from smpc.errors import PeerError

_STOP_SECONDS = 5.0
_POLL_SECONDS = 0.05
_WRITING_SECONDS = 30.0  # beyond a job's deadline, to write results on a busy disk
# like `python -m launch`, but files of the working folder are no modules
_SMPC = "import sys; sys.path[:] = filter(None, sys.path); from launch.cli import main; sys.exit(main())"


def run_locally(job_path: Path, out: Path, *, trace: bool = False) -> None:
    """Run the job with ephemeral keys on loopback; the files of `smpc party`, costs of all participants together.

    With `trace`, so are the times of their steps and messages.
    Raises PeerError with one line when a participant fails; then nothing is left running and nothing is written.
    """
    job = load_job(job_path)
    with reserved(out):
        folder = Path(tempfile.mkdtemp(prefix="smpc-run-"))  # readable by this user only
        board = Board()
        processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            with naming_tmpdir(folder):
                _start(job, job_path, folder, board, processes, ["--trace"] if trace else [])
                _wait(processes, board, folder, job.deadline + _WRITING_SECONDS)
            write_folder(out, _merge(job, folder))
            for endpoint in job.participants:
                remove_leftovers(endpoint.name, job.task.leftovers(endpoint.name))
            for name in processes:  # warnings and counts for the tables' owners
                sys.stderr.write((folder / f"{name}.err").read_text(errors="replace"))
        finally:
            with ignored(*ALL):  # a matter of seconds: the folder holds keys, and somebody may press Ctrl-C twice
                _stop(processes)
                board.close()
                shutil.rmtree(folder, ignore_errors=True)


def _start(
    job: Job,
    job_path: Path,
    folder: Path,
    board: Board,
    processes: dict[str, subprocess.Popen[bytes]],
    options: Sequence[str],
) -> None:
    names = [endpoint.name for endpoint in job.participants]
    listeners = {name: listen(("127.0.0.1", 0)) for name in names}
    keys = {name: make_keys(name, folder) for name in names}
    endpoints = {
        name: {
            "address": list(listeners[name].getsockname()),
            "certificate": str(keys[name][1]),
        }
        for name in names
    }
    (folder / "endpoints.json").write_text(json.dumps(endpoints))
    for name in names:
        handle = listeners[name].fileno()
        command = [sys.executable, "-c", _SMPC, "party", str(job_path), "--as", name]
        command += ["--out", str(folder / f"{name}.out"), "--key", str(keys[name][0])]
        command += ["--endpoints", str(folder / "endpoints.json"), "--listen-fd", str(handle)]
        command += ["--progress-fd", str(board.write), *options]
        with open(folder / f"{name}.err", "wb") as errors:
            processes[name] = subprocess.Popen(  # noqa: S603  # our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=(handle, board.write),
                env={"OMP_NUM_THREADS": "1", **os.environ},  # the participants share this machine's cores
            )
    for listener in listeners.values():
        listener.close()


def _wait(processes: Mapping[str, subprocess.Popen[bytes]], board: Board, folder: Path, patience: float) -> None:
    """Until all have ended well; PeerError that tells who failed first otherwise.

    Who stops once its peers have ended is missed by none of them. But whoever still works, solves for a model say,
    tells its progress all the time: after `patience` seconds without a word from anybody, those left are given up.
    """
    told, silent = board.told, 0.0
    while left := [name for name, process in processes.items() if process.poll() is None]:
        failed = [name for name, process in processes.items() if process.poll() not in (None, 0)]
        if failed:
            raise PeerError(_first_failure(processes, board, folder))
        if len(left) == len(processes) or board.told != told:
            told, silent = board.told, 0.0
        elif silent > patience:  # seconds that were slept: a launcher that is stopped itself loses no patience
            raise PeerError(
                f"{' and '.join(left)} did not end: {patience:g} s without a word after the others had ended; nothing "
                "is written, run again"
            )
        time.sleep(_POLL_SECONDS)
        silent += _POLL_SECONDS
    if any(process.returncode for process in processes.values()):
        raise PeerError(_first_failure(processes, board, folder))


def _first_failure(processes: Mapping[str, subprocess.Popen[bytes]], board: Board, folder: Path) -> str:
    """One line: a participant that failed by itself before those that only report another's failure.

    The one that failed may end after those that it pulled down: it is given a while to say why.
    """
    end = time.monotonic() + _STOP_SECONDS
    while True:
        time.sleep(0.5)
        killed = [name for name, process in processes.items() if (process.poll() or 0) < 0]
        if killed:
            name = killed[0]
            number = -int(processes[name].returncode)
            return f"{name} was ended by {signal.Signals(number).name} at '{board.phase(name) or 'start'}'"
        running = any(process.poll() is None for process in processes.values())
        told = _last_lines(processes, folder)
        own = {name: text for name, text in told.items() if not any(_about(n, text) for n in processes if n != name)}
        if own or not running or time.monotonic() > end:
            name, text = next(iter((own or told).items()))
            return text if _about(name, text) else f"{name}: {text}"


def _last_lines(processes: Mapping[str, subprocess.Popen[bytes]], folder: Path) -> dict[str, str]:
    """What the participants that failed said last."""
    failed = [name for name, process in processes.items() if process.poll() not in (None, 0)]
    texts = {name: (folder / f"{name}.err").read_text(errors="replace").strip() for name in failed}
    return {
        name: text.splitlines()[-1].removeprefix("smpc: ") if text else "ended without a word"
        for name, text in texts.items()
    }


def _about(name: str, text: str) -> bool:
    """Whether a line's first word is this participant."""
    return text.startswith((f"{name} ", f"{name}: "))


def _stop(processes: Mapping[str, subprocess.Popen[bytes]]) -> None:
    for process in processes.values():
        if process.poll() is None:
            process.terminate()
    end = time.monotonic() + _STOP_SECONDS
    for process in processes.values():
        try:
            process.wait(timeout=max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _merge(job: Job, folder: Path) -> dict[str, str | bytes]:
    """The server's files, without a server those of all; model and guarantee among them, and everybody's costs."""
    tellers = [job.server] if job.server else job.participants
    files: dict[str, str | bytes] = {
        path.name: path.read_bytes() for teller in tellers for path in sorted((folder / f"{teller.name}.out").iterdir())
    }
    folders = [folder / f"{endpoint.name}.out" for endpoint in job.participants]
    costs: dict[str, object] = {}
    for own in folders:
        costs |= json.loads((own / "cost.json").read_text())["participants"]
    if TRACE in files:
        files[TRACE] = merged([own / TRACE for own in folders])
    return {**files, "cost.json": cost_json(costs)}
