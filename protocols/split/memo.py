"""What was drawn for each record's label, kept by the label party so that nothing is ever drawn twice.

A second epoch, a resumed run and a new run use the stored values: together they cost what the first one cost. Fresh
noise would cost epsilon every time and average out. Records stand under a keyed digest of their id; values, each with
the label that it was drawn for, are encrypted and bound to record, law and copy (`memo_file`). A draw is on disk, and
after that charged, before it is returned, hence before anything of it is sent. Whoever restores an old copy of the file
draws twice: keep one copy.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from mechanisms.randomness import RandomWords
from protocols.split.memo_file import NONCE_BYTES, MemoError, MemoFile, is_absent
from protocols.split.perturb import Perturbation
from smpc.errors import InputError
from smpc.ring import Integers

__all__ = ["Account", "Memo", "MemoError"]
Cost = tuple[Fraction, Fraction]  # epsilon, delta
_NOTHING = (Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Account:
    """Where draws are charged. `name` stays the same from job to job; `spent` is what its book has in all by now.

    `check` raises what `charge` would raise.
    """

    name: str
    check: Callable[[Fraction, Fraction], None]
    charge: Callable[[Fraction, Fraction], None]
    spent: Callable[[], Cost]


class Memo:
    """One label party's draws. Every method opens the file anew, so that it may be used from any process."""

    def __init__(self, path: Path | str) -> None:
        """The memo at `path`, made with its key (`path` + ".key", readable by its owner) by the first draw."""
        self.path = Path(path)

    def draw(
        self,
        ids: Sequence[str],
        labels: Integers,
        law: Perturbation,
        random: RandomWords,
        *,
        copies: int = 1,
        account: Account | None = None,
    ) -> Integers:
        """Perturbed labels of the records, (copies, n, width): stored ones where there are, else drawn and stored.

        The account is charged with what it lacks of the cost of the record that has cost most, whoever paid for it so
        far; if it refuses, nothing was drawn. Where another job spends the rest just then, draws are kept, to be
        charged by who uses them first, and none is returned. Raises InputError for an id that comes twice.
        """
        _check_ids(ids, labels)
        fresh = law.draw(np.tile(labels, copies), random).reshape(copies, len(ids), law.width)
        file = MemoFile(self.path, make=True)
        records = [file.record(identifier) for identifier in ids]
        with file.transaction() as db:
            number = _number(file, db, law)
            for copy in range(copies):
                context, stored = _context(law, copy), _stored(db, number, copy)
                plain = np.concatenate([labels[:, np.newaxis], fresh[copy]], axis=1).astype("<i8")
                nonces = memoryview(os.urandom(NONCE_BYTES * len(records)))
                new = []
                for i, record in enumerate(records):
                    sealed = stored.get(record)
                    if sealed is None:
                        nonce = bytes(nonces[NONCE_BYTES * i : NONCE_BYTES * (i + 1)])
                        new.append((record, number, copy, file.seal(nonce, plain[i].tobytes(), record + context)))
                    else:
                        fresh[copy, i] = np.frombuffer(file.unseal(sealed, record + context), dtype="<i8")[1:]
                db.executemany("INSERT INTO draws VALUES (?, ?, ?, ?)", sorted(new))  # in the order of its index
            if account is not None:
                account.check(*_lacking(file, db, account))
        if account is not None:  # once the draws are on disk: charged before, a full disk would cost at every try
            with file.transaction() as db:
                lacking = _lacking(file, db, account)
                if any(lacking):
                    db.execute("INSERT INTO charges VALUES (?, ?, ?)", (account.name, *map(str, lacking)))
                    account.charge(*lacking)
        return fresh

    def due(self, ids: Sequence[str], law: Perturbation, *, copies: int = 1, account: Account) -> Cost:
        """What `draw` would charge now. Draws nothing and makes no file."""
        if is_absent(self.path):
            return copies * law.epsilon, copies * law.delta
        file = MemoFile(self.path)
        with file.transaction() as db:
            db.execute("SAVEPOINT before")
            number = _number(file, db, law)
            rows = ((file.record(identifier), number, copy) for copy in range(copies) for identifier in ids)
            db.executemany("INSERT OR IGNORE INTO draws VALUES (?, ?, ?, x'')", rows)
            lacking = _lacking(file, db, account)
            db.execute("ROLLBACK TO before")
        return lacking

    def changed(self, ids: Sequence[str], labels: Integers, law: Perturbation) -> int:
        """How many of these records have a draw that was made for another label than the one they have now."""
        if is_absent(self.path):
            return 0
        file = MemoFile(self.path)
        changed = set()
        with file.transaction() as db:
            number = _number(file, db, law)
            for (copy,) in db.execute("SELECT DISTINCT copy FROM draws WHERE law = ?", (number,)).fetchall():
                context, stored = _context(law, copy), _stored(db, number, copy)
                for identifier, label in zip(ids, labels.tolist(), strict=True):
                    record = file.record(identifier)
                    if record in stored:
                        drawn_for = np.frombuffer(file.unseal(stored[record], record + context), dtype="<i8")[0]
                        if drawn_for != label:
                            changed.add(record)
        return len(changed)

    def strangers(self, ids: Sequence[str]) -> tuple[int, int]:
        """How many of these records have no draw, and how many records that have one are none of these."""
        if is_absent(self.path):
            return len(ids), 0
        file = MemoFile(self.path)
        with file.transaction() as db:
            kept = {record for (record,) in db.execute("SELECT DISTINCT record FROM draws")}
        here = {file.record(identifier) for identifier in ids}
        return len(here - kept), len(kept - here)

    def spent(self) -> Cost:
        """The largest (epsilon, delta) of any record so far, each by itself: sums over its draws."""
        if is_absent(self.path):
            return _NOTHING
        file = MemoFile(self.path)
        with file.transaction() as db:
            return _most(file, db)

    def __len__(self) -> int:
        """How many records have a draw."""
        if is_absent(self.path):
            return 0
        with MemoFile(self.path).transaction() as db:
            return int(db.execute("SELECT COUNT(DISTINCT record) FROM draws").fetchone()[0])


