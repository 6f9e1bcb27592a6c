"""One SQLite file's transactions, for what must survive any crash: an account book, draws that are made once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_SECONDS = 30.0


@contextmanager
def transaction(path: Path, failure: type[Exception]) -> Iterator[sqlite3.Connection]:
    """An immediate one: nobody else writes meanwhile. On disk at the end, rolled back on any error.

    SQLite's own errors become a `failure`, one line that names the file.
    """
    try:
        db = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
    except sqlite3.Error as error:
        raise failure(f"{path}: {error}: give a file in an existing directory") from None
    try:
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    except sqlite3.Error as error:
        raise failure(f"{path}: {error}: check the file or wait for the other job") from None
    finally:
        db.close()  # an open transaction is rolled back
