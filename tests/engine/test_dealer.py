"""The dealer serves numbered requests of known kinds and bounded size; anything else ends the job with a line."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import numpy as np
import pytest

from smpc.cost import frame_bytes
from smpc.engine import dealer_requests as limits
from smpc.engine import public_json
from smpc.engine.crossproduct import Correlation, deal, mask, pad
from smpc.engine.dealer import Dealer
from smpc.engine.frames import Kind
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.products import ProductPlan
from smpc.ring import inner
from tests.harness import Participants, Sessions, cast_of, cause

PRODUCT = {"kind": "product", "number": 0, "rows": 3, "widths": {"p0": 1, "p1": 2}, "blocks": [["p0", "p1"]]}
SQUARE = {"kind": "square", "number": 0, "sizes": [[2]]}
ADDITIVE = {"kind": "additive", "number": 0, "sizes": [[2], [2]], "operation": "mul", "options": {}}
CONVOLUTION = {**ADDITIVE, "operation": "conv1d", "sizes": [[1, 1, 8], [1, 1, 3]], "options": {}}


def asked(*requests: Any, sender: str = "p0") -> dict[str, Any]:
    """Outcomes when `sender` asks the dealer this; p0 goes on to its goodbye."""

    def party(network: Network, _: Agreement) -> Any:
        if network.me == sender:
            for request in requests:
                public_json.send(network, "dealer", "request", request)
        network.finish()

    def serve(network: Network, agreement: Agreement) -> None:
        Dealer(network, agreement, ("p0", "p1")).serve()
        network.finish()

    everyone = Participants(cast_of(2))
    return everyone.outcomes({name: serve if name == "dealer" else party for name in everyone.cast.everyone})


BAD = {
    "unknown kind": {**PRODUCT, "kind": "shutdown"},
    "kind that is no text": {**PRODUCT, "kind": ["product"]},
    "no kind": {"number": 0},
    "number ahead": {**PRODUCT, "number": 1},
    "number as truth": {**SQUARE, "number": False},
    "number as fraction": {**SQUARE, "number": 0.0},
    "number as long text": {**SQUARE, "number": "\u202e9" * 300_000},
    "kind as long text": {**SQUARE, "kind": "\x1b[2J" * 100_000},
    "number as text": {**PRODUCT, "number": "0"},
    "rows zero": {**PRODUCT, "rows": 0},
    "rows huge": {**PRODUCT, "rows": limits.MAX_ROWS + 1},
    "rows as text": {**PRODUCT, "rows": "3"},
    "rows as fraction": {**PRODUCT, "rows": 1.5},
    "width zero": {**PRODUCT, "widths": {"p0": 0, "p1": 2}},
    "width huge": {**PRODUCT, "widths": {"p0": limits.MAX_WIDTH + 1, "p1": 2}},
    "widths as list": {**PRODUCT, "widths": [1, 2]},
    "rows as truth": {**PRODUCT, "rows": True},
    "rows of another table": {**PRODUCT, "rows": 4},
    "width as truth": {**PRODUCT, "widths": {"p0": True, "p1": 2}},
    "no widths": {**PRODUCT, "widths": {}, "blocks": []},
    "corrections huge": {**PRODUCT, "widths": {"p0": 1 << 13, "p1": (1 << 12) + 1}},
    "block of one": {**PRODUCT, "blocks": [["p0"]]},
    "block as text": {**PRODUCT, "blocks": ["p0"]},
    "unknown party": {**PRODUCT, "widths": {"p0": 1, "server": 2}, "blocks": [["p0", "server"]]},
    "block with itself": {**PRODUCT, "blocks": [["p0", "p0"]]},
    "block of three": {**PRODUCT, "blocks": [["p0", "p1", "p1"]]},
    "block twice": {**PRODUCT, "blocks": [["p0", "p1"], ["p1", "p0"]]},
    "block of lists": {**PRODUCT, "blocks": [[["p0"], ["p1"]]]},
    "block without width": {**PRODUCT, "widths": {"p0": 1}, "blocks": [["p0", "p1"]]},
    "blocks as text": {**PRODUCT, "blocks": "p0p1"},
    "one size missing": {**ADDITIVE, "sizes": [[2]]},
    "one size too many": {**SQUARE, "sizes": [[2], [2]]},
    "size negative": {**SQUARE, "sizes": [[-1]]},
    "size huge": {**SQUARE, "sizes": [[limits.MAX_ELEMENTS + 1]]},
    "size as product huge": {**SQUARE, "sizes": [[1 << 20, 1 << 20]]},
    "size of truth values": {**SQUARE, "sizes": [[True]]},
    "size with many dimensions": {**SQUARE, "sizes": [[1] * 9]},
    "size as number": {**SQUARE, "sizes": [3]},
    "unknown operation": {**ADDITIVE, "operation": "system"},
    "operation as list": {**ADDITIVE, "operation": ["mul"]},
    "unknown option": {**ADDITIVE, "options": {"out": 1}},
    "option huge": {**ADDITIVE, "options": {"padding": 1 << 20}},
    "options as list": {**ADDITIVE, "options": [1]},
    "shapes that do not fit": {**ADDITIVE, "sizes": [[2], [3]]},
    "option that does not fit": {**ADDITIVE, "options": {"stride": 1}},
    "nothing times nothing": {**ADDITIVE, "operation": "conv1d", "sizes": [[], []]},
    "no dimensions": {**ADDITIVE, "operation": "matmul", "sizes": [[], []]},
    "no stride": {**CONVOLUTION, "options": {"stride": 0}},
    "no groups": {**CONVOLUTION, "options": {"groups": 0}},
    "option as truth": {**CONVOLUTION, "options": {"stride": True}},
    "too many options": {**CONVOLUTION, "options": {"stride": [1, 1, 1]}},
    "convolution huge": {**CONVOLUTION, "sizes": [[1, 1, 1 << 20], [1, 1, 1 << 10]]},
    "words of all parties": {**ADDITIVE, "sizes": [[1 << 25], [1 << 25]]},
    "operation of another kind": {**SQUARE, "operation": "matmul"},
    "product of bits": {**ADDITIVE, "kind": "binary", "operation": "matmul", "sizes": [[2, 3], [3, 2]]},
    "length beyond all": {**SQUARE, "sizes": [[0, 10**30]]},
    "result huge": {**ADDITIVE, "operation": "matmul", "sizes": [[1 << 20, 1], [1, 1 << 20]]},
}


class Scripted:
    """A network on which these requests of p0 arrive, to run many dealers quickly."""

    step, me, farewell = "start", "dealer", ""

    def __init__(self, *requests: Any) -> None:
        self.requests = [np.frombuffer(json.dumps(request).encode(), dtype=np.uint8) for request in requests]
        self.answers: list[tuple[str, Any]] = []

    def sent(self) -> dict[str, int]:
        return {}

    def flush(self, room: int) -> None:
        """All is read at once."""

    def waiting_for(self, peer: str, label: str) -> bool:
        return bool(self.requests)

    def receive(self, *_: object, scripted: bool) -> Any:
        return self.requests.pop(0)

    def send(self, peer: str, label: str, array: Any) -> None:
        self.answers.append((peer, array))


def served(*requests: Any) -> list[tuple[str, Any]]:
    network: Any = Scripted(*requests)
    keys = {"p0": bytes(32), "p1": bytes(31) + b"1"}
    Dealer(network, Agreement(bytes(32), keys, {"rows": "3"}), ("p0", "p1")).serve()
    return list(network.answers)


def test_good_requests_are_answered_to_who_needs_the_correction() -> None:
    answers = served(PRODUCT, {**SQUARE, "number": 1}, {**ADDITIVE, "number": 2})
    assert [(peer, array.shape) for peer, array in answers] == [("p1", (1, 2)), ("p0", (2,)), ("p0", (2,))]


@pytest.mark.parametrize("request_", BAD.values(), ids=BAD.keys())
def test_a_request_outside_the_limits_ends_the_job_with_a_line(request_: Any) -> None:
    with pytest.raises(PeerError) as caught:
        served(request_)
    line = str(caught.value)
    assert re.match(r"p0: (request 0: |'request' \()[^\n]{10,240}$", line) and line.isprintable()


def test_an_ended_dealer_ends_the_job() -> None:
    outcomes = asked(BAD["unknown kind"])
    assert str(outcomes["dealer"]).startswith("p0: request 0: kind = 'shutdown', the dealer knows product, additive")
    assert cause(str(outcomes["server"])).startswith("p0: request 0: kind = 'shutdown'")


def test_a_replayed_request_is_refused() -> None:
    assert str(asked(PRODUCT, PRODUCT)["dealer"]).startswith("p0: request 1: number = 0, the dealer is at 1")


def test_only_the_first_party_is_served() -> None:
    outcomes = asked(PRODUCT, sender="p1")
    assert str(outcomes["dealer"]).startswith("p1 sent 'request uint8")


def test_who_waits_for_a_dealer_that_was_dismissed_learns_by_whom() -> None:
    def party(network: Network, _: Agreement) -> None:
        if network.me == "p1":
            network.receive("dealer", "correction", np.int64, (1, 2), scripted=False)
        network.finish()

    def serve(network: Network, agreement: Agreement) -> None:
        Dealer(network, agreement, ("p0", "p1")).serve()
        network.finish()

    everyone = Participants(cast_of(2))
    outcomes = everyone.outcomes({name: serve if name == "dealer" else party for name in everyone.cast.everyone})
    wanted = "dealer ended its job (p0 said goodbye to it) while p1 waits for 'correction': it ran another script"
    assert {cause(str(outcome)) for outcome in outcomes.values()} == {wanted}


def test_a_request_is_the_first_partys_only_message() -> None:
    def party(network: Network, _: Agreement) -> None:
        if network.me == "p0":
            network.send("dealer", "masked columns", np.zeros((2, 2), dtype=np.int64))
        network.finish()

    def serve(network: Network, agreement: Agreement) -> None:
        Dealer(network, agreement, ("p0", "p1")).serve()

    everyone = Participants(cast_of(2))
    outcomes = everyone.outcomes({name: serve if name == "dealer" else party for name in everyone.cast.everyone})
    assert "p0 is out of step: it sent 'masked columns int64 (2, 2)'" in str(outcomes["dealer"])


def test_rows_that_nobody_stated_are_the_first_partys_to_say() -> None:
    assert str(asked({**PRODUCT, "rows": 4})["dealer"]) == "None"


def test_a_product_without_blocks_costs_nothing() -> None:
    """Else a first party could keep the dealer busy with masks that nobody uses."""
    assert served({**PRODUCT, "widths": {"p0": 1}, "blocks": []}) == []
    plan = ProductPlan(1 << 40, {"p0": 1, "p1": 1}, ())
    assert deal(plan, 0, {"p0": bytes(32), "p1": bytes(32)}) == {}


def test_no_request_is_answered_before_the_last_answers_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first party that asks and does not read would fill the dealer's memory."""
    monkeypatch.setattr("smpc.engine.dealer.MAX_WAITING", 1 << 20)
    size = 1 << 18  # 2 MiB
    asked, told = threading.Event(), threading.Event()

    def first(network: Network, _: Agreement) -> None:
        network._links["dealer"]._backlog = 1 << 62  # reads nothing
        network.deadline = 0.1
        for number in range(20):
            public_json.send(network, "dealer", "request", {**SQUARE, "number": number, "sizes": [[size]]})
        asked.set()
        told.wait(20)

    def serve(network: Network, agreement: Agreement) -> int:
        asked.wait(20)
        network.patience, network.deadline = 0.5, 0.1
        dealer = Dealer(network, agreement, ("p0", "p1"))
        try:
            with pytest.raises(PeerError, match=r"^p0 did not take what dealer sent it within 0.5 s at 'request"):
                dealer.serve()
        finally:
            told.set()
        return dealer._number

    everyone = Participants(cast_of(2))
    work = {name: lambda network, _: told.wait(20) for name in ("p1", "server")} | {"p0": first, "dealer": serve}
    answered = everyone.outcomes(work)["dealer"]
    everyone.close(RuntimeError())
    assert answered < 10


