"""What ended a job is told on with one prefix: who reported it first, and who passes it on."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smpc.engine.frames import Kind
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.reports import told
from smpc.errors import PeerError
from tests.harness import Participants, cast_of

NAMES = ("p0", "p1", "p2", "server", "dealer")


@given(
    st.text(st.characters(codec="ascii", categories=["L", "Nd", "P", "Zs"]), max_size=40).filter(
        lambda text: " reports" not in text
    ),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6),
)
def test_a_chain_of_tellers_leaves_one_prefix_that_names_its_first(text: str, tellers: list[str]) -> None:
    line = text
    for peer in tellers:
        line = told(NAMES, peer, line)
    assert all(name in line for name in tellers[1:])
    assert line.startswith(f"{tellers[0]} ") or f" {tellers[0]} " in line  # it spoke of itself
    assert line.count(" reports") <= 1 and line.endswith(text)
    assert len(line) <= len(text) + len("p0 reports by way of p1, p2, server, dealer: ")


@pytest.mark.parametrize(
    ("peer", "text", "line"),
    [
        ("p1", "p2: connection lost", "p1 reports: p2: connection lost"),
        ("p1", "p1 stopped at 'gram'", "p1 stopped at 'gram'"),
        ("p0", "p1 stopped at 'gram'", "p0 reports: p1 stopped at 'gram'"),
        ("p0", "p1 reports: p2: connection lost", "p1 reports by way of p0: p2: connection lost"),
        ("server", "p1 reports by way of p0: p2: lost", "p1 reports by way of p0, server: p2: lost"),
        ("p1", "p1 reports: p1 reports: x", "p1 reports: x"),
        ("p2", "p1 reports: p0 reports by way of p2: x", "p1 reports by way of p0, p2: x"),
        ("p0", "p0 reports by way of p1, p2: x", "p0 reports by way of p1, p2: x"),
        ("p2", "nobody reports: x", "p2 reports: nobody reports: x"),
        ("p2", "", "p2 reports: "),
    ],
)
def test_a_line_names_who_reports_and_who_passes_it_on(peer: str, text: str, line: str) -> None:
    assert told(NAMES, peer, text) == line


def test_a_report_crosses_a_job_with_one_prefix() -> None:
    """p1 tells p0 alone; p0 tells the server, which waits for p0."""

    def work(network: Network, _: Agreement) -> Any:
        if network.me == "p1":
            network._post(network._links["p0"], Kind.ABORT, "dealer reports: the moon is full", 0, None)
            return told.wait(20)
        return network.receive("p1" if network.me == "p0" else "p0", "x", np.int64, (1,))

    told = threading.Event()
    running = Participants(cast_of(2)).start(work)
    outcomes = {name: running[name].result(timeout=20) for name in ("p0", "server", "dealer")}
    told.set()
    assert str(outcomes["p0"]) == "dealer reports by way of p1: the moon is full"
    for name in ("server", "dealer"):
        assert re.fullmatch(r"dealer reports by way of p1, [a-z0-9, ]*: the moon is full", str(outcomes[name]))


def test_a_long_line_is_cut_where_it_is_told_and_shows_it() -> None:
    def work(network: Network, _: Agreement) -> Any:
        if network.me == "p1":
            raise PeerError("p0: " + "x" * 1000)
        return network.receive("p1", "x", np.int64, (1,))

    outcomes = Participants(cast_of(2, dealer=False)).outcomes(work)
    line = str(outcomes["server"])
    assert line.endswith("xxx...") and len(line) < 300
