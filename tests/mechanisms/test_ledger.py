"""Caps hold between processes, charges survive kill -9, nothing is ever refunded."""

import math
import os
import random
import shlex
import sqlite3
import stat
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from mechanisms import transaction
from mechanisms.coalition import Coalition
from mechanisms.guarantee import INFINITE, Row
from mechanisms.ledger import BudgetError, Ledger, LedgerError
from mechanisms.neighbours import FlipLabel, ReplaceParty, ReplaceRecord

ROW = Row(Coalition(frozenset({"server"})), ReplaceRecord(), Fraction(1, 10), Fraction(0), "noise", "pure sum")
WORKER = Path(__file__).with_name("ledger_worker.py")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "hospital.sqlite")
    ledger.cap("patients", "record", 1)
    return ledger


def start(ledger: Ledger, epsilon: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), str(ledger.path), epsilon]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen[str]) -> list[str]:
    """The lines a process wrote until it ended."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    process.wait(timeout=60)
    process.stdout.close()
    return lines


def check_file(ledger: Ledger) -> None:
    db = sqlite3.connect(ledger.path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()


def test_ten_tenths_are_exactly_one(ledger: Ledger) -> None:
    for count in range(1, 11):
        account = ledger.reserve("patients", ROW, job="monday")
        assert (account.spent_epsilon, account.charges) == (Fraction(count, 10), count)
    with pytest.raises(BudgetError) as refusal:
        ledger.reserve("patients", ROW, job="monday")
    assert str(refusal.value) == (
        "patients: epsilon cap 1 for one record, 1 spent, 0.1 asked: nothing is left: use what was released; a higher "
        "cap is the owner's decision"
    )
    assert ledger.accounts() == [account]


def test_a_release_that_is_asked_for_once_is_charged_once(ledger: Ledger) -> None:
    costly = replace(ROW, epsilon=Fraction(3, 4))
    for _ in range(3):  # also when the cap has no room for a second charge
        assert ledger.reserve("patients", costly, job="poll 1", once=True).spent_epsilon == Fraction(3, 4)
    with pytest.raises(BudgetError):
        ledger.reserve("patients", costly, job="poll 2", once=True)
    with pytest.raises(BudgetError):  # a retry of other jobs is a new release
        ledger.reserve("patients", costly, job="poll 1")
    assert ledger.reserve("patients", ROW, job="poll 1", once=True).charges == 2  # at another price it is another


def test_a_refusal_charges_nothing_and_smaller_jobs_still_fit(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match=r"1.5 asked: ask for at most 1 or"):
        ledger.reserve("patients", replace(ROW, epsilon=Fraction(3, 2)), job="big")
    assert ledger.reserve("patients", replace(ROW, epsilon=Fraction(1)), job="small").charges == 1


def test_delta_has_a_cap_too(ledger: Ledger) -> None:
    row = replace(ROW, delta=Fraction(1, 10**6))
    with pytest.raises(BudgetError, match="patients: delta cap 0 for one record, 0 spent, 1e-06 asked"):
        ledger.reserve("patients", row, job="gaussian")
    ledger.cap("patients", "record", 1, "1.5e-6")
    assert ledger.reserve("patients", row, job="gaussian").spent_delta == Fraction(1, 10**6)
    with pytest.raises(BudgetError, match=r"delta cap 1.5e-06"):
        ledger.reserve("patients", row, job="gaussian")


def test_a_label_is_in_its_record_and_data_sets_are_separate(ledger: Ledger) -> None:
    ledger.cap("patients", "label", "0.5")
    ledger.cap("visits", "record", 2)
    ledger.reserve("patients", ROW, job="a")
    ledger.reserve("patients", replace(ROW, neighbours=FlipLabel()), job="b")
    ledger.reserve("visits", replace(ROW, epsilon=Fraction(1, 3)), job="c")
    spent = {(a.data_set, a.unit): a.spent_epsilon for a in ledger.accounts()}
    assert spent == {
        ("patients", "label"): Fraction(2, 10),
        ("patients", "record"): Fraction(2, 10),
        ("visits", "record"): Fraction(1, 3),
    }
    assert str(ledger.accounts()[0]) == "patients (label): epsilon 0.2 of 0.5 spent, delta 0 of 0, 2 charges"
    assert ledger.charged("patients", "label") == ledger.charged("patients", "record") == (Fraction(1, 10), 0)


@pytest.mark.parametrize(("first", "second"), [("label", "record"), ("record", "label")])
def test_two_units_share_what_is_left(ledger: Ledger, first: str, second: str) -> None:
    """Whichever comes first, the label has cost both, and so has the record."""
    rows = {"record": replace(ROW, epsilon=Fraction(3, 4)), "label": replace(ROW, epsilon=Fraction(3, 4))}
    rows["label"] = replace(rows["label"], neighbours=FlipLabel())
    ledger.cap("people", "record", 1)
    ledger.cap("people", "label", 2)
    ledger.reserve("people", rows[first], job="a")
    with pytest.raises(BudgetError, match=r"people: epsilon cap 1 for one record, 0\.75 spent, 0\.75 asked"):
        ledger.check("people", rows[second])
    with pytest.raises(BudgetError, match="for one record"):
        ledger.reserve("people", rows[second], job="b")
    ledger.cap("people", "record", 2)
    ledger.cap("people", "label", 1)
    with pytest.raises(BudgetError, match="for one label"):
        ledger.reserve("people", rows[second], job="b")
    assert [account.charges for account in ledger.accounts() if account.data_set == "people"] == [1, 1]


def test_a_voters_data_hold_records_but_not_the_other_way_round(ledger: Ledger) -> None:
    """A record's epsilon bounds nothing for all records together."""
    for unit in ("record", "party"):
        ledger.cap("own", unit, 1)
    ledger.reserve("own", replace(ROW, epsilon=Fraction(1, 2), neighbours=ReplaceParty()), job="vote")
    ledger.reserve("own", replace(ROW, epsilon=Fraction(1, 4)), job="fit")
    spent = {a.unit: a.spent_epsilon for a in ledger.accounts() if a.data_set == "own"}
    assert spent == {"party": Fraction(1, 2), "record": Fraction(3, 4)}


