"""The memo never draws twice: across calls, processes, crashes; it says what a record has cost; it cannot be read."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechanisms.randomness import SecureRandom
from protocols.split import memo_file
from protocols.split.memo import Account, Memo, MemoError
from protocols.split.memo_file import key_place
from protocols.split.perturb import LATTICE, perturbation
from smpc.errors import InputError
from tests.protocols.split.memo_worker import IDS

RANDOM = SecureRandom()
LABELS = np.arange(200) % 2
LAPLACE = perturbation("laplace", 1)
WORKER = [sys.executable, "-m", "tests.protocols.split.memo_worker"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memo.sqlite"


def test_what_is_drawn_stays_drawn(path: Path) -> None:
    first = Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    again = Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    assert first.shape == (1, 200, 1) and np.array_equal(first, again)
    order = np.random.default_rng(0).permutation(200)[:50]
    some = Memo(path).draw([IDS[i] for i in order], LABELS[order], LAPLACE, RANDOM)
    assert np.array_equal(some, first[:, order])
    flipped = Memo(path).draw(IDS, 1 - LABELS, LAPLACE, RANDOM)
    assert np.array_equal(flipped, first), "a changed label is no reason for a second draw"
    assert len(Memo(path)) == 200


def test_without_a_memo_draws_do_differ(tmp_path: Path) -> None:
    one, other = (Memo(tmp_path / name).draw(IDS, LABELS, LAPLACE, RANDOM) for name in ("a", "b"))
    assert (one != other).mean() > 0.99


def test_new_records_are_drawn_and_old_ones_kept(path: Path) -> None:
    memo = Memo(path)
    first = memo.draw(IDS[:120], LABELS[:120], LAPLACE, RANDOM)
    assert np.array_equal(memo.draw(IDS, LABELS, LAPLACE, RANDOM)[:, :120], first)
    assert len(memo) == 200


def test_copies_are_independent_and_all_kept(path: Path) -> None:
    memo = Memo(path)
    two = memo.draw(IDS, LABELS, LAPLACE, RANDOM, copies=2)
    assert (two[0] != two[1]).mean() > 0.99
    assert np.array_equal(memo.draw(IDS, LABELS, LAPLACE, RANDOM, copies=2), two)
    assert np.array_equal(memo.draw(IDS, LABELS, LAPLACE, RANDOM), two[:1])
    assert memo.spent() == (Fraction(2), Fraction(0))


class Book:
    """A ledger's account as the memo sees it: what it was charged, in order."""

    def __init__(self, name: str = "ledger") -> None:
        self.charges = list[tuple[Fraction, Fraction]]()
        self.account = Account(name, lambda epsilon, delta: None, self.charge, self.spent)

    def charge(self, epsilon: Fraction, delta: Fraction) -> None:
        self.charges.append((epsilon, delta))

    def spent(self) -> tuple[Fraction, Fraction]:
        return sum((e for e, _ in self.charges), Fraction(0)), sum((d for _, d in self.charges), Fraction(0))


DELTA = Fraction(1, 10**6)
HALF, GAUSSIAN = perturbation("discrete", "1/2"), perturbation("gaussian", 1, delta="1e-6")


def test_it_charges_what_the_most_exposed_record_grows_by(path: Path) -> None:
    memo, book = Memo(path), Book()
    for part, law, due in (
        (slice(0, 100), LAPLACE, (1, 0)),
        (slice(0, 100), LAPLACE, (0, 0)),  # nothing new
        (slice(100, 200), LAPLACE, (0, 0)),  # others: none has cost more than before
        (slice(150, 200), HALF, (Fraction(1, 2), 0)),
        (slice(0, 50), HALF, (0, 0)),  # others again
        (slice(0, 10), GAUSSIAN, (1, DELTA)),
    ):
        before = len(memo), memo.spent()
        assert memo.due(IDS[part], law, account=book.account) == due
        assert (len(memo), memo.spent()) == before, "to ask is to draw nothing"
        memo.draw(IDS[part], LABELS[part], law, RANDOM, account=book.account)
    assert book.charges == [(1, 0), (Fraction(1, 2), 0), (1, DELTA)]
    assert memo.spent() == (Fraction(5, 2), DELTA)


def test_a_delta_may_grow_alone(path: Path) -> None:
    memo, book = Memo(path), Book()
    memo.draw(IDS[:10], LABELS[:10], LAPLACE, RANDOM, copies=2, account=book.account)
    memo.draw(IDS[10:], LABELS[10:], GAUSSIAN, RANDOM, account=book.account)
    assert book.charges == [(2, 0), (0, DELTA)]


