"""What a newcomer gets wrong on the command line: one line each, which says what to do, and nothing written."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from launch.cli import main
from launch.keys import make_keys
from tests.launch.jobs import valid_job, write_job
from tests.launch.processes import SMPC, environment

Job = dict[str, Any]


def hosted_job() -> Job:
    """The valid job for participants on hosts of their own."""
    job = valid_job()
    for number, endpoint in enumerate([*job["party"], job["server"], job["dealer"]], 1):
        endpoint |= {"address": f"127.0.0.{number}:7001", "certificate": f"{endpoint['name']}.crt"}
    return job


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a job with certificates, keys and tables."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "server", "dealer"):
        make_keys(name, tmp_path)
    (tmp_path / "a.csv").write_text("person,u,v\n1,0,0\n2,1,1\n")
    (tmp_path / "b.csv").write_text("person,w,y\n1,0,0\n2,1,1\n")
    write_job(tmp_path, hosted_job())
    return tmp_path


def rewrite(folder: Path, change: Callable[[Job], Any]) -> None:
    job = hosted_job()
    change(job)
    write_job(folder, job)


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error of a command that fails and writes nothing."""
    before = sorted(folder.rglob("*"))
    assert main(arguments) == 1
    output, errors = capsys.readouterr()
    assert output == "" and errors.startswith("smpc: ") and errors.count("\n") == 1, errors
    assert sorted(folder.rglob("*")) == before
    return errors.removeprefix("smpc: ").rstrip("\n")


RUN = ("run", "job.toml", "--out", "out")
PARTY = ("party", "job.toml", "--as", "a", "--out", "out")


def test_wrong_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(folder, capsys, "run", "jop.toml", "--out", "out") == (
        "jop.toml: cannot be read (No such file or directory)"
    )


