"""What a party's data sets have cost so far, in one SQLite file that the party owns.

`reserve` charges before anything is sent, in one immediate transaction that is on disk when it returns (synchronous =
EXTRA, which also syncs the directory that the journal leaves). So two jobs cannot overspend a cap together, and a
crash between the charge and the opening costs the charge: it is never refunded, a retry is a new release. Amounts are
exact fractions, stored as text. What protects a record protects its label, and what is a function of labels moves with
the record: charges under both count towards both caps.
"""

from __future__ import annotations

import math
import shlex
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from mechanisms import validate
from mechanisms.guarantee import Row
from mechanisms.transaction import transaction

_VERSION = 1
# A person's record has the label in it, a voter's data have the record: who replaces the one may replace the other.
_COUNTED = {"label": ("label", "record", "party"), "record": ("label", "record", "party"), "party": ("party",)}
_TABLES = """
CREATE TABLE caps (data_set TEXT NOT NULL, unit TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
                   PRIMARY KEY (data_set, unit));
CREATE TABLE charges (number INTEGER PRIMARY KEY AUTOINCREMENT, data_set TEXT NOT NULL, unit TEXT NOT NULL,
                      epsilon TEXT NOT NULL, delta TEXT NOT NULL, job TEXT NOT NULL,
                      time TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP);
CREATE TRIGGER no_refund BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'charges are never refunded'); END;
CREATE TRIGGER no_change BEFORE UPDATE ON charges BEGIN SELECT RAISE(ABORT, 'charges are never changed'); END;
"""


class BudgetError(Exception):
    """A job would exceed a cap, or the data set has none. One line that names the data set, cap, spent and asked."""


class LedgerError(Exception):
    """The ledger's file cannot be used. One line that names the file."""


@dataclass(frozen=True)
class Account:
    """A data set's cap for one unit that is protected, and what all charges that count towards it come to."""

    data_set: str
    unit: str
    cap_epsilon: Fraction
    cap_delta: Fraction
    spent_epsilon: Fraction
    spent_delta: Fraction
    charges: int

    def __str__(self) -> str:
        charges = "1 charge" if self.charges == 1 else f"{self.charges} charges"
        return (
            f"{self.data_set} ({self.unit}): epsilon {_show(self.spent_epsilon)} of {_show(self.cap_epsilon)} spent, "
            f"delta {_show(self.spent_delta)} of {_show(self.cap_delta)}, {charges}"
        )