@pytest.mark.parametrize("paid_by", [None, Book("another ledger")], ids=["nobody", "another"])
def test_an_account_is_charged_for_draws_that_it_has_not_paid(path: Path, paid_by: Book | None) -> None:
    memo, book = Memo(path), Book()
    other = (Fraction(9), Fraction(0))  # what this book has of other tables pays for nothing here
    book.charges.append(other)
    memo.draw(IDS, LABELS, LAPLACE, RANDOM, account=paid_by.account if paid_by else None)
    assert memo.due(IDS, LAPLACE, account=book.account) == (1, 0)
    memo.draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account)
    memo.draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account)
    assert book.charges == [other, (1, 0)]
    memo.draw(IDS, LABELS, HALF, RANDOM)
    memo.draw(IDS[:5], LABELS[:5], HALF, RANDOM, account=book.account)
    assert book.charges == [other, (1, 0), (Fraction(1, 2), 0)]


def test_a_ledger_that_was_replaced_is_charged_again(path: Path) -> None:
    """Of the same name, and with less in it than it was charged."""
    memo, book = Memo(path), Book()
    memo.draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account)
    book.charges.clear()
    assert memo.due(IDS, LAPLACE, account=book.account) == (1, 0)
    memo.draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account)
    assert book.charges == [(1, 0)]


def test_to_ask_makes_no_file(path: Path) -> None:
    memo = Memo(path)
    assert memo.due(IDS, GAUSSIAN, copies=2, account=Book().account) == (2, 2 * DELTA)
    assert len(memo) == 0 and memo.spent() == (0, 0) and memo.changed(IDS, LABELS, LAPLACE) == 0
    assert not list(path.parent.iterdir())


def test_a_refused_charge_leaves_nothing(path: Path) -> None:
    book = Book()

    def refuse(epsilon: Fraction, delta: Fraction) -> None:
        raise RuntimeError("over the cap")

    with pytest.raises(RuntimeError, match="over the cap"):
        Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, account=Account("ledger", refuse, book.charge, book.spent))
    assert len(Memo(path)) == 0 and Memo(path).spent() == (Fraction(0), Fraction(0)) and not book.charges
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account)
    assert book.charges == [(1, 0)]


def test_draws_are_on_disk_when_they_are_charged(path: Path) -> None:
    """Or a disk that is full would cost epsilon at every try, and nothing would ever be drawn."""
    book, kept = Book(), []

    def charge(epsilon: Fraction, delta: Fraction) -> None:
        with sqlite3.connect(path) as db:  # which sees what was committed
            kept.extend(db.execute("SELECT record, copy, sealed FROM draws").fetchall())
        raise RuntimeError("another job was faster")

    with pytest.raises(RuntimeError, match="another job was faster"):
        Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, account=Account("ledger", book.account.check, charge, book.spent))
    assert len(kept) == 200
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account)
    assert book.charges == [(1, 0)], "what was kept and not paid is charged by the next job"
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT record, copy, sealed FROM draws").fetchall() == kept


def test_labels_that_have_changed_since_their_draw_are_counted(path: Path) -> None:
    memo = Memo(path)
    memo.draw(IDS[:150], LABELS[:150], LAPLACE, RANDOM, copies=2)
    now = LABELS.copy()
    now[:7] = 1 - now[:7]
    now[150:] = 1 - now[150:]  # without a draw so far
    assert memo.changed(IDS, LABELS, LAPLACE) == 0
    assert memo.changed(IDS, now, LAPLACE) == 7
    assert memo.changed(IDS, now, HALF) == 0, "no draw of this law"
    memo.draw(IDS, now, LAPLACE, RANDOM)
    assert memo.changed(IDS, now, LAPLACE) == 7, "their draws stay"


def test_records_without_a_draw_and_draws_without_a_record_are_counted(path: Path) -> None:
    memo = Memo(path)
    assert memo.strangers(IDS) == (200, 0) and not path.exists()
    memo.draw(IDS[:150], LABELS[:150], LAPLACE, RANDOM, copies=2)
    memo.draw(IDS[:50], LABELS[:50], HALF, RANDOM)
    assert memo.strangers(IDS) == (50, 0)
    assert memo.strangers(IDS[140:]) == (50, 140)
    assert memo.strangers(IDS[:10]) == (0, 140)
    assert memo.strangers([f"{i}.0" for i in IDS]) == (200, 150)


