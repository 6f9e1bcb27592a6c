"""One SQLite file's transactions, for what must survive any crash: an account book, draws that are made once."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WAIT_SECONDS = 30.0


@contextmanager
def transaction(path: Path, failure: type[Exception]) -> Iterator[sqlite3.Connection]:
    """An immediate one: nobody else writes meanwhile. On disk at the end, rolled back on any error.

    A new file is its owner's alone, as the journal after it. SQLite's own errors, of damaged files too, become a
    `failure`, one line that names the file; so does what is there and is no file.
    """
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for without an end
        raise failure(f"{path}: is no regular file: name another place")
    try:
        # Nothing but a new file is opened here: to close a file gives up this process's locks on it, SQLite's too.
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise failure(f"{path}: {error.strerror}: give a file in an existing directory") from None
    try:
        db = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
    except sqlite3.Error as error:
        raise failure(f"{path}: {error}: give a file in an existing directory") from None
    try:
        db.execute("PRAGMA synchronous = EXTRA")
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from a damaged file's own words in an error
        raise failure(f"{path}: {error}: check the file or wait for the other job") from None
    finally:
        db.close()  # an open transaction is rolled back
