"""Real `smpc` processes for tests: a shell for each participant, or one `smpc run`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from launch.keys import make_keys
from tests.launch.jobs import Raw, free_addresses, write_job

SMPC = [sys.executable, "-m", "launch"]
PATIENCE = 90.0  # nothing here takes that long: a test that waits longer has failed
State = tuple[str, int, int]  # phase, rows done, rows in all


def write_tables(folder: Path, rows: int, parties: int, width: int = 2) -> dict[str, Path]:
    """A Parquet file for each of the parties p1, p2, ...: columns p1_0, p1_1, ...; p1 also holds the label y."""
    rng = np.random.default_rng(rows)
    people = rng.permutation(rows)
    paths = {}
    total = np.zeros(rows)
    for number in range(parties, 0, -1):
        name = f"p{number}"
        columns = {f"{name}_{i}": rng.integers(0, 1000, rows) / 1000 for i in range(width)}
        total += sum(columns.values())
        if number == 1:
            columns["y"] = total + rng.random(rows)
        paths[name] = folder / f"{name}.parquet"
        pa.parquet.write_table(pa.table({"person": people, **columns}), paths[name])
        people = people[::-1].copy()  # another order of the same people, and of their values
        total = total[::-1].copy()
    return paths


def job_of(tables: Mapping[str, Path], *, width: int = 2, epsilon: Any = 1, **network: float) -> dict[str, Any]:
    """The job over `write_tables`' files."""
    parties = []
    for name, path in tables.items():
        columns: dict[str, Any] = {f"{name}_{i}": [0, 1] for i in range(width)}
        if name == "p1":
            columns["y"] = [0, len(tables) * width + 1]
        parties.append({"name": name, "table": str(path), "id": "person", "columns": columns})
    parties.sort(key=lambda party: party["name"])
    return {
        "job": {"name": "test", "protocol": "functional", "epsilon": epsilon, "allow_weak": True},
        "label": {"party": "p1", "column": "y"},
        "server": {"name": "server"},
        "dealer": {"name": "dealer"},
        "party": parties,
        "network": {key: Raw(repr(float(value))) for key, value in network.items()},
    }


def participants(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*job["party"], job["server"], *([job["dealer"]] if "dealer" in job else [])]


def outputs(folder: Path, process: subprocess.Popen[Any]) -> list[str]:
    """Output folders, whole or not. A killed process may leave its own, empty: that is free for the next run."""
    killed = process.returncode == -signal.SIGKILL
    found = [*folder.glob("*out*"), *folder.glob(".smpc-*")]
    return [str(path) for path in found if not (killed and path.is_dir() and not any(path.iterdir()))]


