"""Streams: neither end gets ahead, however many the rows; sizes are as the formulas say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smpc.bgn import upload
from smpc.bgn.curve import G1, G2
from smpc.bgn.estimate import Estimate, UnitCosts
from smpc.bgn.upload import groups_of, upload_bytes
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


def sent_by(party: str, answers: int) -> Network:
    network, (k, l) = Network(party, answers), parties()
    encryptors = {G1: k.encryptor, G2: l.encryptor}
    table = columns(1, PLAN.widths[party], PLAN.rows, 9)
    upload.upload(network, "server", PLAN, table, encryptors, RANDOM)  # type: ignore[arg-type]
    return network


@pytest.mark.parametrize("answers", [0, 1])
def test_a_party_is_two_messages_ahead_at_most(answers: int) -> None:
    network, (k, l) = Network("ann", answers), parties()
    with pytest.raises(Silent):
        upload.upload(
            network,  # type: ignore[arg-type]
            "server",
            PLAN,
            columns(1, 2, PLAN.rows, 9),
            {G1: k.encryptor, G2: l.encryptor},
            RANDOM,
        )
    assert [array.shape for array in network.sent] == [(2, 2, 256, 48)] * (2 + answers)


def test_first_between_and_last_encrypt_once_whatever_the_number_of_pairs() -> None:
    assert groups_of(PLAN, "ann") == [G1]
    assert groups_of(PLAN, "bob") == [G1, G2]
    assert groups_of(PLAN, "cid") == [G2]
    for party in PLAN.widths:
        network = sent_by(party, 3)
        body = sum(array.nbytes for array in network.sent)
        assert body == PLAN.rows * PLAN.widths[party] * {"ann": 96, "bob": 288, "cid": 192}[party]
        assert body < upload_bytes(PLAN, party) < 1.01 * body


def test_estimates_are_the_formulas() -> None:
    model = Estimate(PLAN, UnitCosts(1, 2, 3, 5, 7, 11, 13, 17, 19))
    assert [model.encryption(party) for party in PLAN.widths] == [1100 * 2, 1100 * 3, 1100 * 3 * 2]
    sums = 2 * 1 + 2 * 3 + 1 * 3
    assert model.server() == 1100 * (2 * 3 + 1 * (3 + 5) + 3 * 5 + 7 * sums) + 11 * sums
    assert [model.opening(party) for party in PLAN.widths] == [8 * 13, 2 * 36 + 3 * 13, 9 * 36]
    assert model.server_bytes() == sums * 4 * 576
    assert model.upload_bytes("ann") == upload_bytes(PLAN, "ann")
    larger = Estimate(ProductPlan.gram(2200, dict(PLAN.widths)), model.units)
    for party in PLAN.widths:
        assert larger.opening(party) == model.opening(party)
        assert larger.opening_bytes(party) == model.opening_bytes(party) > 0
    assert np.isclose(larger.server() - 11 * sums, 2 * (model.server() - 11 * sums))