def test_draws_are_kept_under_texts_that_stay(path: Path) -> None:
    """A word changed here, and memos of older programs would be drawn again."""
    laws = {
        perturbation(
            "laplace", "1/3"
        ): "discrete Laplace noise, scale 196608; epsilon 1/3; delta 0; classes 2; width 1",
        perturbation("discrete", 2, 3): "randomised response; epsilon 2; delta 0; classes 3; width 3",
        perturbation("multiclass-laplace", "0.5", 2): (
            "discrete Laplace noise, scale 262144; epsilon 1/2; delta 0; classes 2; width 2"
        ),
        GAUSSIAN: (
            "discrete Gaussian noise, variance 1348550082021486659646769/17592186044416; epsilon 1; delta 1/1000000; "
            "classes 2; width 1"
        ),
    }
    for law, text in laws.items():
        assert law.text == f"{text}; lattice 65536"
        Memo(path).draw(IDS[:3], LABELS[:3], law, RANDOM)
    with sqlite3.connect(path) as db:
        assert {text for (text,) in db.execute("SELECT law FROM laws")} == {law.text for law in laws}


def test_repeated_ids_are_refused(path: Path) -> None:
    with pytest.raises(InputError, match=r"1 record ids come more than once, '3' for one"):
        Memo(path).draw(["1", "3", "2", "3"], LABELS[:4], LAPLACE, RANDOM)
    with pytest.raises(InputError, match="4 record ids and 3 labels"):
        Memo(path).draw(list("1234"), LABELS[:3], LAPLACE, RANDOM)


@pytest.mark.mpc
@pytest.mark.parametrize(("moment", "drawn"), [("check", 0), ("charge", 200)])
def test_a_process_killed_in_a_transaction_leaves_all_draws_or_none(path: Path, moment: str, drawn: int) -> None:
    killed = subprocess.run([*WORKER, str(path), moment], capture_output=True, check=False)
    assert killed.returncode == -9
    book = Book()
    assert len(Memo(path)) == drawn
    assert Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account).shape == (1, 200, 1)
    assert book.charges == [(1, 0)]


@pytest.mark.mpc
def test_processes_at_once_get_the_same_draws(path: Path) -> None:
    Memo(path).draw(IDS[:1], LABELS[:1], LAPLACE, RANDOM)
    running = [subprocess.Popen([*WORKER, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = {process.communicate(timeout=60)[0] for process in running}
    assert len(outputs) == 1 and len(outputs.pop()) > 200


def test_ids_and_values_cannot_be_read_without_the_key(path: Path) -> None:
    names = [f"person-{i:06d}" for i in range(50)]
    released = Memo(path).draw(names, LABELS[:50], LAPLACE, RANDOM)
    stored = path.read_bytes()
    assert b"person" not in stored
    assert not any(value.tobytes() in stored for value in released[0])
    assert path.with_name("memo.sqlite.key").stat().st_mode & 0o777 == 0o600


def alter(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute("DROP TRIGGER IF EXISTS unchanged")
        db.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE draws SET sealed = zeroblob(36)",
        "UPDATE draws SET sealed = (SELECT sealed FROM draws ORDER BY record LIMIT 1)",  # another record's
        "UPDATE draws SET sealed = (SELECT sealed FROM draws d WHERE d.record = draws.record AND d.copy != draws.copy)",
    ],
)
def test_altered_draws_are_refused(path: Path, statement: str) -> None:
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, copies=2)
    alter(path, statement)
    with pytest.raises(MemoError, match="was altered"):
        Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, copies=2)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE laws SET epsilon = 'abc'",
        "UPDATE laws SET epsilon = '1/0'",
        "UPDATE laws SET delta = x'00'",
        "UPDATE laws SET epsilon = '1e99999999'",
        "UPDATE charges SET epsilon = '-5'",
        "UPDATE draws SET law = 7",
        "UPDATE key_check SET sealed = 'text'",
        "UPDATE key_check SET sealed = 1",
    ],
)
def test_altered_amounts_are_one_line(path: Path, statement: str) -> None:
    book = Book()
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, account=book.account)
    alter(path, statement)
    with pytest.raises(MemoError, match=r"was altered, it has|another memo's key") as told:
        Memo(path).due(IDS, LAPLACE, account=book.account)
    assert str(told.value).startswith(str(path)) and str(told.value).isprintable()


def test_random_damage_is_one_line(path: Path) -> None:
    drawn = Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    whole, errors, rng = path.read_bytes(), 0, random.Random(2)
    for number, count in enumerate((1, 5, 50) * 30):
        damaged = bytearray(whole)
        for _ in range(count):
            damaged[rng.randrange(len(whole) if number % 2 else 8192)] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            Memo(path).changed(IDS, LABELS, LAPLACE)
            Memo(path).due(IDS, LAPLACE, account=Book().account)
            Memo(path).strangers(IDS)
        except MemoError as error:
            errors += 1
            assert str(error).startswith(str(path))
    assert errors > 20
    path.write_bytes(whole)
    assert np.array_equal(Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM), drawn)