def _context(law: Perturbation, copy: int) -> bytes:
    return hashlib.sha256(f"{law.text}; copy {copy}".encode()).digest()


def _number(file: MemoFile, db: sqlite3.Connection, law: Perturbation) -> int:
    row = (law.text, str(law.epsilon), str(law.delta))
    db.execute("INSERT OR IGNORE INTO laws (law, epsilon, delta) VALUES (?, ?, ?)", row)
    found = db.execute("SELECT number FROM laws WHERE law = ?", row[:1]).fetchone()
    if found is None:
        raise file.altered("a law that cannot be found again")
    return int(found[0])


def _stored(db: sqlite3.Connection, number: int, copy: int) -> dict[bytes, bytes]:
    return dict(db.execute("SELECT record, sealed FROM draws WHERE law = ? AND copy = ?", (number, copy)).fetchall())


def _most(file: MemoFile, db: sqlite3.Connection) -> Cost:
    """Over records with the same draws, of which there are few kinds."""
    kinds = db.execute(
        "SELECT DISTINCT kind FROM (SELECT group_concat(law) AS kind FROM draws GROUP BY record)"
    ).fetchall()
    costs = {str(n): file.cost(e, d) for n, e, d in db.execute("SELECT number, epsilon, delta FROM laws")}
    drawn = [str(kind).split(",") for (kind,) in kinds]
    unknown = {number for numbers in drawn for number in numbers} - costs.keys()
    if unknown:
        raise file.altered(f"draws of a law {min(unknown)!r:.60} that it has not")
    totals = [_sum(costs[number] for number in numbers) for numbers in drawn]
    return max((t[0] for t in totals), default=Fraction(0)), max((t[1] for t in totals), default=Fraction(0))


def _lacking(file: MemoFile, db: sqlite3.Connection, account: Account) -> Cost:
    """What the account has not been charged of all that was drawn here. Its book is believed where it has less."""
    rows = db.execute("SELECT epsilon, delta FROM charges WHERE account = ?", (account.name,)).fetchall()
    most, charged, spent = _most(file, db), _sum(file.cost(e, d) for e, d in rows), account.spent()
    epsilon, delta = (max(most[i] - min(charged[i], spent[i]), Fraction(0)) for i in (0, 1))
    return epsilon, delta


def _sum(costs: Iterable[Cost]) -> Cost:
    epsilon, delta = _NOTHING
    for cost in costs:
        epsilon, delta = epsilon + cost[0], delta + cost[1]
    return epsilon, delta


def _check_ids(ids: Sequence[str], labels: Integers) -> None:
    if len(ids) != len(labels):
        raise InputError(f"{len(ids)} record ids and {len(labels)} labels: need one of each a record")
    if len(set(ids)) < len(ids):
        twice = [identifier for identifier, count in Counter(ids).items() if count > 1]
        raise InputError(
            f"{len(twice)} record ids come more than once, {twice[0]!r} for one: r rows of one person would "
            "cost r times epsilon; keep one row an id"
        )
