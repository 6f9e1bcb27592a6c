"""What was drawn for each record's label, kept by the label party so that nothing is ever drawn twice.

A second epoch, a resumed run and a new run use the stored values: together they cost what the first one cost. Fresh
noise would cost epsilon every time and average out. One SQLite file: records under a keyed digest of their id, values
under AES-256-GCM bound to record, law and copy; the key lies in a file of its own. A draw is on disk before it is
returned, hence before anything of it is sent. Whoever restores an old copy of the file draws twice: keep one copy.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mechanisms.randomness import KEY_BYTES, RandomWords
from protocols.split.perturb import Perturbation
from smpc.errors import InputError
from smpc.ring import Integers

WAIT_SECONDS = 30.0
_NONCE_BYTES = 12
_VERSION = 1
_TABLES = """
CREATE TABLE laws (number INTEGER PRIMARY KEY, law TEXT NOT NULL UNIQUE, epsilon TEXT NOT NULL, delta TEXT NOT NULL);
CREATE TABLE draws (record BLOB NOT NULL, law INTEGER NOT NULL, copy INTEGER NOT NULL, sealed BLOB NOT NULL,
                    PRIMARY KEY (record, law, copy)) WITHOUT ROWID;
CREATE TRIGGER kept BEFORE DELETE ON draws BEGIN SELECT RAISE(ABORT, 'draws are never deleted'); END;
CREATE TRIGGER unchanged BEFORE UPDATE ON draws BEGIN SELECT RAISE(ABORT, 'draws are never changed'); END
"""
Charge = Callable[[Fraction, Fraction], None]


class MemoError(InputError):
    """The memo cannot be used. One line that names the file."""


class Memo:
    """One label party's draws. Every method opens the file anew, so that it may be used from any process."""

    def __init__(self, path: Path | str) -> None:
        """The memo at `path`, made with its key (`path` + ".key", readable by its owner) on first use."""
        self.path = Path(path)
        key = _key_of(self.path)
        self._digest_key = hmac.digest(key, b"record", "sha256")
        self._cipher = AESGCM(hmac.digest(key, b"value", "sha256"))
        with self._transaction():
            pass  # makes the file, or shows that it is another key's

    def draw(
        self,
        ids: Sequence[str],
        labels: Integers,
        law: Perturbation,
        random: RandomWords,
        *,
        copies: int = 1,
        charge: Charge | None = None,
    ) -> Integers:
        """Perturbed labels of the records, (copies, n, width): stored ones where there are, else drawn and stored.

        `charge(epsilon, delta)` is called before anything is kept, with what this adds to the cost of the record that
        has cost most; if it raises, nothing was drawn. Raises InputError for an id that comes twice.
        """
        records = [hmac.digest(self._digest_key, identifier.encode(), "sha256") for identifier in ids]
        _check_ids(ids, records, labels)
        fresh = law.draw(np.tile(labels, copies), random).reshape(copies, len(ids), law.width)
        contexts = [hashlib.sha256(repr((law, copy)).encode()).digest() for copy in range(copies)]
        with self._transaction() as db:
            number = self._number(db, law)
            new = []
            for copy, context in enumerate(contexts):
                rows = db.execute("SELECT record, sealed FROM draws WHERE law = ? AND copy = ?", (number, copy))
                stored = dict(rows.fetchall())
                nonces = memoryview(os.urandom(_NONCE_BYTES * len(records)))
                values = fresh[copy]
                for i, record in enumerate(records):
                    sealed = stored.get(record)
                    if sealed is None:
                        nonce = bytes(nonces[_NONCE_BYTES * i : _NONCE_BYTES * (i + 1)])
                        sealed = nonce + self._cipher.encrypt(nonce, values[i].tobytes(), record + context)
                        new.append((record, number, copy, sealed))
                    else:
                        values[i] = np.frombuffer(self._open(sealed, record + context), dtype=np.int64)
            if new:
                before = _most(db)
                db.executemany("INSERT INTO draws VALUES (?, ?, ?, ?)", sorted(new))  # in the order of its index
                after = _most(db)
                if charge is not None and after != before:
                    charge(after[0] - before[0], after[1] - before[1])
        return fresh

    def spent(self) -> tuple[Fraction, Fraction]:
        """The largest (epsilon, delta) of any record so far, each by itself: sums over its draws."""
        with self._transaction() as db:
            return _most(db)

    def __len__(self) -> int:
        """How many records have a draw."""
        with self._transaction() as db:
            return int(db.execute("SELECT COUNT(DISTINCT record) FROM draws").fetchone()[0])

    def _number(self, db: sqlite3.Connection, law: Perturbation) -> int:
        row = (repr(law), str(law.epsilon), str(law.delta))
        db.execute("INSERT OR IGNORE INTO laws (law, epsilon, delta) VALUES (?, ?, ?)", row)
        return int(db.execute("SELECT number FROM laws WHERE law = ?", row[:1]).fetchone()[0])

    def _open(self, sealed: bytes, context: bytes) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context)
        except InvalidTag:
            raise MemoError(f"{self.path}: a stored draw was altered: restore the newest copy of the file") from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """An immediate transaction, on disk at the end, rolled back on any error."""
        try:
            db = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise MemoError(f"{self.path}: {error}: give a file in an existing directory") from None
        try:
            db.execute("PRAGMA synchronous = EXTRA")
            db.execute("BEGIN IMMEDIATE")
            self._prepare(db)
            yield db
            db.execute("COMMIT")
        except sqlite3.Error as error:
            raise MemoError(f"{self.path}: {error}: check the file or wait for the other job") from None
        finally:
            db.close()  # an open transaction is rolled back

    def _prepare(self, db: sqlite3.Connection) -> None:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            for statement in _TABLES.strip().split(";\n"):
                db.execute(statement)
            db.execute("CREATE TABLE key_check (sealed BLOB NOT NULL)")
            nonce = os.urandom(_NONCE_BYTES)
            sealed = nonce + self._cipher.encrypt(nonce, b"", b"key check")
            db.execute("INSERT INTO key_check VALUES (?)", (sealed,))
            db.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise MemoError(f"{self.path}: version {version} is not {_VERSION}: use the program that made the file")
        (sealed,) = db.execute("SELECT sealed FROM key_check").fetchone()
        try:  # another key finds no record, and would draw all of them again
            self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], b"key check")
        except InvalidTag:
            raise MemoError(
                f"{self.path}: {_key_path(self.path).name} is another memo's key: put its own back"
            ) from None