class Ledger:
    """One party's ledger. Every method opens the file anew, so that it may be used from any process or thread."""

    def __init__(self, path: Path | str) -> None:
        """Uses the file at `path`, made on first use (its directory has to exist)."""
        self.path = Path(path)

    def cap(self, data_set: str, unit: str, epsilon: object, delta: object = 0) -> None:
        """Sets the most that may ever be spent on a data set. A cap may be below what has been spent already."""
        most, risk = validate.epsilon(epsilon, allow_weak=True), validate.exact("delta", delta)
        if not 0 <= risk < 1:
            raise ValueError(f"delta={delta} is outside [0, 1): give a number in that range")
        if unit not in _COUNTED:
            raise ValueError(f"unit={unit!r} is none of {', '.join(_COUNTED)}: give one of them")
        with self._transaction() as db:
            db.execute(
                "INSERT INTO caps VALUES (?, ?, ?, ?) ON CONFLICT (data_set, unit) "
                "DO UPDATE SET epsilon = excluded.epsilon, delta = excluded.delta",
                (_name("data_set", data_set), unit, str(most), str(risk)),
            )

    def reserve(self, data_set: str, row: Row, *, job: str, once: bool = False) -> Account:
        """Charges a release with the guarantee `row` (the worst one within the collusion bound), on disk on return.

        `once`: `job` names one release, and what has been charged for it already is not charged again. Returns the
        account with the charge in it. Raises BudgetError, and charges nothing, above the cap, without a cap, and for
        an infinite epsilon.
        """
        charge = (data_set, row.unit, str(_finite(data_set, row)), str(row.delta), _name("job", job))
        with self._transaction() as db:
            if not (once and _has(db, charge)):
                self._refuse(db, data_set, row)
                db.execute("INSERT INTO charges (data_set, unit, epsilon, delta, job) VALUES (?, ?, ?, ?, ?)", charge)
            after = self._account(db, data_set, row.unit)
        if after is None:
            raise LedgerError(f"{self.path}: the cap of {data_set} vanished in a transaction")
        return after

    def check(self, data_set: str, row: Row) -> None:
        """Raises the BudgetError with which `reserve` would refuse the release now; charges nothing."""
        _finite(data_set, row)
        with self._transaction() as db:
            self._refuse(db, data_set, row)

    def charged(self, data_set: str, unit: str) -> tuple[Fraction, Fraction]:
        """Epsilon and delta of what was charged under this unit alone."""
        with self._transaction() as db:
            epsilon, delta, _ = self._sum_of(db, data_set, (unit,))
        return epsilon, delta

    def _refuse(self, db: sqlite3.Connection, data_set: str, row: Row) -> None:
        touched = [unit for unit, counted in _COUNTED.items() if row.unit in counted]
        accounts = {unit: self._account(db, data_set, unit) for unit in touched}
        if accounts[row.unit] is None:
            unit = "" if row.unit == "record" else f" --unit {row.unit}"
            raise BudgetError(
                f"{data_set}: no cap for one {row.unit} in {self.path.name}; set one with "
                f"`smpc ledger cap {shlex.quote(str(self.path))} {shlex.quote(data_set)} EPSILON{unit}`"
            )
        epsilon = _finite(data_set, row)
        for before in filter(None, accounts.values()):
            over_epsilon = before.spent_epsilon + epsilon > before.cap_epsilon
            if over_epsilon or before.spent_delta + row.delta > before.cap_delta:
                raise BudgetError(_refusal(before, "epsilon" if over_epsilon else "delta", epsilon, row.delta))

    def accounts(self) -> list[Account]:
        """All accounts, by data set and unit."""
        with self._transaction() as db:
            keys = db.execute("SELECT data_set, unit FROM caps ORDER BY data_set, unit").fetchall()
            for data_set, unit in keys:
                if not _is_name(data_set) or unit not in _COUNTED:
                    raise self._damaged(f"a cap for one {unit!r:.60} of {data_set!r:.60}")
            return [account for key in keys if (account := self._account(db, *key))]

    def _account(self, db: sqlite3.Connection, data_set: str, unit: str) -> Account | None:
        cap = db.execute("SELECT epsilon, delta FROM caps WHERE data_set = ? AND unit = ?", (data_set, unit)).fetchone()
        if cap is None:
            return None
        epsilon, delta = map(self._amount, cap)
        return Account(data_set, unit, epsilon, delta, *self._sum_of(db, data_set, _COUNTED[unit]))

    def _sum_of(self, db: sqlite3.Connection, data_set: str, units: Sequence[str]) -> tuple[Fraction, Fraction, int]:
        """Epsilon, delta and number of the charges under any of these units."""
        epsilon, delta, count = Fraction(0), Fraction(0), 0
        for unit, e, d in db.execute("SELECT unit, epsilon, delta FROM charges WHERE data_set = ?", (data_set,)):
            if unit not in _COUNTED:
                raise self._damaged(f"a charge for one {unit!r:.60}")
            if unit in units:
                epsilon, delta, count = epsilon + self._amount(e), delta + self._amount(d), count + 1
        return epsilon, delta, count

    def _amount(self, text: object) -> Fraction:
        try:
            return validate.written(text)
        except ValueError as error:
            raise self._damaged(f"an amount {error}") from None

    def _damaged(self, what: str) -> LedgerError:
        return LedgerError(f"{self.path}: is damaged, it has {what}: put its newest good copy back")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with transaction(self.path, LedgerError) as db:
            _prepare(db, self.path)
            yield db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, _VERSION):
        raise LedgerError(f"{path}: version {version} is not {_VERSION}: use the program that made the file")
    if version == 0:
        for statement in _TABLES.strip().split(";\n"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {_VERSION}")


def _has(db: sqlite3.Connection, charge: tuple[str, ...]) -> bool:
    query = "SELECT 1 FROM charges WHERE data_set = ? AND unit = ? AND epsilon = ? AND delta = ? AND job = ?"
    return db.execute(query, charge).fetchone() is not None


def _finite(data_set: str, row: Row) -> Fraction:
    if row.epsilon == math.inf:
        raise BudgetError(f"{data_set}: epsilon against {row.coalition} is infinite: no cap allows that")
    return Fraction(row.epsilon)


def _refusal(account: Account, limit: str, epsilon: Fraction, delta: Fraction) -> str:
    cap, spent, asked = {
        "epsilon": (account.cap_epsilon, account.spent_epsilon, epsilon),
        "delta": (account.cap_delta, account.spent_delta, delta),
    }[limit]
    if spent < cap:
        advice = f"ask for at most {_show(cap - spent)} or have the owner raise the cap"
    else:
        advice = "nothing is left: use what was released; a higher cap is the owner's decision"
    return (
        f"{account.data_set}: {limit} cap {_show(cap)} for one {account.unit}, {_show(spent)} spent, "
        f"{_show(asked)} asked: {advice}"
    )


def _name(name: str, value: str) -> str:
    if not _is_name(value):
        raise ValueError(f"{name}={value!r} is no name: give printable text")
    return value


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _show(value: Fraction) -> str:
    """Short: the decimal if it is exact, else the fraction or a rounded decimal of a long one."""
    try:
        decimal = f"{float(value):.12g}"
    except OverflowError:
        return validate.short(value)
    if Fraction(decimal) == value or max(value.numerator, value.denominator) > 10**8:
        return decimal
    return str(value)