@pytest.mark.parametrize("which", ["memo", "key"])
def test_a_pipe_is_no_memo_and_no_key(path: Path, which: str) -> None:
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    place = path if which == "memo" else key_place(path)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(MemoError, match=f"^{place}: is no regular file: "):
        Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)


@pytest.mark.parametrize("statement", ["DELETE FROM draws", "UPDATE draws SET copy = 7"])
def test_the_file_itself_refuses_changes(path: Path, statement: str) -> None:
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    with sqlite3.connect(path) as db, pytest.raises(sqlite3.IntegrityError, match="draws are never"):
        db.execute(statement)


def files(path: Path) -> dict[str, bytes]:
    return {place.name: place.read_bytes() for place in path.parent.iterdir()}


def another(path: Path) -> Path:
    """Another memo's file in the place of this one's."""
    other = path.parent / "other"
    Memo(other).draw(IDS, LABELS, LAPLACE, RANDOM)
    key_place(other).unlink()
    return other.replace(path)


def foreign(path: Path, version: int = 0) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE draws (record, law, copy, sealed)")
        db.execute(f"PRAGMA user_version = {version}")


LOSSES = {
    "no memo": (lambda path: path.unlink(), "is gone and its key"),
    "an empty memo": (lambda path: path.write_bytes(b""), r"is empty and memo.sqlite.key is not: put the memo back"),
    "half a memo": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "check the file|was altered"),
    "another's memo": (another, r"memo\.sqlite\.key is another memo's key"),
    "a foreign database": (foreign, "is no memo of version 2"),
    "a foreign database of this version": (lambda path: foreign(path, 2), "no such table: key_check"),
    "text": (lambda path: path.write_text("no database, and long enough for its header" * 3), "not a database"),
    "no key": (lambda path: key_place(path).unlink(), "No such file or directory: it opens memo.sqlite"),
    "half a key": (lambda path: key_place(path).write_bytes(bytes(7)), "has 7 bytes and needs 32"),
    "an empty key": (lambda path: key_place(path).write_bytes(b""), "has 0 bytes and needs 32"),
    "another's key": (lambda path: key_place(path).write_bytes(bytes(32)), "is another memo's key"),
}


@pytest.mark.parametrize("loss", list(LOSSES))
def test_lost_and_foreign_files_are_refused_instead_of_drawing_again(path: Path, loss: str) -> None:
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    happen, message = LOSSES[loss]
    happen(path)
    before = files(path)
    account = Book().account
    for use in (
        lambda: Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM),
        lambda: Memo(path).due(IDS, LAPLACE, account=account),
        lambda: Memo(path).spent(),
    ):
        with pytest.raises(MemoError, match=message) as told:
            use()
        assert "\n" not in str(told.value)
    assert files(path) == before


MOMENTS = ["open", "fsync", "connect", "rename"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_wherever_making_a_memo_stops_no_draw_is_lost(path: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just before each of its steps: what is left is refused with what to do, and that helps."""

    class Crash(BaseException):
        pass

    def crash(*arguments: object, **options: object) -> None:
        raise Crash

    where = {"open": memo_file.os, "fsync": memo_file.os, "connect": memo_file.sqlite3, "rename": Path}[moment]
    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(where, moment, crash)
        Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    assert not key_place(path).exists()
    if moment != "open":
        with pytest.raises(MemoError, match=r"nothing has been drawn: wait, or delete it and memo\.sqlite"):
            Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
        for place in path.parent.iterdir():
            place.unlink()
    assert Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM).shape == (1, 200, 1)


def test_a_full_disk_for_the_key_is_one_line_and_stands_in_nobodys_way(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(MemoError, match="No space left on device: make room"):
        patch.setattr(memo_file.os, "fsync", full)
        Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    assert Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM).shape == (1, 200, 1)


def test_who_makes_a_memo_that_another_has_made_meanwhile_uses_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    with monkeypatch.context() as patch:
        patch.setattr(memo_file, "is_absent", lambda _: True)  # when it looked
        assert np.array_equal(Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM), first)
    assert len(files(path)) == 2


def test_unusable_places_are_told(tmp_path: Path) -> None:
    with pytest.raises(MemoError, match="existing directory"):
        Memo(tmp_path / "nowhere" / "memo").draw(IDS, LABELS, LAPLACE, RANDOM)


def test_stored_values_follow_the_label_of_the_first_draw(path: Path) -> None:
    sharp = perturbation("laplace", 50)
    released = Memo(path).draw(IDS, LABELS, sharp, RANDOM)[0, :, 0]
    assert np.mean(np.rint(released / LATTICE) == LABELS) > 0.99
