"""Result files: all of them or none, under their names only when complete."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from launch.terminal import tell
from protocols.release import Release
from smpc.errors import InputError

BALLOTS = "ballots.json"  # of an ensemble job: what became of every voter


def check_free(out: Path) -> None:
    """Refuse an output folder that holds something, before any work is done."""
    if out.is_symlink() and out.exists():
        raise InputError(f"--out {out}: is a link; name the folder itself")
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: exists and is not an empty folder; name another, or remove it")
    parent = out.absolute().parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"--out {out}: {parent} is not a folder that can be written to; make it first")


@contextmanager
def reserved(out: Path) -> Iterator[None]:
    """Keep `out` for this process until it is written: whoever comes second hears so at once, not after its work.

    A killed process leaves an empty folder at most, which counts as free. Raises InputError.
    """
    check_free(out)
    with _locked(out, f"--out {out}", "name another", "another run is going to write there; name another folder"):
        check_free(out)  # the other may just have written
        yield


@contextmanager
def kept(folders: Iterable[Path]) -> Iterator[None]:
    """Keep folders that a participant needs until its results are written for this process, however it ends.

    They are made now; one that stays empty goes. Raises InputError where a job uses one already.
    """
    advice = "a job keeps files there until it has ended: shorten the table's name, or put it where there is room"
    taken = "another job uses it; wait until it has ended (two parties of one job need tables of their own)"
    with ExitStack() as stack:
        for folder in folders:
            if folder.parent.is_dir():  # else the table beside it is missing, too, which is told better
                stack.enter_context(_locked(folder, str(folder), advice, taken, mode=0o700))
        yield


@contextmanager
def _locked(folder: Path, name: str, advice: str, taken: str, *, mode: int = 0o777) -> Iterator[None]:
    """Make a folder, unless it is there, and lock it: the system ends the lock with the process."""
    try:
        made = not folder.exists()
        folder.mkdir(mode, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise InputError(f"{name}: cannot be made ({error.strerror}); {advice}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(handle), folder.stat()):
                raise FileNotFoundError
        except (BlockingIOError, FileNotFoundError):  # the other may just have removed it
            raise InputError(f"{name}: {taken}") from None
        yield
    finally:
        if made:  # while it is locked: whoever waits for it must not get a folder that goes
            with suppress(OSError):  # written to by now
                folder.rmdir()
        os.close(handle)


def write_folder(out: Path, files: Mapping[str, str | bytes]) -> None:
    """Write `files` (name to text or bytes) as the new folder `out` in one rename."""
    check_free(out)
    temporary = _temporary(out.absolute())
    try:
        temporary.mkdir()
        for name, content in files.items():
            with open(temporary / name, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
        temporary.rename(out)  # replaces an empty folder
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); nothing was kept") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # after the rename there is none


def _temporary(beside: Path) -> Path:
    """A new name in the same folder; a short one: `beside` may have as long a name as there can be."""
    return beside.parent / f".smpc-{secrets.token_hex(6)}"


def remove_leftovers(who: str, folders: Iterable[Path]) -> None:
    """Remove what a participant needed until its results were written; what cannot go is told on its terminal."""
    for folder in folders:
        try:
            if folder.exists():
                with kept([folder]):
                    shutil.rmtree(folder)
        except InputError as error:
            tell(f"{who}: {error}")
        except OSError as error:
            tell(f"{who}: {folder} could not be removed ({error.strerror or error})")


def write_file(path: Path, text: str, *, private: bool = False) -> None:
    """Write all of `text` or nothing, in one rename; `private`: for this user only. Raises InputError."""
    place = path.resolve()
    temporary = _temporary(place)
    try:
        if place.exists() and not place.is_file():  # a pipe or a device is written to
            place.write_text(text, encoding="utf-8")
            return
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(place)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_new(path: Path, text: str) -> None:
    """Write all of `text` or nothing, never over another file. Raises InputError."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; name a new file") from None
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except BaseException as error:
        path.unlink()
        if not isinstance(error, OSError):
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror}); nothing was kept") from None


def model_json(release: Release, about: Mapping[str, Any]) -> str:
    coefficients = dict(zip(release.names, (float(v) for v in release.values), strict=True))
    return json.dumps({**about, "coefficients": coefficients}, indent=1) + "\n"


def cost_json(reports: Mapping[str, object]) -> str:
    """Cost reports, as dictionaries, by participant."""
    return json.dumps({"participants": reports}, indent=1) + "\n"
