"""Streams: neither end gets ahead, however many the rows; sizes are as the formulas say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smpc.bgn import server_products, upload
from smpc.bgn.curve import G1, G2
from smpc.bgn.estimate import Estimate, UnitCosts
from smpc.bgn.mode import Part
from smpc.bgn.server_products import groups_of
from smpc.bgn.upload import upload_bytes
from smpc.cast import Cast
from smpc.products import ProductPlan
from tests.bgn.support import RANDOM, columns, parties

PLAN = ProductPlan.gram(1100, {"ann": 2, "bob": 1, "cid": 3})


class Silent(Exception):
    """The server says nothing."""


class Network:
    """Counts what a party sends before it has to wait; `answers` times it is told to go on."""

    def __init__(self, me: str, answers: int) -> None:
        self.me, self.round, self.rows = me, 0, (0, 0)
        self.sent: list[Any] = []
        self._answers = answers

    def send(self, peer: str, label: str, array: Any, *, round_: int) -> None:
        assert (peer, label, round_) == ("server", upload.ENCRYPTED, 1)
        self.sent.append(array)

    def receive(self, *_: Any) -> None:
        if not self._answers:
            raise Silent
        self._answers -= 1


def sent_by(party: str, network: Network) -> Network:
    k, l = parties()
    part = Part(network, Cast(tuple(PLAN.widths), dealer=None), bytes(32), RANDOM)  # type: ignore[arg-type]
    own = {G1: k.encryptor, G2: l.encryptor}
    encryptors = {group: own[group] for group in groups_of(PLAN, party)}
    server_products.upload(part, PLAN, columns(1, PLAN.widths[party], PLAN.rows, 9), encryptors)
    return network


@pytest.mark.parametrize("answers", [0, 1])
def test_a_party_is_two_messages_ahead_at_most(answers: int) -> None:
    network = Network("ann", answers)
    with pytest.raises(Silent):
        sent_by("ann", network)
    assert [array.shape for array in network.sent] == [(2, 2, 256, 48)] * (2 + answers)


@pytest.mark.parametrize("rows", [1, 256, 257, 512, 513, 1100])
def test_a_party_is_told_to_go_on_as_often_as_it_waits(rows: int) -> None:
    plan = ProductPlan(rows, {"ann": 1, "bob": 1}, (("ann", "bob"),))
    network = Network("server", 0)
    network.send = lambda *message, **_: network.sent.append(message)  # type: ignore[method-assign]
    part = Part(network, Cast(("ann", "bob"), dealer=None), bytes(32), RANDOM)  # type: ignore[arg-type]
    messages = upload.message_rows(plan)
    for piece in messages:
        upload.ask_on(part, plan, ["ann"], piece)
    assert len(network.sent) == max(0, len(messages) - 2)
    assert network.rows == (rows, rows)


def test_first_between_and_last_encrypt_once_whatever_the_number_of_pairs() -> None:
    assert groups_of(PLAN, "ann") == [G1]
    assert groups_of(PLAN, "bob") == [G1, G2]
    assert groups_of(PLAN, "cid") == [G2]
    for party in PLAN.widths:
        network = sent_by(party, Network(party, 3))
        body = sum(array.nbytes for array in network.sent)
        assert body == PLAN.rows * PLAN.widths[party] * {"ann": 96, "bob": 288, "cid": 192}[party]
        assert body < upload_bytes(PLAN, party, groups_of(PLAN, party)) < 1.01 * body


@pytest.mark.parametrize("count", range(2, 9))
def test_uploads_do_not_grow_with_the_number_of_parties(count: int) -> None:
    plan = ProductPlan.gram(700, {f"p{i}": 2 for i in range(count)})
    sizes = {party: upload_bytes(plan, party, groups_of(plan, party)) for party in plan.widths}
    pair = ProductPlan.gram(700, {"p0": 2, "p1": 2})
    first, last = (upload_bytes(pair, party, groups_of(pair, party)) for party in ("p0", "p1"))
    assert list(sizes.values()) == [first, *[first + last] * (count - 2), last]


def test_estimates_are_the_formulas() -> None:
    model = Estimate(PLAN, UnitCosts(1, 2, 3, 5, 7, 11, 13, 17, 19))
    assert [model.encryption(party) for party in PLAN.widths] == [1100 * 2, 1100 * 3, 1100 * 3 * 2]
    sums = 2 * 1 + 2 * 3 + 1 * 3
    assert model.server() == 1100 * (2 * 3 + 1 * (3 + 5) + 3 * 5 + 7 * sums) + 11 * sums
    assert [model.opening(party) for party in PLAN.widths] == [8 * 13, 2 * 36 + 3 * 13, 9 * 36]
    assert model.server_bytes() == sums * 4 * 576
    assert model.upload_bytes("ann") == upload_bytes(PLAN, "ann", [G1])
    larger = Estimate(ProductPlan.gram(2200, dict(PLAN.widths)), model.units)
    for party in PLAN.widths:
        assert larger.opening(party) == model.opening(party)
        assert larger.opening_bytes(party) == model.opening_bytes(party) > 0
    assert np.isclose(larger.server() - 11 * sums, 2 * (model.server() - 11 * sums))