def test_without_a_cap_nothing_is_spent(ledger: Ledger) -> None:
    with pytest.raises(
        BudgetError,
        match=r"no cap for one record in hospital.sqlite; set one with `smpc ledger cap .* visits EPSILON`",
    ):
        ledger.reserve("visits", ROW, job="a")
    with pytest.raises(BudgetError, match="patients: no cap for one label"):
        ledger.reserve("patients", replace(ROW, neighbours=FlipLabel()), job="a")


def test_infinite_rows_are_refused(ledger: Ledger) -> None:
    with pytest.raises(BudgetError, match="patients: epsilon against server is infinite"):
        ledger.reserve("patients", replace(ROW, epsilon=INFINITE), job="a")
    assert ledger.accounts()[0].charges == 0


def test_a_lowered_cap_stops_spending_and_keeps_the_charges(ledger: Ledger) -> None:
    for _ in range(5):
        ledger.reserve("patients", ROW, job="a")
    ledger.cap("patients", "record", "0.2")
    with pytest.raises(BudgetError, match=r"cap 0.2 for one record, 0.5 spent, 0.1 asked: nothing is left: use"):
        ledger.reserve("patients", ROW, job="a")
    assert ledger.accounts()[0].spent_epsilon == Fraction(1, 2)


def test_a_crash_after_the_charge_pays_again(ledger: Ledger) -> None:
    """Charge on attempt: the job that dies before it opens anything leaves its charge, the retry adds another."""

    def job(dies: bool) -> None:
        ledger.reserve("patients", ROW, job="monday")
        if dies:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job(dies=True)
    job(dies=False)
    assert ledger.accounts()[0].spent_epsilon == Fraction(1, 5)


