"""A product's stream: a slow reader makes nobody queue its table; whoever waits for it receives meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from smpc import products
from smpc.engine import crossproduct
from smpc.engine.crossproduct import Correlation, multiply, pad
from smpc.engine.handshake import Agreement
from smpc.engine.link import Link
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.products import MASKED, ProductPlan
from smpc.ring import inner
from tests.harness import Participants, Sessions, cast_of
from tests.support import held

ROWS, WIDTH = 1 << 20, 4  # 32 MiB a table: more than the sockets' buffers
PLAN = ProductPlan(ROWS, {"p0": WIDTH, "p1": WIDTH}, (("p0", "p1"),))
SEED = bytes(32)
X = np.arange(ROWS * WIDTH).reshape(WIDTH, ROWS)
Work = Callable[[Network, Agreement], Any]


class Queue:
    """The most that p0 had queued for p1."""

    most = 0

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        real = Link.post

        def post(link: Link, *arguments: Any) -> None:
            real(link, *arguments)
            if link.peer == "p1":
                self.most = max(self.most, link.waiting)

        patch.setattr(Link, "post", post)


def honest(network: Network, _: Agreement) -> Any:
    """p0's shares; it comes before p1 and needs no correction."""
    network.enter("product")
    return multiply(network, "dealer", SEED, Correlation(0, PLAN, {}), X)


def sends_and_reads_late(reads: threading.Event, sent: threading.Event) -> Work:
    """Its own blocks, all at once; what p0 sends it stays unread until `reads`."""

    def work(network: Network, _: Agreement) -> int:
        network.enter("product")
        link = network._links["p0"]
        link._backlog += 1 << 62
        for rows in PLAN.row_blocks():
            network.send("p0", MASKED, np.ones((WIDTH, rows.stop - rows.start), np.int64), round_=network.round + 1)
        network.flush()
        sent.set()
        reads.wait(20)
        link._backlog -= 1 << 62
        blocks = [network.receive("p0", MASKED, np.int64, None) for _ in PLAN.row_blocks()]
        return sum(block.shape[1] for block in blocks)

    return work


def test_a_partner_that_reads_late_costs_a_few_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, sent, queue = threading.Event(), threading.Event(), Queue()
    queue.watch(monkeypatch)
    threading.Timer(1.0, reads.set).start()  # a party that queues all it has would have done so by then
    with Participants(cast_of(2, dealer=False)) as everyone:
        outcomes = everyone.run({"p0": honest, "p1": sends_and_reads_late(reads, sent)})
    block = products.BLOCK_BYTES + 1000
    assert 0 < queue.most <= crossproduct._UNREAD + block < 9 << 20
    assert outcomes["p1"] == ROWS
    expected = inner(X, np.ones((WIDTH, ROWS), np.int64)) + pad(SEED, 0, ("p0", "p1"), PLAN)
    assert np.array_equal(outcomes["p0"]["p0", "p1"], expected)


def test_who_waits_for_a_reader_takes_in_what_comes_meanwhile() -> None:
    """All of p1's blocks arrive while p0 cannot send: two that are both full never wait for each other."""
    reads, sent = threading.Event(), threading.Event()
    with Participants(cast_of(2, dealer=False)) as everyone:
        running = everyone.start({"p0": honest, "p1": sends_and_reads_late(reads, sent)})
        arrived = sent.wait(20)
        assert not running["p0"].done()
        reads.set()
        assert arrived and running["p1"].result(20) == ROWS
        assert ("p0", "p1") in running["p0"].result(20)


def test_a_partner_that_never_reads_is_named() -> None:
    reads, sent = threading.Event(), threading.Event()

    def impatient(network: Network, agreement: Agreement) -> Any:
        network.patience = 0.5
        network.deadline = 0.1  # how long it tries to tell p1
        try:
            return honest(network, agreement)
        finally:
            reads.set()

    everyone = Participants(cast_of(2, dealer=False))
    outcome = everyone.outcomes({"p0": impatient, "p1": sends_and_reads_late(reads, sent)})["p0"]
    everyone.close(RuntimeError())
    assert isinstance(outcome, PeerError)
    assert str(outcome) == "p1 did not take what p0 sent it within 0.5 s at 'product'"


@pytest.mark.parametrize("unread", [0, 1 << 16])
def test_everybody_waits_for_everybody_and_nobody_for_ever(unread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossproduct, "_UNREAD", unread)
    rng = np.random.default_rng(1)
    columns = {f"p{i}": rng.integers(-5, 6, (2, 300_000)) for i in range(3)}

    def gram(s: Any) -> Any:
        shared = s.gram(held(s, columns), rows=300_000, widths=dict.fromkeys(columns, 2), bits=4)
        return s.reveal(shared, to="server", message="all", unprotected=True)._value

    with Sessions(3) as sessions:
        opened = sessions.run(gram)["server"]
    every = np.vstack([np.full((1, 300_000), 16), *columns.values()])
    assert np.array_equal(opened, every @ every.T)