def test_typo_in_a_key(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(folder, lambda job: job["job"].update(epsilom=1))
    assert refused(folder, capsys, *RUN) == "job.toml: [job]: unknown key 'epsilom'; did you mean 'epsilon'?"


def test_bounds_in_percent(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(folder, lambda job: job["party"][0]["columns"].update(u=["0%", "100%"]))
    assert refused(folder, capsys, *RUN) == (
        "job.toml: columns of a: u = ['0%', '100%'] must be [low, high], two numbers without quotes, or words"
    )


def test_as_a_stranger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(folder, capsys, "party", "job.toml", "--as", "bob", "--out", "out") == (
        "--as bob: the job's participants are a, b, server, dealer"
    )


def test_a_job_for_one_host_on_many(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(folder, lambda job: job["server"].pop("address"))
    assert refused(folder, capsys, *PARTY).startswith(
        "job.toml: server needs an address and a certificate to take part on its own host; make the certificate with"
    )


def test_a_certificate_not_yet_received(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dealer.crt").unlink()
    line = refused(folder, capsys, *PARTY)
    assert line.strip() == (
        "certificate dealer.crt: does not exist; get it from its owner, who makes it with `smpc keys new`"
    )


def test_out_is_reused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "model.json").touch()
    for command in (RUN, PARTY, ("demo", "--out", "out")):
        assert refused(folder, capsys, *command) == (
            "--out out: exists and is not an empty folder; name another, or remove it"
        )


@pytest.mark.parametrize("out", ["no/such/out", "a.csv", "a.csv/out"])
def test_out_cannot_be_made(folder: Path, capsys: pytest.CaptureFixture[str], out: str) -> None:
    for command in (("run", "job.toml"), ("party", "job.toml", "--as", "a")):
        assert refused(folder, capsys, *command, "--out", out).startswith(f"--out {out}: ")


def test_key_missing_or_anothers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(folder, capsys, *PARTY, "--key", "b.key") == (
        "key b.key: is no private key (PEM, no password) of the certificate a.crt; name its key with --key, or make "
        "both anew with `smpc keys new` and give the others the certificate"
    )
    (folder / "a.key").unlink()
    assert refused(folder, capsys, *PARTY) == "key a.key: does not exist; `smpc keys new` makes one, --key names it"


def test_port_in_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        rewrite(folder, lambda job: job["party"][0].update(address=f"127.0.0.1:{port}"))
        assert refused(folder, capsys, *PARTY) == (
            f"address 127.0.0.1 port {port}: cannot listen there (Address already in use); "
            "it must be a free port of this host"
        )


def test_anothers_host(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(folder, lambda job: job["party"][0].update(address="192.0.2.1:7001"))  # TEST-NET: nobody's
    assert "cannot listen there (Cannot assign requested address); it must" in refused(folder, capsys, *PARTY)


def test_table_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.csv").unlink()
    assert refused(folder, capsys, *PARTY) == "a.csv: does not exist; correct its name"


def test_more_fraction_bits_than_the_ring_has(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewrite(folder, lambda job: job["job"].update(fraction_bits=31))
    assert refused(folder, capsys, *RUN) == "job.toml: [job]: fraction_bits = 31 must be a whole number from 1 to 30"


@pytest.mark.parametrize("arguments", [(), ("frobnicate",), ("run",), ("run", "job.toml"), ("keys",), ("party", "x")])
def test_usage(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    usage, *_, error = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: smpc") and "error: " in error


@pytest.mark.mpc
def test_files_of_the_working_folder_are_no_modules(folder: Path) -> None:
    """Whoever keeps a launch.py beside the tables still gets ours in every participant."""
    for name in ("launch.py", "smpc.py", "numpy.py", "socket.py"):
        (folder / name).write_text("raise SystemExit('the wrong module')\n")
    (folder / "a.csv").write_text("person,u,v\n")  # fails in a participant, before anything takes long
    code = "import sys; from launch.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [SMPC[0], "-c", f"import sys; sys.path.remove(''); {code}", *RUN]
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "smpc: a: a.csv: has 0 data rows; needs at least 2\n"


@pytest.mark.mpc
def test_the_console_script_ignores_modules_of_the_working_folder(folder: Path) -> None:
    """`smpc` itself, as pip installs it, has no working folder on its path."""
    script = Path(SMPC[0]).with_name("smpc")
    if not script.exists():
        pytest.skip("the console script is not installed beside this Python")
    (folder / "launch.py").write_text("raise SystemExit('the wrong module')\n")
    done = subprocess.run([script, "run", "none.toml", "--out", "o"], cwd=folder, capture_output=True, text=True)
    assert done.stderr == "smpc: none.toml: cannot be read (No such file or directory)\n"


def printing(folder: Path, output: int, *, lines: int, then: str = "pass", unbuffered: str = "") -> tuple[int, str]:
    """Exit status and standard error of a command that prints lines to `output`, then does something else."""
    text = f"""
from launch import cli
def work(options):
    for number in range({lines}):
        print(number)
    open("results", "w").close()
    {then}
cli._demo = work
raise SystemExit(cli.main(["demo"]))
"""
    env = {**environment(folder), "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=folder, env=env, stdout=output, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


@pytest.fixture
def unread() -> Iterator[int]:
    """The end of a pipe whose reader has ended."""
    there, here = os.pipe()
    os.close(there)
    yield here
    os.close(here)


@pytest.mark.parametrize(("lines", "unbuffered"), [(3, ""), (3, "1"), (10_000, "")])
def test_a_reader_that_has_read_enough(tmp_path: Path, unread: int, lines: int, unbuffered: str) -> None:
    assert printing(tmp_path, unread, lines=lines, unbuffered=unbuffered) == (141, "")
    assert (tmp_path / "results").exists() == (lines == 3 and not unbuffered)


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        assert printing(tmp_path, full.fileno(), lines=3) == (1, "smpc: system: No space left on device\n")


@pytest.mark.parametrize("error", ["BrokenPipeError(32, 'Broken pipe')", "OSError(28, 'No space left on device')"])
def test_another_pipe_that_breaks_is_an_error(tmp_path: Path, error: str) -> None:
    told = f"smpc: system: {error.split(chr(39))[1]}\n"
    assert printing(tmp_path, subprocess.DEVNULL, lines=3, then=f"raise {error}") == (1, told)


def test_an_error_where_output_is_no_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("launch.cli._demo", full)
    assert main(["demo"]) == 1 and capsys.readouterr().err == "smpc: system: No space left on device\n"


def test_no_output_at_all(tmp_path: Path) -> None:
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *SMPC, "ledger", "cap", "a.db", "a", "1"], cwd=tmp_path)
    assert closed.returncode == 0