@pytest.mark.parametrize("statement", ["DELETE FROM charges", "UPDATE charges SET epsilon = '0'"])
def test_the_file_itself_refuses_refunds(ledger: Ledger, statement: str) -> None:
    ledger.reserve("patients", ROW, job="a")
    db = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="never"):
        db.execute(statement)
    db.close()
    assert ledger.accounts()[0].charges == 1


@pytest.mark.mpc
def test_two_processes_cannot_overspend_one_file(ledger: Ledger) -> None:
    workers = [start(ledger, epsilon) for epsilon in ("1/30", "1/40", "1/30")]
    outputs = [finish(worker) for worker in workers]
    assert all(output[-1].startswith("refused patients: epsilon cap 1 for one record") for output in outputs)
    opened = [output.count("opened") for output in outputs]
    spent = Fraction(opened[0] + opened[2], 30) + Fraction(opened[1], 40)
    (account,) = ledger.accounts()
    assert account.spent_epsilon == spent
    assert 1 - Fraction(1, 40) < spent <= 1
    check_file(ledger)


def kill_at_random(ledger: Ledger, times: int) -> None:
    """Two jobs at a time, each killed at a random moment; the ledger must show at least what they said they opened."""
    ledger.cap("patients", "record", 10**6)
    opened = 0
    for _ in range(times):
        workers = [start(ledger, "1/1000") for _ in range(2)]
        time.sleep(random.uniform(0, 0.12))
        for worker in workers:
            worker.kill()
            opened += finish(worker).count("opened")
        (account,) = ledger.accounts()
        assert opened <= account.charges
        assert account.spent_epsilon == Fraction(account.charges, 1000)
        check_file(ledger)
    assert opened >= times
    assert account.charges <= opened + 2 * times


@pytest.mark.mpc
def test_killed_jobs_have_paid(ledger: Ledger) -> None:
    kill_at_random(ledger, 3)


@pytest.mark.long
def test_200_killed_jobs_have_paid(ledger: Ledger) -> None:
    kill_at_random(ledger, 200)


