"""Participants of a pool end with whoever asked for them: without a word, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch.pool import Pool, TaskFailed
from smpc.engine.session import CryptenSession
from tests.harness import cast_of
from tests.launch.processes import PATIENCE, alive, environment, hears_interrupts

pytestmark = pytest.mark.mpc

# Imports take most of the seconds until "computing" is shown: "imports" is shown before.
PROGRAM = """
import time
from launch import cli, pool
from smpc.cast import Cast

def wait(s):
    if s.me == "p0":
        print("computing", flush=True)
    time.sleep(60)

def work(options):
    with pool.Pool(Cast(("p0", "p1"))) as running:
        print("imports", *(process.pid for process in running.processes.values()), flush=True)
        running.run(wait)

if __name__ == "__main__":
    cli._demo = work
    raise SystemExit(cli.main(["demo"]))
"""


@pytest.mark.parametrize("at", ["imports", "computing"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_pool_ends_without_a_traceback(tmp_path: Path, number: signal.Signals, at: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    root = str(Path(__file__).parents[2])
    command, env = [sys.executable, "program.py"], {**environment(tmp_path), "PYTHONPATH": root}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, start_new_session=True, preexec_fn=hears_interrupts,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        pids = [int(pid) for pid in process.stdout.readline().split()[1:]]
        assert len(pids) == 4
        if at == "computing":
            assert process.stdout.readline() == "computing\n"
        else:
            time.sleep(0.5)
        start = time.monotonic()
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)  # as a terminal and a user do it
        process.wait(timeout=PATIENCE)
        while any(map(alive, pids)) and time.monotonic() < start + PATIENCE:  # a child ends once it has its imports
            time.sleep(0.05)
        left = [pid for pid in pids if alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left and process.stderr.read() == ("" if number == signal.SIGKILL else "smpc: interrupted\n")
        assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)


def stop_one(s: CryptenSession) -> None:
    """The party that all others wait for is stopped, as by a debugger."""
    if s.me == "p0":
        os.kill(os.getpid(), signal.SIGSTOP)
    s.network.receive("p0", "nothing", "int64", (1,))


def test_a_stopped_participant_does_not_stop_the_pool() -> None:
    start = time.monotonic()
    with pytest.raises(TaskFailed) as caught, Pool(cast_of(2), deadline=2.0) as pool:
        pool._patience = 1.0
        pool.run(stop_one)
    assert time.monotonic() - start < PATIENCE
    lines = str(caught.value).splitlines()
    assert lines[0] == "p0: the process does not answer"
    assert any("p0 is silent for 2 s" in line for line in lines[1:])


def whoami(s: CryptenSession) -> str:
    return s.me


def test_ctrl_c_is_heard_by_who_asks_alone() -> None:
    """A terminal sends it to all: the others end when they are told to, at their imports and at their work."""
    before = signal.getsignal(signal.SIGINT)
    with Pool(cast_of(2)) as pool:
        assert signal.getsignal(signal.SIGINT) is before
        for _ in range(2):
            for process in pool.processes.values():
                os.kill(process.pid, signal.SIGINT)
            assert pool.run(whoami) == {name: name for name in ("p0", "p1", "server")}
