"""Byte counters against formulas and against the kernel's own."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

import numpy as np
import pytest

from smpc.cost import frame_bytes, product_bytes
from smpc.engine.handshake import Agreement
from smpc.engine.link import Link
from smpc.engine.network import Network
from smpc.products import ProductPlan
from tests.harness import ArraySession, Participants, Sessions, cast_of

TCP_INFO_BYTES_ACKED = 120  # offset of tcpi_bytes_acked in Linux's struct tcp_info


def kernel_bytes(link: Link) -> int:
    """What the peer's kernel has acknowledged on this connection, the connection's own start included."""
    if not hasattr(socket, "TCP_INFO"):
        pytest.skip("no TCP_INFO on this system")
    info = link.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    if len(info) < TCP_INFO_BYTES_ACKED + 8:
        pytest.skip("this kernel counts no bytes")
    return int(struct.unpack_from("<Q", info, TCP_INFO_BYTES_ACKED)[0])


@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 10, 1 << 13, (1 << 13) + 1, 1 << 17, 1 << 20])
def test_a_message_costs_what_its_formula_says_and_the_kernel_counts(size: int) -> None:
    times = 3

    def sender(network: Network, _: Agreement) -> tuple[int, int]:
        network.receive("p0", "ready", np.uint8, (0,))
        link = network._links["p0"]
        before = network.sent()["p0"], kernel_bytes(link)
        for _ in range(times):
            network.send("p0", "some columns", np.zeros(size))
        network.receive("p0", "got it", np.uint8, (0,))
        return network.sent()["p0"] - before[0], kernel_bytes(link) - before[1]

    def receiver(network: Network, _: Agreement) -> None:
        network.send("p1", "ready", np.zeros(0, np.uint8))
        for _ in range(times):
            network.receive("p1", "some columns", np.float64, (size,))
        network.send("p1", "got it", np.zeros(0, np.uint8))

    with Participants(cast_of(2, dealer=False), deadline=60.0) as everyone:
        counted, acknowledged = everyone.run({"p0": receiver, "p1": sender})["p1"]
    formula = times * frame_bytes("some columns", 1, 8 * size)
    assert abs(counted - formula) <= formula / 100 + 22
    assert abs(acknowledged - counted) <= counted / 100 + 1


@pytest.mark.parametrize(("rows", "widths"), [(20_000, (3, 1, 5)), (70_000, (4, 4)), (9, (2, 2, 2, 2))])
def test_products_send_what_their_formula_says(rows: int, widths: tuple[int, ...]) -> None:
    with Sessions(len(widths)) as running:
        plan = ProductPlan.gram(rows, dict(zip(running.cast.parties, widths, strict=True)))

        def task(s: ArraySession) -> Any:
            if not s.is_party:
                return None
            s.multiply(s.correlate(plan), np.zeros((plan.widths[s.me], rows), dtype=np.int64))
            return s.report()

        reports = running.run(task)
    for party, width in plan.widths.items():
        report = reports[party]
        assert report.predicted == {"product": product_bytes(plan, party)}
        assert report.warnings() == []
        online = sum(report.bytes_sent[name] for name in plan.partners(party))
        assert online == report.counted["product"]
        if rows * width >= 10**5:
            assert report.counted["product"] <= 1.05 * rows * width * 8 * (len(widths) - 1)
        assert report.rounds == (2 if party == "p0" else 3)  # hello, masked columns in one wave; request, correction


def test_a_wrong_formula_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "smpc.engine.session.product_bytes", lambda plan, party: round(1.02 * product_bytes(plan, party))
    )
    with Sessions(2) as running:
        plan = ProductPlan.gram(20_000, {"p0": 1, "p1": 1})

        def task(s: ArraySession) -> Any:
            if s.is_party:
                s.multiply(s.correlate(plan), np.zeros((1, 20_000), dtype=np.int64))
            return s.report().warnings()

        warnings = running.run(task)
    assert len(warnings["p0"]) == len(warnings["p1"]) == 1
    assert warnings["server"] == []


def test_waits_for_messages_and_for_readers_are_counted() -> None:
    pause, sent, waiting = 0.5, threading.Event(), []

    def hold() -> None:
        """A pause that starts once p0 waits, however late a busy machine lets it."""
        end = time.monotonic() + 20
        while waiting[0]._service.waits_for != "p1" and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(pause)

    def slow(network: Network, _: Agreement) -> None:
        with network._service._turn:  # nothing is read meanwhile
            sent.wait(20)
            hold()
        network.receive("p0", "much", np.float64, (1 << 22,))
        hold()
        network.send("p0", "x", np.zeros(1))
        hold()
        network.send("p0", "x", np.zeros(1))

    def task(network: Network, _: Agreement) -> list[float]:
        waiting.append(network)
        steps = [
            network.flush,
            lambda: network.waiting_for("p1", "x"),
            lambda: network.receive("p1", "x", np.float64, (1,)),
            lambda: network.receive("p1", "x", np.float64, (1,)),
            network.flush,
        ]
        network.send("p1", "much", np.zeros(1 << 22))
        sent.set()
        waits = []
        for step in steps:
            before = network.waited + network.busy  # both: a busy machine writes slowly what the sockets still take
            step()
            waits.append(network.waited + network.busy - before)
        return waits

    with Participants(cast_of(2, dealer=False), deadline=60.0) as everyone:
        reading, coming, there, again, nothing = everyone.run(
            {"p0": task, "p1": slow, "server": lambda network, _: None}
        )["p0"]
    assert min(reading, coming, again) > pause / 2 > max(there, nothing)
