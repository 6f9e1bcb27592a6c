"""An ensemble job from keys to model on the command line: mixed scikit-learn voters over the network."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from launch.ballot_keys import make_sealing_key, make_voter_key, read_roster
from launch.job import load_job
from launch.keys import make_keys
from launch.tasks.ensemble import EnsembleTask
from launch.vote import Account
from launch.vote import vote as cast_vote
from mechanisms.guarantee import INFINITE, Guarantee
from mechanisms.ledger import BudgetError, Ledger
from smpc.errors import InputError, SmpcError

SAMPLES = 60
VOTERS = ("logistic", "tree", "neighbours", "bayes", "constant")
SMPC = [sys.executable, "-m", "launch"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (count, 2))
    return x, np.where(x[:, 0] + x[:, 1] > 0, "up", "down")


def write_job(folder: Path, *, release: str = "statistic", seconds: int = 300, extra: str = "") -> Path:
    """A job of two compute parties, with all keys and the samples, in `folder`."""
    x, _ = points(SAMPLES, 1)
    pq.write_table(pa.table({"id": list(range(SAMPLES)), "a": x[:, 0], "b": x[:, 1]}), folder / "aux.parquet")
    parties = ""
    for party in ("ann", "bob"):
        make_keys(party, folder)
        _, public = make_sealing_key(party, folder)
        parties += f'[[party]]\nname = "{party}"\ncertificate = "{party}.crt"\n'
        parties += f'ballots = "127.0.0.1:{free_port()}"\nsealing_key = "{public}"\n'
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
        assert second.returncode == 1 and second.stderr == "smpc: ann: ballot of logistic refused: a second ballot\n"
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
        ("tree.joblib", "nobody", "is no voter in"),
        ("tree.joblib", "tree", "vote while the job runs"),
    ):
        with pytest.raises(SmpcError, match=message) as caught:
            cast_vote(job, voter, tmp_path / model, table=None, key=tmp_path / f"{voter}.voter", seconds=0)
        assert "\n" not in str(caught.value)
    account = Account(tmp_path / "ledger.sqlite", "readings")
    Ledger(account.ledger).cap("readings", "party", "30", "0")
    with pytest.raises(SmpcError, match="vote while the job runs"):  # charged, whether or not it arrives
        cast_vote(job, "tree", tmp_path / "tree.joblib", key=tmp_path / "tree.voter", account=account, seconds=0)
    with pytest.raises(BudgetError):
        cast_vote(job, "tree", tmp_path / "tree.joblib", key=tmp_path / "tree.voter", account=account, seconds=0)
    with pytest.raises(InputError, match="this key is not the one"):
        cast_vote(job, "tree", tmp_path / "tree.joblib", table=None, key=tmp_path / "bayes.voter", seconds=0)


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
    hashes = {task.poll(task.table.load()).job}
    text = path.read_text()
    for old, new in (
        ("epsilon = 20", "epsilon = 19"),
        ('"slope"', '"other"'),
        ("a = [-3, 3]", "a = [-4, 3]"),
        ('["down", "up"]', '["up", "down"]'),
        ("seconds = 300", "seconds = 301"),
        ('"statistic"', '"soft"'),
    ):
        path.write_text(text.replace(old, new))
        other = load_job(path).task
        assert isinstance(other, EnsembleTask)
        hashes.add(other.poll(other.table.load()).job)
    path.write_text(text)
    roster = tmp_path / "voters.csv"
    roster.write_text("\n".join(roster.read_text().splitlines()[:-1]))
    fewer = load_job(path).task
    assert isinstance(fewer, EnsembleTask)
    hashes.add(fewer.poll(fewer.table.load()).job)
    assert len(hashes) == 8


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('classes = ["down", "up"]', 'classes = ["down"]', "two or more different names"),
        ('classes = ["down", "up"]', 'classes = ["up", "up"]', "two or more different names"),
        ('release = "statistic"', 'release = "counts"', "one of statistic, soft, majority"),
        ("seconds = 300", "seconds = 0", "a number from 1 to 3600"),
        ('ballots = "127.0.0.1', 'ballots = "127.0.0.1:x', "host:port"),
        ('sealing_key = "', 'sealing_key = "zz', "64 hex digits"),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first line"),
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