def test_its_report_is_what_the_sockets_counted() -> None:
    def serve(network: Network, agreement: Agreement) -> Any:
        before = network.sent()
        dealer = Dealer(network, agreement, ("p0", "p1"))
        dealer.serve()
        network.flush()
        return before, network.sent(), dealer.report()

    def party(network: Network, _: Agreement) -> None:
        if network.me == "p0":
            public_json.send(network, "dealer", "request", PRODUCT)
        if network.me == "p1":
            network.receive("dealer", "correction", np.int64, (1, 2), scripted=False)
        if network.me != "server":
            network._post(network._links["dealer"], Kind.BYE, "goodbye", 0, None)

    everyone = Participants(cast_of(2))
    before, after, report = everyone.run(dict.fromkeys(everyone.cast.parties, party) | {"dealer": serve})["dealer"]
    everyone.close(RuntimeError())
    assert report.party == "dealer" and report.handshake_bytes == before
    assert report.bytes_sent == {name: after[name] - before[name] for name in after}
    assert report.bytes_sent["p1"] >= frame_bytes("correction", 2, 16) and report.bytes_sent["server"] < 100
    assert report.messages_sent == {"p0": 1, "p1": 2, "server": 1}  # the hello, and the correction
    assert 0 < report.seconds["correlated randomness"] <= report.seconds["total"]