class Shells:
    """Every participant of a job as `smpc party` with a folder, an address and a key of its own, as on five hosts."""

    def __init__(self, folder: Path, job: dict[str, Any]) -> None:
        self.job = job
        self.names = [endpoint["name"] for endpoint in participants(job)]
        self.folders = {name: folder / name for name in self.names}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: dict[str, float] = {}
        self.states: dict[str, list[State]] = {name: [] for name in self.names}
        self._change = threading.Condition()
        self._read, self._write = os.pipe()
        for name in self.names:
            self.folders[name].mkdir()
            make_keys(name, self.folders[name])
        endpoints = participants(job)
        hosts = (f"127.0.0.{number}" for number in range(1, 1 + len(endpoints)))
        for endpoint, address in zip(endpoints, free_addresses(hosts), strict=True):
            endpoint |= {"address": address, "certificate": f"{endpoint['name']}.crt"}
        for name in self.names:  # certificates go to everybody, keys to nobody
            for other in self.names:
                if other != name:
                    content = (self.folders[other] / f"{other}.crt").read_bytes()
                    (self.folders[name] / f"{other}.crt").write_bytes(content)
            write_job(self.folders[name], job)
        threading.Thread(target=self._collect, daemon=True).start()

    def __enter__(self) -> Shells:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        os.close(self._write)

    def start(self, *names: str, arguments: tuple[str, ...] = (), program: Sequence[str] = SMPC) -> None:
        """Start these participants, or all; `program` is `smpc` or does the same."""
        for name in names or self.names:
            with open(self.folders[name] / "stderr", "wb") as errors:
                self.processes[name] = subprocess.Popen(
                    [*program, "party", "job.toml", "--as", name, "--out", "out", "--progress-fd", str(self._write),
                     *arguments],
                    cwd=self.folders[name], env=environment(self.folders[name]), pass_fds=(self._write,),
                    stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, preexec_fn=hears_interrupts,
                )  # fmt: skip
            threading.Thread(target=self._watch, args=(name, self.processes[name]), daemon=True).start()

    def until(self, name: str, reached: Callable[[State], bool]) -> None:
        """Wait until a participant has told a state."""
        with self._change:
            met = self._change.wait_for(
                lambda: any(map(reached, self.states[name])) or name in self.ended, timeout=PATIENCE
            )
            assert met and any(map(reached, self.states[name])), (self.states[name][-3:], self.line(name))

    def all_end(self, names: list[str], seconds: float) -> None:
        """Wait until these have ended; AssertionError that shows where they are if some take longer."""
        with self._change:
            self._change.wait_for(lambda: all(name in self.ended for name in names), timeout=seconds)
            late = [name for name in names if name not in self.ended]
        for name in late:
            self.processes[name].send_signal(signal.SIGABRT)  # its stacks go to its terminal
            self.processes[name].wait()
        told = "\n".join(f"{name} {self.states[name][-1:]} {self.said(name)}" for name in names)
        assert not late, f"{late} still run after {seconds} s:\n{told}"

    def code(self, name: str) -> int:
        return self.processes[name].wait(timeout=PATIENCE)

    def said(self, name: str) -> list[str]:
        """The lines on a participant's terminal."""
        return (self.folders[name] / "stderr").read_text().splitlines()

    def line(self, name: str) -> str:
        """The last line on a participant's terminal."""
        return (self.said(name) or [""])[-1]

    def leftovers(self) -> list[str]:
        """What should not be there after a failed job: outputs, temporary files, processes, ports in use."""
        found = [path for name, folder in self.folders.items() for path in outputs(folder, self.processes[name])]
        found += [str(path) for folder in self.folders.values() for path in (folder / "tmp").iterdir()]
        found += [f"process {name}" for name, process in self.processes.items() if process.poll() is None]
        for endpoint in participants(self.job):
            host, _, port = endpoint["address"].partition(":")
            try:
                socket.create_server((host, int(port))).close()
            except OSError as error:
                found.append(f"{endpoint['address']}: {error}")
        return found

    def _collect(self) -> None:
        with os.fdopen(self._read) as lines:
            for text in lines:
                name, phase, rows, of, _ = json.loads(text)
                with self._change:
                    self.states[name].append((phase, rows, of))
                    self._change.notify_all()

    def _watch(self, name: str, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        with self._change:
            self.ended[name] = time.monotonic()
            self._change.notify_all()


def hears_interrupts() -> None:
    """A shell starts what runs in its background with SIGINT ignored, and that is inherited: not by what is tested."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def waiting(state: State) -> bool:
    return "waiting" in state[0]


def environment(folder: Path) -> dict[str, str]:
    """One thread, and a temporary folder of its own."""
    (folder / "tmp").mkdir(exist_ok=True)
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1", "TMPDIR": str(folder / "tmp")}


def children(pid: int) -> dict[str, int]:
    """The participants that a `smpc run` has started: name to process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError, IndexError):
                arguments = (entry / "cmdline").read_bytes().decode().split("\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == pid and "--as" in arguments:
                    found[arguments[arguments.index("--as") + 1]] = int(entry.name)
    return found


def alive(pid: int) -> bool:
    """Whether a process, which need not be a child, still runs."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Run:
    """One `smpc run` with a terminal, whose screen shows how far it is."""

    def __init__(self, folder: Path, job: dict[str, Any]) -> None:
        self.folder = folder
        self.job = job
        path = write_job(folder, job)
        terminal, there = os.openpty()
        self.screen = ""
        self.process = subprocess.Popen(
            [*SMPC, "run", path.name, "--out", "out"],
            cwd=folder, env=environment(folder), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=there, preexec_fn=hears_interrupts,
        )  # fmt: skip
        os.close(there)
        self._reader = threading.Thread(target=self._read, args=(terminal,), daemon=True)
        self._reader.start()
        self.participants: dict[str, int] = {}

    def until(self, *shown: str) -> None:
        """Wait until the screen shows one of these texts; then the participants are known."""
        end = time.monotonic() + PATIENCE
        while not any(text in self.screen for text in shown):
            assert self.process.poll() is None and time.monotonic() < end, self.screen[-500:]
            time.sleep(0.01)
        self.participants = children(self.process.pid)

    def line(self, seconds: float) -> str:
        """The one line that it ends with, in time."""
        self.process.wait(timeout=seconds)
        self._reader.join(timeout=5)
        return self.screen.replace("\x1b[2K", "\r").replace("\n", "\r").strip("\r").rpartition("\r")[2]

    def leftovers(self, seconds: float = 3.0) -> list[str]:
        """What should not be there afterwards; participants that lost their launcher get some seconds to notice."""
        end = time.monotonic() + seconds
        while any(map(alive, self.participants.values())) and time.monotonic() < end:
            time.sleep(0.05)
        found = [f"process {name}" for name, pid in self.participants.items() if alive(pid)]
        found += outputs(self.folder, self.process)
        return found + [str(path) for path in (self.folder / "tmp").iterdir()]

    def end(self) -> None:
        """For a test's last lines, whatever happened in it."""
        for pid in [self.process.pid, *self.participants.values()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def _read(self, terminal: int) -> None:
        with contextlib.suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as screen:
            while text := screen.read(4096):
                self.screen += text.decode(errors="replace")
