"""Result files: all of them or none, never over others."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.outputs import check_free, kept, remove_leftovers, reserved, write_file, write_folder, write_new
from smpc.errors import InputError

FILES = {"model.json": "{}\n", "transcript.jsonl": "ä\n" * 1000}


def test_written_whole(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(out, FILES)
    assert {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()} == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out.stat().st_mode & 0o777 == 0o755


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    write_folder(out, FILES)
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("kind", ["full folder", "file", "dangling link"])
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "full folder":
        out.mkdir()
        (out / "mine").touch()
    elif kind == "file":
        out.write_text("mine")
    else:
        out.symlink_to("nowhere")
    before = sorted(tmp_path.rglob("*"))
    for write in (check_free, lambda path: write_folder(path, FILES)):
        with pytest.raises(InputError, match=r"--out .*/out: exists and is not an empty folder; name another"):
            write(out)
    assert sorted(tmp_path.rglob("*")) == before


def test_of_two_runs_into_one_folder_the_second_hears_at_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with reserved(out):
        with pytest.raises(InputError, match="another run is going to write there"), reserved(out):
            pytest.fail("both were let in")
        write_folder(out, FILES)
    assert {path.name for path in out.iterdir()} == set(FILES)
    with pytest.raises(InputError, match="is not an empty folder"), reserved(out):
        pytest.fail("a run's results were in the way")


def test_a_run_that_failed_leaves_its_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("mine", "new"):
        with pytest.raises(ZeroDivisionError), reserved(tmp_path / name):
            raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with reserved(tmp_path / "new"):  # free again
        pass


def test_no_folder_to_write_into(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "none" / "out", tmp_path / "file" / "out"):
        with pytest.raises(InputError, match=rf"--out {out}: {out.parent} is not a folder that can be written to"):
            check_free(out)
    with pytest.raises(InputError, match=r"--out /proc/out: cannot be written \(.*\); nothing was kept"):
        write_folder(Path("/proc/out"), FILES)


def test_a_read_only_folder(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root writes into read-only folders")
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="is not a folder that can be written to; make it first"):
        check_free(tmp_path / "out")


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_failure_on_the_way_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "rename")), fail)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); nothing was kept"):
        write_folder(tmp_path / "out", FILES)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(tiny_disk: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); nothing was kept"):
        write_folder(tiny_disk / "out", {"model.json": "{}\n", "transcript.jsonl": "x" * 100_000})
    assert not list(tiny_disk.iterdir())
    write_folder(tiny_disk / "out", {"model.json": "{}\n"})


def test_files_obey_the_umask_and_private_ones_are_the_users_alone(tmp_path: Path) -> None:
    for mask, wanted in ((0o022, 0o644), (0o077, 0o600)):
        old = os.umask(mask)
        try:
            write_file(tmp_path / "open", "text")
            write_file(tmp_path / "private", "text", private=True)
            write_folder(tmp_path / f"folder{mask}", {"a": "b"})
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == wanted
        assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / f"folder{mask}").stat().st_mode) == 0o777 & ~mask


@pytest.mark.parametrize("what", ["folder", "file"])
def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        if what == "folder":
            write_folder(tmp_path / "out", {"model.json": "x", "guarantee.json": "y"})
        else:
            write_file(tmp_path / "out", "x")
    assert list(tmp_path.iterdir()) == []


def test_a_written_file_replaces_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    write_file(tmp_path / "out", "new")
    assert (tmp_path / "out").read_text() == "new" and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(InputError, match="none/out: cannot be written"):
        write_file(tmp_path / "none" / "out", "new")


def test_leftovers_go_but_what_a_link_names_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, elsewhere, link = tmp_path / "own", tmp_path / "elsewhere", tmp_path / "link"
    for folder in (own, elsewhere):
        folder.mkdir()
        (folder / "batch-1.pt").write_bytes(b"1")
    link.symlink_to(elsewhere)
    remove_leftovers("lab", [own, link, tmp_path / "none"])
    assert not own.exists() and (elsewhere / "batch-1.pt").exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"lab: {link} could not be removed (")


@pytest.mark.parametrize("name", ["y" * 255, "ä" * 127])
def test_names_are_as_long_as_the_system_takes_them(tmp_path: Path, name: str) -> None:
    """What is taken before the work can be written after it."""
    with reserved(tmp_path / name):
        write_folder(tmp_path / name, FILES)
    write_file(tmp_path / name / name, "text")
    write_file(tmp_path / name / name, "again")
    assert {path.name for path in (tmp_path / name).iterdir()} == {*FILES, name}
    with pytest.raises((InputError, OSError), match="too long"), reserved(tmp_path / (name + "yy")):
        pytest.fail("was taken")


def test_a_new_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(InputError, match=r"job.toml: cannot be written \(File too large\); nothing was kept"):
            write_new(path, "x" * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not path.exists()
    write_new(path, "ä" * 100)
    with pytest.raises(InputError, match="File exists; name a new file"):
        write_new(path, "another")
    assert path.read_text(encoding="utf-8") == "ä" * 100


def test_of_two_jobs_with_one_folder_the_second_hears_at_once(tmp_path: Path) -> None:
    new, mine = tmp_path / "new", tmp_path / "mine"
    mine.mkdir()
    (mine / "batch-1.pt").touch()
    with kept([new, mine]):
        assert new.stat().st_mode & 0o777 == 0o700
        for folder in (new, mine):
            taken = f"^{folder}: another job uses it; wait until it has ended"
            with pytest.raises(InputError, match=taken), kept([folder]):
                pytest.fail("both were let in")
        assert new.is_dir()
    assert not new.exists() and (mine / "batch-1.pt").exists()
    with kept([new, mine]):  # free again
        (new / "batch-1.pt").touch()
    assert (new / "batch-1.pt").exists()


def test_a_folder_that_a_job_uses_is_not_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kept([tmp_path / "own"]):
        remove_leftovers("lab", [tmp_path / "own"])
        assert (tmp_path / "own").is_dir()
    assert capsys.readouterr().err.startswith(f"lab: {tmp_path / 'own'}: another job uses it")


def test_who_waited_for_a_folder_that_is_removed_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"

    for again in (False, True):  # and made anew by a third
        monkeypatch.setattr(fcntl, "flock", lambda *_, again=again: (own.rmdir(), again and own.mkdir()))
        with pytest.raises(InputError, match="another job uses it"), kept([own]):
            pytest.fail("a folder was kept that nobody else sees")


@pytest.mark.parametrize("name", ["file", "x" * 300])
def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(
            InputError, match=rf"/{name}: cannot be made \(.*\); a job keeps files there .*: shorten the table's name"
        ),
        kept([tmp_path / name]),
    ):
        pytest.fail("there is none")
    with kept([tmp_path / "none" / name]):  # nor a table beside it, which is told
        pass


def test_an_empty_folder_goes_while_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or whoever gets the lock next would keep a folder that goes, and a third one keep it, too."""
    closed, there = os.close, []
    monkeypatch.setattr(os, "close", lambda handle: (there.append((tmp_path / "own").exists()), closed(handle)))
    with kept([tmp_path / "own"]):
        pass
    assert there == [False]


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    text = "import os, sys; from pathlib import Path; from launch.outputs import kept\n"
    text += "with kept([Path(sys.argv[1])]): os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", text, str(tmp_path / "own")])
    assert killed.returncode == -signal.SIGKILL and (tmp_path / "own").is_dir()
    with kept([tmp_path / "own"]):
        pass
