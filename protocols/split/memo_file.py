"""The memo's two files: an SQLite file of sealed values, and the key that opens them. Both are there, or neither.

They are made together, in this order: the key under another name, the tables, the key's own name. So wherever making
stops, a key has a whole memo beside it, and no draw exists without a key. Everything else is a loss, told and refused:
a memo made anew would draw every record again.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mechanisms import validate
from mechanisms.randomness import KEY_BYTES
from mechanisms.transaction import transaction
from smpc.errors import InputError

NONCE_BYTES = 12
_VERSION = 2
_CHECK = b"key check"
_TABLES = """
CREATE TABLE laws (number INTEGER PRIMARY KEY, law TEXT NOT NULL UNIQUE, epsilon TEXT NOT NULL, delta TEXT NOT NULL);
CREATE TABLE draws (record BLOB NOT NULL, law INTEGER NOT NULL, copy INTEGER NOT NULL, sealed BLOB NOT NULL,
                    PRIMARY KEY (record, law, copy)) WITHOUT ROWID;
CREATE TABLE charges (account TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL);
CREATE TABLE key_check (sealed BLOB NOT NULL);
CREATE TRIGGER kept BEFORE DELETE ON draws BEGIN SELECT RAISE(ABORT, 'draws are never deleted'); END;
CREATE TRIGGER unchanged BEFORE UPDATE ON draws BEGIN SELECT RAISE(ABORT, 'draws are never changed'); END
"""


class MemoError(InputError):
    """The memo cannot be used. One line that names the file."""


class MemoFile:
    """A memo that is there, opened with its key."""

    def __init__(self, path: Path, *, make: bool = False) -> None:
        """Raises MemoError for a memo or a key that is missing, empty or another's; `make`: both where neither is."""
        self.path = path
        if make and is_absent(path):
            _make(path)
        self._take(_key_of(path))
        with self.transaction() as db:
            self._check(db)

    def _take(self, key: bytes) -> None:
        self._digest_key = hmac.digest(key, b"record", "sha256")
        self._cipher = AESGCM(hmac.digest(key, b"value", "sha256"))

    def record(self, identifier: str) -> bytes:
        """What stands for a record's id in the file."""
        return hmac.digest(self._digest_key, identifier.encode(), "sha256")

    def seal(self, nonce: bytes, value: bytes, context: bytes) -> bytes:
        """`value` under a fresh nonce, bound to its place."""
        return nonce + self._cipher.encrypt(nonce, value, context)

    def unseal(self, sealed: bytes, context: bytes) -> bytes:
        """Raises MemoError for a value that was altered, or moved from another place."""
        try:
            return self._open(sealed, context)
        except (InvalidTag, ValueError, TypeError):
            raise MemoError(f"{self.path}: a stored draw was altered: restore the newest copy of the file") from None

    def _open(self, sealed: bytes, context: bytes) -> bytes:
        return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], context)

    def cost(self, epsilon: object, delta: object) -> tuple[Fraction, Fraction]:
        """Both from the texts in the file."""
        try:
            return validate.written(epsilon), validate.written(delta)
        except ValueError as error:
            raise self.altered(f"an amount {error}") from None

    def altered(self, what: str) -> MemoError:
        """The error for a file that has `what`."""
        return MemoError(f"{self.path}: was altered, it has {what}: restore the newest copy of the file")

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """On disk at the end, rolled back on any error."""
        return transaction(self.path, MemoError)

    def _check(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0 and not db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise MemoError(f"{self.path}: is empty and {key_place(self.path).name} is not: put the memo back")
        if version != _VERSION:
            raise MemoError(f"{self.path}: is no memo of version {_VERSION}: put the memo back, or use its own program")
        (sealed,) = db.execute("SELECT sealed FROM key_check").fetchone() or (b"",)
        try:  # another key finds no record, and would draw all of them again
            self._open(sealed, _CHECK)
        except (InvalidTag, ValueError, TypeError):
            raise MemoError(
                f"{self.path}: {key_place(self.path).name} is another memo's key: put its own back"
            ) from None


def is_absent(path: Path) -> bool:
    """No memo, no key, none begun: nothing has ever been drawn here."""
    return not any(place.exists() for place in (path, key_place(path), _unfinished(path)))


def key_place(path: Path) -> Path:
    """Where the key of the memo at `path` lies."""
    return path.with_name(path.name + ".key")


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + ".key.unfinished")


def _make(path: Path) -> None:
    """Both files. Returns without a word where another process was faster."""
    begun = _unfinished(path)
    try:
        handle = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return  # `_key_of` tells
    except OSError as error:
        raise MemoError(f"{begun}: {error.strerror}: give a file in an existing directory") from None
    if path.exists() or key_place(path).exists():  # made since we looked
        begun.unlink()
        return
    key = os.urandom(KEY_BYTES)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(handle)
    except OSError as error:
        begun.unlink()
        raise MemoError(f"{begun}: {error.strerror}: make room") from None
    nonce = os.urandom(NONCE_BYTES)
    check = nonce + AESGCM(hmac.digest(key, b"value", "sha256")).encrypt(nonce, b"", _CHECK)
    with transaction(path, MemoError) as db:
        for statement in _TABLES.strip().split(";\n"):
            db.execute(statement)
        db.execute("INSERT INTO key_check VALUES (?)", (check,))
        db.execute(f"PRAGMA user_version = {_VERSION}")
    begun.rename(key_place(path))
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # a draw without its key's name would be taken for none
    finally:
        os.close(folder)


def _key_of(path: Path) -> bytes:
    place, begun = key_place(path), _unfinished(path)
    if begun.exists() and not place.exists():
        raise MemoError(
            f"{begun}: another job makes this memo now, or was stopped while it did and nothing has been drawn: wait, "
            f"or delete it and {path.name}"
        )
    if not path.exists():
        raise MemoError(
            f"{path}: is gone and its key {place.name} is not: put it back; a new one would draw every record again"
        )
    if place.exists() and not place.is_file():
        raise MemoError(f"{place}: is no regular file: it opens {path.name}, put it back")
    try:
        key = place.read_bytes()
    except OSError as error:
        raise MemoError(f"{place}: {error.strerror}: it opens {path.name}, put it back") from None
    if len(key) != KEY_BYTES:
        raise MemoError(f"{place}: has {len(key)} bytes and needs {KEY_BYTES}: put the memo's own key back")
    return key