def test_corrections_are_the_product_of_the_masks_less_the_pad() -> None:
    rows, widths = 5, {"p0": 2, "p1": 3, "p2": 1}
    plan = ProductPlan.gram(rows, widths)
    with Sessions(3) as running:

        def task(s: Any) -> Any:
            if not s.is_party:
                return {}
            return [Correlation.receive(s.correlate(plan), s.network, "dealer") for _ in range(2)]

        given = running.run(task)
        seeds = {name: s._seed for name, s in running.sessions.items() if s.is_party}
    for number in range(2):
        masks = {name: mask(seeds[name], number, slice(0, rows), width) for name, width in widths.items()}
        for k, l in plan.blocks:
            wanted = inner(masks[k], masks[l]) - pad(seeds[k], number, (k, l), plan)
            assert np.array_equal(given[l][number][k, l], wanted)
            assert (k, l) not in given[k][number]


def test_all_masks_and_pads_of_a_job_differ() -> None:
    plan = ProductPlan(4, {"p0": 3, "p1": 3, "p2": 3}, (("p0", "p1"), ("p0", "p2"), ("p1", "p2")))
    drawn = [
        words.tobytes()
        for seed in (bytes(32), bytes(31) + b"\x01")
        for number in (0, 1, 11)
        for words in (
            *(mask(seed, number, slice(start, start + 3), 3) for start in (0, 1, 11)),
            *(pad(seed, number, block, plan) for block in (*plan.blocks, ("p1", "p0"))),
        )
    ]
    assert len(set(drawn)) == len(drawn)
