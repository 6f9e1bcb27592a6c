"""An ensemble job from keys to model on the command line: mixed scikit-learn voters over the network."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from launch import ballot_keys
from launch.ballot_keys import (
    make_sealing_key,
    make_voter_key,
    public_sealing_key,
    read_roster,
    read_sealing_key,
    read_voter_key,
)
from launch.job import load_job
from launch.kept_ballot import KeptBallot
from launch.keys import make_keys
from launch.tasks.ensemble import NO_BALLOTS, EnsembleTask
from launch.vote import Account
from launch.vote import vote as cast_vote
from mechanisms.guarantee import INFINITE, Guarantee
from mechanisms.ledger import BudgetError, Ledger, LedgerError
from protocols.ensemble.voter import labels
from smpc.ballots import envelope, shares
from smpc.ballots.box import NOBODY, Box
from smpc.ballots.counting import LONGEST_VOTE
from smpc.ballots.receiver import Receiver
from smpc.engine.start import PATIENCE
from smpc.engine.tls import Identity, listen
from smpc.errors import InputError, PeerError, SmpcError
from tests.launch.jobs import free_addresses

SAMPLES = 60
VOTERS = ("logistic", "tree", "neighbours", "bayes", "constant")
SMPC = [sys.executable, "-m", "launch"]
P = 2**255 - 19
_ORDER_8 = 325606250916557431795983626356110631294008115727848805560023387167927233504
_TWIST_8 = 39382357235489614581723060781553021112529911719440698176882885853963445705823
SMALL_X25519 = (0, 1, P - 1, _ORDER_8, _TWIST_8, P, P + 1)  # RFC 7748's ladder takes any to zero


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (count, 2))
    return x, np.where(x[:, 0] + x[:, 1] > 0, "up", "down")


def write_job(folder: Path, *, release: str = "statistic", seconds: int = 300, extra: str = "") -> Path:
    """A job of two compute parties, with all keys and the samples, in `folder`."""
    x, _ = points(SAMPLES, 1)
    pq.write_table(pa.table({"id": list(range(SAMPLES)), "a": x[:, 0], "b": x[:, 1]}), folder / "aux.parquet")
    parties = ""
    for party, address in zip(("ann", "bob"), free_addresses(["127.0.0.1"] * 2), strict=True):
        make_keys(party, folder)
        _, public = make_sealing_key(party, folder)
        parties += f'[[party]]\nname = "{party}"\ncertificate = "{party}.crt"\n'
        parties += f'ballots = "{address}"\nsealing_key = "{public}"\n'
    lines = [make_voter_key(voter, folder)[1] for voter in VOTERS]
    (folder / "voters.csv").write_text("\n".join(["voter,key", *lines]) + "\n")
    path = folder / "job.toml"
    path.write_text(
        f'[job]\nname = "slope"\nprotocol = "ensemble"\nrelease = "{release}"\nepsilon = 20\n{extra}'
        '[auxiliary]\ntable = "aux.parquet"\nid = "id"\nclasses = ["down", "up"]\n'
        "columns = { a = [-3, 3], b = [-3, 3] }\n"
        f'[voters]\nkeys = "voters.csv"\nseconds = {seconds}\n'
        f'[server]\nname = "server"\n[dealer]\nname = "dealer"\n{parties}'
    )
    return path


@contextmanager
def running(job: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([*SMPC, "run", str(job), "--out", str(out)], stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def vote(folder: Path, voter: str, *more: str, model: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [
        *SMPC,
        "vote",
        str(folder / "job.toml"),
        "--as",
        voter,
        "--model",
        str(folder / (model or f"{voter}.joblib")),
    ]
    key = ["--key", str(folder / f"{voter}.voter")]
    return subprocess.run(
        [*command, *key, *more], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def fail() -> None:
    raise ValueError("one line\nand another")


class Unreadable:
    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return fail, ()


def write_models(folder: Path) -> None:
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("sklearn")
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    kinds = [LogisticRegression(), DecisionTreeClassifier(), KNeighborsClassifier(3), GaussianNB(), DummyClassifier()]
    for number, (voter, kind) in enumerate(zip(VOTERS, kinds, strict=False)):
        x, y = points(40, 10 + number)
        joblib.dump(kind.fit(x, y), folder / f"{voter}.joblib")
    joblib.dump(LogisticRegression(), folder / "unfitted.joblib")
    joblib.dump({"no": "model"}, folder / "dictionary.joblib")
    joblib.dump(Unreadable(), folder / "unreadable.joblib")
    x, y = points(40, 3)
    joblib.dump(LogisticRegression().fit(x, np.char.add(y, "ward")), folder / "other_classes.joblib")


@pytest.mark.mpc
def test_mixed_voters_make_a_model(tmp_path: Path) -> None:
    write_models(tmp_path)
    job, out = write_job(tmp_path), tmp_path / "out"
    with running(job, out) as process:
        receipt = vote(tmp_path, "logistic", "--seconds", "60")
        assert receipt.returncode == 0, receipt.stderr
        assert receipt.stdout.splitlines() == [f"{p}: the ballot of logistic is in the box" for p in ("ann", "bob")]
        second = vote(tmp_path, "logistic")
        assert second.returncode == 1 and "bob: ballot of logistic refused: a second ballot;" in second.stderr
        with ThreadPoolExecutor(2) as pool:  # when the last one is in, the vote closes
            assert [done.returncode for done in pool.map(partial(vote, tmp_path), VOTERS[1:])] == [0] * 4
        assert process.wait(timeout=120) == 0, process.stderr and process.stderr.read()
    report = json.loads((out / "ballots.json").read_text())
    assert sorted(report["counted"]) == sorted(VOTERS) and not report["missing"] and not report["rejected"]
    model = json.loads((out / "model.json").read_text())
    assert model["coefficients"]["a"] > 0 < model["coefficients"]["b"] and model["voters_counted"] == 5
    guarantee = Guarantee.from_json((out / "guarantee.json").read_text())
    assert {row.unit for row in guarantee.rows} == {"party"} and guarantee.worst(1).epsilon == 20


def test_models_that_cannot_vote_are_refused_in_one_line(tmp_path: Path) -> None:
    write_models(tmp_path)
    job = write_job(tmp_path)
    for model, voter, message in (
        ("unfitted.joblib", "tree", "LogisticRegression: cannot predict on the auxiliary samples"),
        ("dictionary.joblib", "tree", "a dict predicts nothing"),
        ("other_classes.joblib", "tree", "which is none of the classes down, up"),
        ("none.joblib", "tree", "cannot be read"),
        ("ann.crt", "tree", "is no model written by joblib"),
        ("unreadable.joblib", "tree", r"is no model written by joblib \(ValueError: one line\)"),
        ("tree.joblib", "nobody", "is no voter in"),
        ("tree.joblib", "tree", "vote while the job runs"),
    ):
        with pytest.raises(SmpcError, match=message) as caught:
            cast_vote(job, voter, tmp_path / model, table=None, key=tmp_path / f"{voter}.voter", seconds=0)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="this key is not the one"):
        cast_vote(job, "tree", tmp_path / "tree.joblib", table=None, key=tmp_path / "bayes.voter", seconds=0)


def test_a_long_prediction_is_cut_in_its_refusal() -> None:
    class Talker:
        def predict(self, features: np.ndarray) -> list[str]:
            return ["x" * 100_000] * len(features)

    with pytest.raises(InputError, match="which is none of the classes down, up") as caught:
        labels(Talker(), np.zeros((2, 1)), ["a"], ("down", "up"))
    assert len(str(caught.value)) < 200


class Named:
    """A classifier that was fitted on a table with names."""

    def __init__(self, *names: str) -> None:
        self.feature_names_in_ = np.array(names)

    def predict(self, x: np.ndarray) -> list[str]:
        warnings.warn("X does not have valid feature names, but Named was fitted with them", stacklevel=1)
        return ["up"] * len(x)


def test_a_model_of_other_columns_or_of_another_order_is_refused_where_it_has_names() -> None:
    for names in (("b", "a"), ("a",), ("a", "c"), ("a", "b", "c")):
        message = f"^Named: was trained on {', '.join(names)}; the samples have a, b, in this order$"
        with pytest.raises(InputError, match=message):
            labels(Named(*names), np.zeros((2, 2)), ["a", "b"], ("down", "up"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert labels(Named("a", "b"), np.zeros((2, 2)), ["a", "b"], ("down", "up")).tolist() == [1, 1]


@contextmanager
def receiving(job: Path, folder: Path, run: bytes, *parties: str) -> Iterator[dict[str, Box]]:
    """The doors of these compute parties in one run of the job, in this process."""
    task = load_job(job).task
    assert isinstance(task, EnsembleTask)
    poll = task.poll(task.table.load(), run)
    with ExitStack() as stack:
        boxes = {}
        for party in task.parties:
            if party.name in parties and party.certificate is not None:
                place = folder / f"box of {party.name} {run[:1].hex()}"
                place.mkdir(exist_ok=True)
                boxes[party.name] = Box(poll, party.name, read_sealing_key(folder / f"{party.name}.seal"), place)
                who = Identity(party.name, folder / f"{party.name}.key", party.certificate)
                stack.enter_context(Receiver(boxes[party.name], who, listen(party.ballots)))
        yield boxes


def test_a_vote_is_charged_once_a_run_and_only_when_it_can_be_sent(tmp_path: Path, monkeypatch: Any) -> None:
    write_models(tmp_path)
    job, account = write_job(tmp_path), Account(tmp_path / "ledger.sqlite", "readings")
    ledger = Ledger(account.ledger)
    ledger.cap("readings", "party", "50", "0")

    def again(model: str = "tree") -> list[str]:
        key = tmp_path / "tree.voter"
        return cast_vote(job, "tree", tmp_path / f"{model}.joblib", key=key, account=account, seconds=0)

    def charges() -> int:
        (only,) = ledger.accounts()
        return only.charges

    with receiving(job, tmp_path, bytes(32), "ann"), pytest.raises(PeerError, match=r"bob .*; nothing was sent"):
        again()
    assert charges() == 0 and not list(tmp_path.glob("*.ballot"))
    with receiving(job, tmp_path, bytes(32), "ann", "bob") as boxes:
        put = Box.put
        monkeypatch.setattr(Box, "put", lambda box, data: put(box, data) if box.me == "bob" else lost())
        with pytest.raises(
            PeerError, match=r"receipts so far: bob; ann gave no receipt .*; run the same command again"
        ):
            again()
        monkeypatch.undo()
        (kept,) = tmp_path.glob("*.ballot")
        assert charges() == 1 and kept.stat().st_mode & 0o777 == 0o600
        *receipts, told = again("bayes")
        assert told == f"{kept} was sent, an earlier call's ballot, not a new one of {tmp_path / 'bayes.joblib'}"
        assert len(receipts) == 2 and charges() == 1 and not kept.exists()
        with pytest.raises(InputError, match="a second ballot; the first one counts"):
            again("bayes")
        assert charges() == 1
        alike = boxes["bob"].has(np.array([1]), boxes["ann"].digests(np.array([1])))
        assert alike.tolist() == [1] and boxes["ann"].next_batch(2, 0)[1:].tolist() == [1, NOBODY]
    with receiving(job, tmp_path, bytes([1] * 32), "ann", "bob") as boxes:
        boxes["ann"].close()
        assert not kept.exists(), "what was refused would be refused again"
        with pytest.raises(InputError, match="ann: the vote is closed; nothing was sent"):
            again()
        assert charges() == 1
    with receiving(job, tmp_path, bytes([2] * 32), "ann", "bob"):
        again()
        assert charges() == 2
    with receiving(job, tmp_path, bytes([3] * 32), "ann", "bob") as boxes:
        with pytest.raises(BudgetError):
            again()
        assert not boxes["ann"].refused and boxes["bob"].next_batch(1, 0)[1:].tolist() == [NOBODY]
        assert not kept.exists()


@pytest.mark.parametrize("fault", ["another job", "a folder that cannot be written to"])
def test_nothing_is_charged_for_what_cannot_be_sent(tmp_path: Path, monkeypatch: Any, fault: str) -> None:
    write_models(tmp_path)
    job, account = write_job(tmp_path), Account(tmp_path / "ledger.sqlite", "readings")
    Ledger(account.ledger).cap("readings", "party", "50", "0")
    mine = tmp_path / "mine.toml"
    mine.write_text(job.read_text().replace("seconds = 300", f"seconds = {301 if fault == 'another job' else 300}"))
    if fault != "another job":
        monkeypatch.setattr(os, "open", read_only(os.open))
    with receiving(job, tmp_path, bytes(32), "ann", "bob") as boxes:
        with pytest.raises(
            InputError, match=r"^ann and bob: another job runs there .*; nothing was sent|cannot be written"
        ):
            cast_vote(mine, "tree", tmp_path / "tree.joblib", key=tmp_path / "tree.voter", account=account, seconds=0)
        assert not boxes["bob"].refused and boxes["bob"].next_batch(1, 0)[1:].tolist() == [NOBODY]
    (only,) = Ledger(account.ledger).accounts()
    assert only.charges == 0 and not list(tmp_path.glob("*.ballot"))


@pytest.mark.parametrize("fault", ["a charge", "a cap", "a pipe", "an interrupt"])
def test_a_ledger_that_cannot_be_used_leaves_no_new_ballot(tmp_path: Path, monkeypatch: Any, fault: str) -> None:
    write_models(tmp_path)
    job, account = write_job(tmp_path), Account(tmp_path / "ledger.sqlite", "readings")
    Ledger(account.ledger).cap("readings", "party", "50", "0")
    with sqlite3.connect(account.ledger) as db:
        if fault == "a charge":
            db.execute(
                "INSERT INTO charges (data_set, unit, epsilon, delta, job) VALUES ('readings', 'x', '1', '0', 'a')"
            )
        db.execute("UPDATE caps SET epsilon = '1/0'" if fault == "a cap" else "PRAGMA user_version")
    if fault == "a pipe":
        account.ledger.unlink()
        os.mkfifo(account.ledger)
    if fault == "an interrupt":
        monkeypatch.setattr(Ledger, "reserve", interrupted)
    with receiving(job, tmp_path, bytes(32), "ann", "bob") as boxes:
        with pytest.raises(KeyboardInterrupt if fault == "an interrupt" else LedgerError):
            cast_vote(job, "tree", tmp_path / "tree.joblib", key=tmp_path / "tree.voter", account=account, seconds=0)
        assert boxes["bob"].next_batch(1, 0)[1:].tolist() == [NOBODY] and not list(tmp_path.glob("*.ballot"))


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def read_only(opened: Callable[..., int]) -> Callable[..., int]:
    def open_file(path: Any, *how: Any, **more: Any) -> int:
        if Path(path).name.startswith(".smpc-") and "box" not in str(path):
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, *how, **more)

    return open_file


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_only_a_finite_time_is_waited(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(InputError, match=r"--seconds .*: must be a number, 0 or more"):
        cast_vote(tmp_path / "job.toml", "tree", tmp_path / "tree.joblib", seconds=seconds)


def test_the_dealer_outlasts_the_longest_vote() -> None:
    """Nobody may ask it for anything before the vote is over; five minutes are for what follows until then."""
    assert LONGEST_VOTE + 300 < PATIENCE


def test_one_voter_cannot_vote_twice_at_once(tmp_path: Path) -> None:
    write_models(tmp_path)
    job = write_job(tmp_path)
    key = tmp_path / "tree.voter"
    with receiving(job, tmp_path, bytes(32), "ann", "bob") as boxes, open(tmp_path / ".tree.lock", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=r"another `smpc vote` is under way with .*tree\.voter; wait"):
            cast_vote(job, "tree", tmp_path / "tree.joblib", key=key, seconds=0)
        assert boxes["bob"].next_batch(1, 0)[1:].tolist() == [NOBODY] and not list(tmp_path.glob("*.ballot"))
        fcntl.flock(other, fcntl.LOCK_UN)
        assert len(cast_vote(job, "tree", tmp_path / "tree.joblib", key=key, seconds=0)) == 2


def test_a_lock_that_is_a_link_leaves_what_it_names_alone(tmp_path: Path) -> None:
    write_models(tmp_path)
    job = write_job(tmp_path)
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    (tmp_path / ".tree.lock").symlink_to(notes)
    with receiving(job, tmp_path, bytes(32), "ann", "bob"):
        cast_vote(job, "tree", tmp_path / "tree.joblib", key=tmp_path / "tree.voter", seconds=0)
    assert notes.read_text() == "mine"


@pytest.mark.parametrize("fault", [errno.ENOLCK, errno.EBADF, errno.EROFS])
def test_a_key_where_nothing_can_be_locked_is_one_line(tmp_path: Path, monkeypatch: Any, fault: int) -> None:
    def no_lock(*_: Any) -> None:
        raise OSError(fault, os.strerror(fault))

    write_models(tmp_path)
    job = write_job(tmp_path)
    monkeypatch.setattr(fcntl, "flock", no_lock)
    with pytest.raises(InputError, match=r"\.tree\.lock: cannot be locked \(.*\); copy the key to a folder"):
        cast_vote(job, "tree", tmp_path / "tree.joblib", key=tmp_path / "tree.voter", seconds=0)


def test_a_missing_certificate_of_the_dealer_is_told_before_anything_starts(tmp_path: Path) -> None:
    job = write_job(tmp_path)
    job.write_text(job.read_text().replace('name = "dealer"', 'name = "dealer"\ncertificate = "absent.crt"'))
    task = load_job(job).task
    task.outlook(load_job(job).cast, SAMPLES)  # plans can be made before keys
    with pytest.raises(InputError, match=r"absent\.crt: does not exist; get it from its owner"):
        task.prepare("server")


def test_two_voters_with_one_data_set_are_charged_for_two_ballots(tmp_path: Path) -> None:
    write_models(tmp_path)
    job, account = write_job(tmp_path), Account(tmp_path / "ledger.sqlite", "readings")
    ledger = Ledger(account.ledger)
    ledger.cap("readings", "party", "50", "0")
    with receiving(job, tmp_path, bytes(32), "ann", "bob") as boxes:
        for voter in ("tree", "bayes"):
            key = tmp_path / f"{voter}.voter"
            cast_vote(job, voter, tmp_path / "tree.joblib", key=key, account=account, seconds=0)
        assert boxes["ann"].next_batch(2, 0)[1:].tolist() == [1, 3]
    (only,) = ledger.accounts()
    assert only.charges == 2 and only.spent_epsilon == 40


def lost() -> str:
    raise OSError("the connection breaks")


def test_a_kept_ballot_is_of_one_run_or_is_refused(tmp_path: Path) -> None:
    task = load_job(write_job(tmp_path)).task
    assert isinstance(task, EnsembleTask)
    samples = task.table.load()
    one, other = (task.poll(samples, bytes([run] * 32)) for run in (1, 2))
    kept = KeptBallot(tmp_path / "tree.ballot")
    assert kept.read(one, "tree") is None
    contents = shares.split(one.encode(np.zeros(SAMPLES, dtype=np.int64)), one.parties)
    signer = read_voter_key(tmp_path / "tree.voter")
    ballot = envelope.make(contents, poll=one.id, voter="tree", key=signer, seals=one.seals)
    kept.write(ballot)
    assert kept.read(one, "tree") == ballot and kept.read(other, "tree") is None
    with pytest.raises(InputError, match="is a ballot of another voter; move it away"):
        kept.read(one, "bayes")
    for text in ("", "{", "[" * 100_000, "[]", "{}", '{"ann": 1, "bob": 2}', '{"ann": "YQ==", "bob": "YQ=="}'):
        kept.path.write_text(text)
        with pytest.raises(InputError, match="is no ballot that `smpc vote` has kept; move it away"):
            kept.read(one, "tree")


@pytest.mark.parametrize("release", ["soft", "majority"])
def test_the_papers_releases_say_that_the_solver_is_not_held_off(tmp_path: Path, release: str) -> None:
    task = load_job(write_job(tmp_path, release=release)).task
    assert isinstance(task, EnsembleTask)
    outlook = task.outlook(load_job(tmp_path / "job.toml").cast, SAMPLES)
    assert any(row.epsilon == INFINITE and str(row.coalition) == "server" for row in outlook.guarantee.rows)
    assert ("exact counts" if release == "soft" else "exact labels") in outlook.table


def test_the_ballots_job_hash_depends_on_every_public_choice(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    task = load_job(path).task
    assert isinstance(task, EnsembleTask)
    assert task.poll(task.table.load()).job == NO_BALLOTS, "planned only"
    hashes = {job_hash(path)}
    text = path.read_text()
    for old, new in (
        ("epsilon = 20", "epsilon = 19"),
        ('"slope"', '"other"'),
        ("a = [-3, 3]", "a = [-4, 3]"),
        ('["down", "up"]', '["up", "down"]'),
        ('["down", "up"]', '["down, up", "left"]'),
        ('["down", "up"]', '["down", "up, left"]'),
        ("seconds = 300", "seconds = 301"),
        ('"statistic"', '"soft"'),
        ('name = "server"', 'name = "hospital"'),
        ('name = "dealer"', 'name = "trader"'),
        ('name = "dealer"', 'name = "dealer"\ncertificate = "ann.crt"'),
        ('name = "dealer"', 'name = "dealer"\ncertificate = "bob.crt"'),
        ('name = "server"', 'name = "server"\ncertificate = "bob.crt"'),
    ):
        path.write_text(text.replace(old, new))
        hashes.add(job_hash(path))
    path.write_text(text)
    (tmp_path / "elsewhere").mkdir()
    make_keys("ann", tmp_path / "elsewhere")
    certificate = tmp_path / "ann.crt"
    before = certificate.read_bytes()
    certificate.write_bytes((tmp_path / "elsewhere" / "ann.crt").read_bytes())
    hashes.add(job_hash(path))
    certificate.write_bytes(before)
    roster = tmp_path / "voters.csv"
    roster.write_text("\n".join(roster.read_text().splitlines()[:-1]))
    hashes.add(job_hash(path))
    assert len(hashes) == 16
    samples = task.table.load()
    assert task.poll(samples, bytes(32)).id != task.poll(samples, bytes([1] * 32)).id


def job_hash(path: Path) -> bytes:
    task = load_job(path).task
    assert isinstance(task, EnsembleTask)
    return task.poll(task.table.load(), bytes(32)).job


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('classes = ["down", "up"]', 'classes = ["down"]', "two or more different names"),
        ('classes = ["down", "up"]', 'classes = ["up", "up"]', "two or more different names"),
        ('release = "statistic"', 'release = "counts"', "one of statistic, soft, majority"),
        ("seconds = 300", "seconds = 0", "a number from 1 to 3000"),
        ('ballots = "127.0.0.1', 'ballots = "127.0.0.1:x', "host:port"),
        ('sealing_key = "', 'sealing_key = "zz', "64 hex digits"),
        ('sealing_key = "', f'sealing_key = "{"00" * 32}"\n# "', "64 hex digits that stand for a key"),
        ('sealing_key = "', f'sealing_key = "{"ff" * 32}"\n# "', "64 hex digits that stand for a key"),
        ('certificate = "ann.crt"\n', "", "certificate is missing"),
        ("epsilon = 20\n", "", "epsilon is missing"),
        ("a = [-3, 3]", "a = [3, -3]", "need low < high"),
    ],
)
def test_job_files_that_cannot_be_are_refused_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write_job(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        load_job(path)
    assert "\n" not in str(caught.value)


def test_two_compute_parties_with_one_sealing_key_are_refused(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    first, second = re.findall(r'sealing_key = "(\w+)"', path.read_text())
    path.write_text(path.read_text().replace(second, first.upper()))
    with pytest.raises(InputError, match="must be its own: who has that of ann too sees all votes"):
        load_job(path)


@pytest.mark.parametrize("u", SMALL_X25519)
def test_sealing_keys_of_small_order_are_refused(u: int) -> None:
    with pytest.raises(ValueError, match=r"2\^255|zero|comput"):
        public_sealing_key(u.to_bytes(32, "little").hex())


def torsion() -> list[bytes]:
    """The eight points of small order of edwards25519, by the curve's equation and the group law (RFC 8032, 5.1)."""
    d = -121665 * pow(121666, -1, P) % P

    def root(square: int) -> int:
        r = pow(square, (P + 3) // 8, P)
        return r if (r * r - square) % P == 0 else r * pow(2, (P - 1) // 4, P) % P

    def add(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
        (a, b), (c, e) = one, other
        f = d * a * b * c * e
        return (a * e + b * c) * pow(1 + f, -1, P) % P, (b * e + a * c) * pow(1 - f, -1, P) % P

    y_squared = (root(1 + d) - 1) * pow(d, -1, P) % P  # twice such a point has y = 0: x^2 = -y^2
    if pow(y_squared, (P - 1) // 2, P) != 1:
        y_squared = (-root(1 + d) - 1) * pow(d, -1, P) % P
    y = root(y_squared)
    points = [(root(-y_squared % P), y)]
    while points[-1] != (0, 1):
        points.append(add(points[-1], points[0]))
    assert len(points) == 8
    return [(y | (x & 1) << 255).to_bytes(32, "little") for x, y in points]


def test_voters_keys_with_which_anybody_can_sign_are_refused(tmp_path: Path) -> None:
    """The signature (R, S) = (the neutral point, 0) holds for every eighth message at least under such a key."""
    forged = (1).to_bytes(32, "little") + bytes(32)
    for key in torsion():
        assert any(holds(key, forged, bytes([message])) for message in range(250))
        (tmp_path / "voters.csv").write_text(f"voter,key\neve,{key.hex()}\n")
        with pytest.raises(InputError, match="the key of eve must be 64 hex digits that stand for a key"):
            read_roster(tmp_path / "voters.csv")


def holds(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first line"),
        (f"voter,key\nann,{'02' * 16} {'02' * 16}\n", "the key of ann must be 64 hex digits"),
        (f"voter,key\nann,{'ab' * 32}\nbob,{'AB' * 32}\n", "bob has the key of ann"),
        *((f"voter,key\nann,{(P + y).to_bytes(32, 'little').hex()}\n", "stand for a key") for y in (3, 18)),
        *((f"voter,key\nann,{(P + y | 1 << 255).to_bytes(32, 'little').hex()}\n", "for a key") for y in (3, 18)),
        ("voter,key\n", "has no voter"),
        ("voter,key\nann,12\n", "the key of ann must be 64 hex digits"),
        (f"voter,key\nAnn,{'00' * 32}\n", "must be named by"),
        (f"voter,key\nann,{'01' * 32}\nann,{'02' * 32}\n", "ann has two keys"),
        (f"voter,key\nann,{'01' * 32}\nbob,{'01' * 32}\n", "bob has the key of ann"),
    ],
)
def test_rosters_that_cannot_be_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "voters.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_roster(tmp_path / "voters.csv")


def test_keys_are_secret_and_never_overwritten(tmp_path: Path) -> None:
    for make in (make_sealing_key, make_voter_key):
        path, _ = make("ann", tmp_path)
        assert path.stat().st_mode & 0o777 == 0o600 and len(path.read_bytes()) == 32
        with pytest.raises(InputError, match="never overwritten"):
            make("ann", tmp_path)
        with pytest.raises(InputError, match="small letters"):
            make("../x", tmp_path)


def test_a_full_disk_leaves_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(BytesIO):
        def __init__(self, descriptor: int, mode: str) -> None:
            os.close(descriptor)

        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ballot_keys, "open", Full, raising=False)
    for make in (make_sealing_key, make_voter_key):
        with pytest.raises(InputError, match=r"ann\.\w+: cannot be written \(No space left on device\); make room"):
            make("ann", tmp_path)
    assert not list(tmp_path.iterdir())
