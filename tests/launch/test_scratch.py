"""No room where temporary files are: the user hears of TMPDIR, not of options that the command does not have."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from launch import pool, run
from launch.scratch import naming_tmpdir
from smpc.cast import Cast
from smpc.errors import InputError, PeerError
from tests.launch.jobs import valid_job, write_job

FULL = os.strerror(errno.ENOSPC)
ADVICE = r"make room, or name another folder in the variable TMPDIR$"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, FULL),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), "/t/own/a.err"),
        InputError(f"folder /t/own: cannot be written to ({FULL}); choose another --dir"),
        PeerError(f"a: --out /t/own/a.out: cannot be written ({FULL}); nothing was kept"),
    ],
)
def test_a_full_temporary_folder(error: Exception) -> None:
    with (
        pytest.raises(InputError, match=rf"^/t: cannot be written to \([A-Z].*\); {ADVICE}"),
        naming_tmpdir(Path("/t/own")),
    ):
        raise error


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, FULL, "/elsewhere"),
        OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
        PeerError(f"a: /ledgers/a.db: {FULL}"),
        PeerError("a: /t/own/a.crt: cannot be read"),
        ValueError(FULL),
    ],
)
def test_other_errors_are_told_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, naming_tmpdir(Path("/t/own")):
        raise error
    assert caught.value is error


def test_run_and_pool_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str, folder: Path) -> None:
        raise InputError(f"folder {folder}: cannot be written to ({FULL}); choose another --dir")

    monkeypatch.setattr(run, "make_keys", full)
    monkeypatch.setattr(pool, "make_keys", full)
    write_job(tmp_path, valid_job())
    with pytest.raises(InputError, match=ADVICE):
        run.run_locally(tmp_path / "job.toml", tmp_path / "out")
    with pytest.raises(InputError, match=ADVICE):
        pool.Pool(Cast(("a", "b")))
    assert not (tmp_path / "out").exists()