def _most(db: sqlite3.Connection) -> tuple[Fraction, Fraction]:
    """Over records with the same draws, of which there are few kinds."""
    kinds = db.execute(
        "SELECT DISTINCT kind FROM (SELECT group_concat(law) AS kind FROM draws GROUP BY record)"
    ).fetchall()
    costs = {str(n): (Fraction(e), Fraction(d)) for n, e, d in db.execute("SELECT number, epsilon, delta FROM laws")}
    totals = [[sum((costs[n][i] for n in kind.split(",")), Fraction(0)) for i in (0, 1)] for (kind,) in kinds]
    return max((t[0] for t in totals), default=Fraction(0)), max((t[1] for t in totals), default=Fraction(0))


def _check_ids(ids: Sequence[str], records: Sequence[bytes], labels: Integers) -> None:
    if len(ids) != len(labels):
        raise InputError(f"{len(ids)} record ids and {len(labels)} labels: need one of each a record")
    if len(set(records)) < len(records):
        counts = Counter(ids)
        twice = [identifier for identifier, count in counts.items() if count > 1]
        raise InputError(
            f"{len(twice)} record ids come more than once, {twice[0]!r} for one: r rows of one person would "
            "cost r times epsilon; keep one row an id"
        )


def _key_path(path: Path) -> Path:
    return path.with_name(path.name + ".key")


def _key_of(path: Path) -> bytes:
    """The key of a memo, made with it."""
    place = _key_path(path)
    if not path.exists():
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise MemoError(
                f"{path}: is gone and its key {place.name} is not: put it back; a new one would draw every record again"
            ) from None
        except OSError as error:
            raise MemoError(f"{place}: {error.strerror}: give a file in an existing directory") from None
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(handle)
    try:
        key = place.read_bytes()
    except OSError as error:
        raise MemoError(f"{place}: {error.strerror}: it opens {path.name}, put it back") from None
    if len(key) != KEY_BYTES:
        raise MemoError(f"{place}: has {len(key)} bytes and needs {KEY_BYTES}: put the memo's own key back")
    return key