def test_unusable_files(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"missing.*: give a file in an existing directory"):
        Ledger(tmp_path / "missing" / "ledger").accounts()
    (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(LedgerError, match=r"text: .*: check the file"):
        Ledger(tmp_path / "text").accounts()
    db = sqlite3.connect(tmp_path / "newer")
    db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(LedgerError, match="version 7 is not 1"):
        Ledger(tmp_path / "newer").accounts()


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(LedgerError, match=f"^{place}: is no regular file: name another place$"):
            Ledger(place).cap("people", "record", 1)


DAMAGES = {
    "a cap of no number": "UPDATE caps SET epsilon = 'abc'",
    "a cap over zero": "UPDATE caps SET epsilon = '1/0'",
    "a cap that takes minutes": "UPDATE caps SET epsilon = '1e99999999'",
    "a cap of bytes": "UPDATE caps SET delta = x'00'",
    "a cap for another unit": "UPDATE caps SET unit = 'galaxy'",
    "a cap of a name of bytes": "UPDATE caps SET data_set = x'ff'",
    "a cap of a name that moves the cursor": "UPDATE caps SET data_set = char(27) || '[2J'",
    "a charge of no number": "INSERT INTO charges (data_set, unit, epsilon, delta, job) "
    "VALUES ('patients', 'record', 'x', '0', 'a')",
    "a charge of bytes": "INSERT INTO charges (data_set, unit, epsilon, delta, job) "
    "VALUES ('patients', 'record', x'00', '0', 'a')",
    "a charge that pays back": "INSERT INTO charges (data_set, unit, epsilon, delta, job) "
    "VALUES ('patients', 'record', '-5', '0', 'a')",
    "a charge that nothing would count": "INSERT INTO charges (data_set, unit, epsilon, delta, job) "
    "VALUES ('patients', 'galaxy', '1', '0', 'a')",
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damaged_numbers_are_told_with_the_file(ledger: Ledger, damage: str) -> None:
    with sqlite3.connect(ledger.path) as db:
        db.execute(DAMAGES[damage])
    with pytest.raises(LedgerError, match=r"hospital\.sqlite: is damaged, it has an? .*: put its newest") as told:
        ledger.accounts()
    assert str(told.value).isprintable() and len(str(told.value).removeprefix(str(ledger.path))) < 200


def test_random_damage_is_one_line(ledger: Ledger) -> None:
    """Whatever bytes are there: a LedgerError, or accounts that are still fit to be shown."""
    ledger.reserve("patients", ROW, job="a")
    whole, errors = ledger.path.read_bytes(), 0
    rng = random.Random(5)
    for count in (1, 5, 50, 500) * 30:
        damaged = bytearray(whole)
        for _ in range(count):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        ledger.path.write_bytes(damaged)
        try:
            assert all(str(account).isprintable() for account in ledger.accounts())
        except LedgerError as error:
            errors += 1
            assert str(error).startswith(str(ledger.path))
    assert errors > 20


def test_words_that_cannot_be_decoded_are_an_error_of_the_file(ledger: Ledger) -> None:
    ledger.path.write_bytes(ledger.path.read_bytes().replace(b"CREATE TABLE caps", b"CREATE TABL\xff caps"))
    with pytest.raises(LedgerError, match=r"hospital\.sqlite: 'utf-8' codec can't decode .*: check the file"):
        ledger.accounts()


def test_a_second_thread_leaves_the_first_ones_lock_alone(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """To close any handle of a file gives up the process's locks on it: another process would be let in."""
    monkeypatch.setattr(transaction, "WAIT_SECONDS", 0.0)
    other = f"import sqlite3; sqlite3.connect({str(ledger.path)!r}, 0, isolation_level=None).execute('BEGIN IMMEDIATE')"
    with ledger._transaction():
        with pytest.raises(LedgerError, match="database is locked"):
            ledger.accounts()
        told = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True).stderr
    assert told.endswith("database is locked\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("patients", "record", math.nan), "epsilon=nan"),
        (("patients", "record", 0), "epsilon=0"),
        (("patients", "record", True), "epsilon=True"),
        (("patients", "record", 1, 1), "delta=1"),
        (("patients", "record", 1, math.nan), "delta=nan"),
        (("", "record", 1), "data_set=''"),
        (("a\nb", "record", 1), r"data_set='a\\nb'"),
        (("patients", " ", 1), "unit=' '"),
        (("patients", "voter", 1), "unit='voter' is none of label, record, party"),
        (("patients", "record", "1e99999999"), "epsilon='1e99999999'"),
        (("patients", "record", 1, "1e-99999999"), "delta='1e-99999999'"),
    ],
)
def test_caps_are_checked(ledger: Ledger, arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        ledger.cap(*arguments)  # type: ignore[arg-type]  # wrong on purpose
    assert ledger.accounts()[0].cap_epsilon == 1


def test_long_fractions_stay_exact_and_short_in_messages(ledger: Ledger) -> None:
    odd = Fraction(1, 3) + Fraction(1, 10**30)
    ledger.reserve("patients", replace(ROW, epsilon=odd), job="a")
    assert ledger.accounts()[0].spent_epsilon == odd
    with pytest.raises(BudgetError) as refusal:
        ledger.reserve("patients", replace(ROW, epsilon=Fraction(1)), job="a")
    assert len(str(refusal.value)) < 160


def test_numbers_beyond_floats_are_shown(ledger: Ledger) -> None:
    ledger.cap("patients", "record", Fraction(10**400), Fraction(1, 10**400))
    (account,) = ledger.accounts()
    assert account.cap_epsilon == 10**400
    assert "epsilon 0 of 1.00000E+400 spent, delta 0 of 0," in str(account)


def test_the_advised_command_can_be_pasted(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "my ledger.db")
    with pytest.raises(BudgetError) as refusal:
        ledger.reserve("my data; $(x)", ROW, job="a")
    command = str(refusal.value).split("`")[1]
    assert shlex.split(command) == ["smpc", "ledger", "cap", str(ledger.path), "my data; $(x)", "EPSILON"]


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        Ledger(tmp_path / "ledger.db").cap("people", "record", 1)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o600
