"""The memo never draws twice: across calls, processes, crashes; it says what a record has cost; it cannot be read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechanisms.randomness import SecureRandom
from protocols.split.memo import Memo, MemoError
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


def test_it_charges_what_the_most_exposed_record_grows_by(path: Path) -> None:
    memo, charges = Memo(path), list[tuple[Fraction, Fraction]]()

    def charge(epsilon: Fraction, delta: Fraction) -> None:
        charges.append((epsilon, delta))

    half, gaussian = perturbation("discrete", "1/2"), perturbation("gaussian", 1, delta="1e-6")
    memo.draw(IDS[:100], LABELS[:100], LAPLACE, RANDOM, charge=charge)
    memo.draw(IDS[:100], LABELS[:100], LAPLACE, RANDOM, charge=charge)  # nothing new
    memo.draw(IDS[100:], LABELS[100:], LAPLACE, RANDOM, charge=charge)  # others: none has cost more than before
    memo.draw(IDS[150:], LABELS[150:], half, RANDOM, charge=charge)
    memo.draw(IDS[:50], LABELS[:50], half, RANDOM, charge=charge)  # others again
    memo.draw(IDS[:10], LABELS[:10], gaussian, RANDOM, charge=charge)
    delta = Fraction(1, 10**6)
    assert charges == [(1, 0), (Fraction(1, 2), 0), (1, delta)]
    assert memo.spent() == (Fraction(5, 2), delta)


def test_a_refused_charge_leaves_nothing(path: Path) -> None:
    def refuse(epsilon: Fraction, delta: Fraction) -> None:
        raise RuntimeError("over the cap")

    with pytest.raises(RuntimeError, match="over the cap"):
        Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM, charge=refuse)
    assert len(Memo(path)) == 0 and Memo(path).spent() == (Fraction(0), Fraction(0))


def test_repeated_ids_are_refused(path: Path) -> None:
    with pytest.raises(InputError, match=r"1 record ids come more than once, '3' for one"):
        Memo(path).draw(["1", "3", "2", "3"], LABELS[:4], LAPLACE, RANDOM)
    with pytest.raises(InputError, match="4 record ids and 3 labels"):
        Memo(path).draw(list("1234"), LABELS[:3], LAPLACE, RANDOM)


@pytest.mark.mpc
def test_a_process_killed_in_the_transaction_has_drawn_nothing(path: Path) -> None:
    killed = subprocess.run([*WORKER, str(path), "die"], capture_output=True, check=False)
    assert killed.returncode == -9
    assert len(Memo(path)) == 0
    assert Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM).shape == (1, 200, 1)


@pytest.mark.mpc
def test_processes_at_once_get_the_same_draws(path: Path) -> None:
    Memo(path)
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


@pytest.mark.parametrize("statement", ["DELETE FROM draws", "UPDATE draws SET copy = 7"])
def test_the_file_itself_refuses_changes(path: Path, statement: str) -> None:
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    with sqlite3.connect(path) as db, pytest.raises(sqlite3.IntegrityError, match="draws are never"):
        db.execute(statement)


def test_lost_or_foreign_files_are_refused_instead_of_drawing_again(path: Path) -> None:
    Memo(path).draw(IDS, LABELS, LAPLACE, RANDOM)
    key = path.with_name("memo.sqlite.key")
    own = key.read_bytes()
    key.write_bytes(own[::-1])
    with pytest.raises(MemoError, match=r"memo\.sqlite\.key is another memo's key"):
        Memo(path)
    key.write_bytes(own[:7])
    with pytest.raises(MemoError, match="has 7 bytes and needs 32"):
        Memo(path)
    key.unlink()
    with pytest.raises(MemoError, match="No such file"):
        Memo(path)
    key.write_bytes(own)
    path.unlink()
    with pytest.raises(MemoError, match="is gone and its key"):
        Memo(path)


def test_unusable_places_are_told(tmp_path: Path) -> None:
    with pytest.raises(MemoError, match="existing directory"):
        Memo(tmp_path / "nowhere" / "memo")
    other = tmp_path / "memo"
    other.write_text("no database, but as long as the header of one, or longer")
    other.with_name("memo.key").write_bytes(bytes(32))
    with pytest.raises(MemoError, match="not a database"):
        Memo(other)


def test_stored_values_follow_the_label_of_the_first_draw(path: Path) -> None:
    sharp = perturbation("laplace", 50)
    released = Memo(path).draw(IDS, LABELS, sharp, RANDOM)[0, :, 0]
    assert np.mean(np.rint(released / LATTICE) == LABELS) > 0.99
