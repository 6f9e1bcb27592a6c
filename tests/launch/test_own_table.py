"""A party before it computes: its table is checked before any connection, and its ids are told to nobody."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from launch.cli import main
from launch.job import load_job
from launch.participant import Endpoints, take_part, with_own_account
from launch.progress import Progress
from launch.tables.table import Table
from launch.tasks.functional import FunctionalTask
from launch.tasks.own_table import compare_ids
from smpc.cast import Cast
from smpc.engine.handshake import Agreement, derive
from smpc.engine.tls import Identity
from smpc.errors import InputError, PeerError
from tests.launch.jobs import valid_job, write_job

CAST = Cast(("a", "b"))
KEY = bytes(32)


def logistic(folder: Path, labels: str) -> Path:
    job = valid_job()
    job["job"]["loss"] = "logistic"
    job["party"][1]["columns"]["y"] = [0, 1]
    (folder / "a.csv").write_text("person,u,v\n1,0,0\n2,1,1\n3,1,2\n")
    (folder / "b.csv").write_text(
        "person,w,y\n" + "".join(f"{i},1,{label}\n" for i, label in enumerate(labels.split(), 1))
    )
    return write_job(folder, job)


def test_labels_that_the_loss_cannot_use_are_told_before_any_connection(tmp_path: Path) -> None:
    job = load_job(logistic(tmp_path, "0 0.5 0.25"))

    def listener() -> Any:
        raise AssertionError("connected with labels that are no labels")

    identity = Identity("b", tmp_path / "b.key", tmp_path / "b.crt")
    with pytest.raises(InputError, match="column y: 2 labels are neither 0 nor 1"):
        take_part(job, identity, Endpoints({}, {}), listener, tmp_path / "out", Progress("b", None))
    task = load_job(logistic(tmp_path, "0 1 1")).task
    assert isinstance(task, FunctionalTask)
    assert [task.prepare(name).facts for name in ("a", "b", "server")] == [{"rows": "3"}, {"rows": "3"}, {}]


class Wire:
    """Two ends of the messages that compare_ids sends; `answer` is what the other end says to what it was told."""

    step = ""

    def __init__(self, me: str, peer: Wire | None = None) -> None:
        self.me = me
        self.peer = peer
        self.told: list[bytes] = []
        self.ready = threading.Event()

    def send(self, peer: str, label: str, array: Any) -> None:
        assert self.peer is not None
        self.peer.told.append(array.tobytes())
        self.peer.ready.set()

    def receive(self, peer: str, label: str, dtype: Any, shape: Any) -> Any:
        assert self.ready.wait(10)
        return np.frombuffer(self.told.pop(0), dtype=dtype)


def agreement(peer: str) -> Agreement:
    return Agreement(b"", {peer: derive(KEY, "job")}, {})


def of(ids: list[int]) -> Table:
    return Table(pa.array(ids, pa.int64()), None)  # type: ignore[arg-type]  # columns are not looked at


def pair() -> tuple[Any, Any]:
    one, two = Wire("a"), Wire("b")
    one.peer, two.peer = two, one
    return one, two


@pytest.mark.parametrize("other", [[1, 2, 3], [1, 2, 4], [1, 2]])
def test_ids_are_compared(other: list[int]) -> None:
    one, two = pair()
    outcomes: list[Exception | None] = []

    def run(wire: Any, peer: str, ids: list[int]) -> None:
        try:
            compare_ids(wire, agreement(peer), CAST, of(ids))
            outcomes.append(None)
        except PeerError as error:
            outcomes.append(error)

    threads = [
        threading.Thread(target=run, args=(one, "b", [1, 2, 3])),
        threading.Thread(target=run, args=(two, "a", other)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [isinstance(outcome, PeerError) for outcome in outcomes] == [other != [1, 2, 3]] * 2


def test_a_digest_sent_back_is_no_proof_of_the_same_ids() -> None:
    one = Wire("a")
    one.peer = one  # whatever a tells b comes back to a
    with pytest.raises(PeerError, match="a and b do not hold the same ids"):
        compare_ids(one, agreement("b"), CAST, of([1, 2, 3]))  # type: ignore[arg-type]


def test_a_party_says_itself_what_is_charged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = logistic(tmp_path, "0 1 1")
    job = with_own_account(load_job(path), "b", tmp_path / "mine.db", "patients")
    assert isinstance(job.task, FunctionalTask)
    assert [(p.ledger, p.data_set) for p in job.task.parties] == [(None, "a"), (tmp_path / "mine.db", "patients")]
    assert job.public_facts() == load_job(path).public_facts()
    kept = with_own_account(load_job(path), "b", tmp_path / "mine.db", None)
    assert isinstance(kept.task, FunctionalTask) and kept.task.parties[1].data_set == "b"
    with pytest.raises(InputError, match="server brings no table"):
        with_own_account(job, "server", tmp_path / "mine.db", None)
    assert main(["party", str(path), "--as", "b", "--out", str(tmp_path / "out"), "--data-set", "patients"]) == 1
    assert "names an account of --ledger" in capsys.readouterr().err
