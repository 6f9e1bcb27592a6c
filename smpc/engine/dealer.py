"""The dealer: makes correlated randomness from seeds it shares with each party, and sees no data message.

It accepts named requests of bounded size from the first party, answers the party that needs the correction, and ends
when every participant has said goodbye.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from smpc.cost import CostReport
from smpc.engine import public_json
from smpc.engine.crossproduct import deal
from smpc.engine.dealer_requests import PRODUCT, Refused, Request, kind_of, product_request, tuple_request
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError

MAX_WAITING = 1 << 28  # bytes of corrections that a party has not read: no further request is answered before


class Dealer:
    """Serves the parties of one job."""

    def __init__(self, network: Network, agreement: Agreement, parties: Sequence[str]) -> None:
        self._network = network
        self._agreement = agreement
        self._parties = tuple(parties)
        self._seeds = {name: agreement.key(name, "dealer") for name in parties}
        self._number = 0
        self._seconds = 0.0
        self._start = perf_counter()
        self._cost = CostReport(network.me, handshake_bytes=network.sent())

    def serve(self) -> None:
        """Answer requests until the first party says goodbye. PeerError, one line, at the first it refuses."""
        first = self._parties[0]
        while self._network.waiting_for(first, "request"):
            request = public_json.receive_facts(self._network, first, "request", scripted=False)
            start = perf_counter()
            self._network.step = f"request {self._number}"
            try:
                self._answer(request)
            except Refused as error:
                raise PeerError(f"{first}: request {self._number}: {error}") from None
            self._number += 1
            self._seconds += perf_counter() - start
            self._network.flush(MAX_WAITING)
        self._network.farewell = f"{first} said goodbye to it"

    def report(self) -> CostReport:
        """The costs so far; handshake bytes are counted apart."""
        self._network.account(self._cost)
        self._cost.seconds = {"correlated randomness": self._seconds, "total": perf_counter() - self._start}
        return self._cost

    def _answer(self, request: Request) -> None:
        kind = kind_of(request, self._number)
        self._network.step = f"request {self._number} ({kind})"
        if kind == PRODUCT:
            plan = product_request(request, self._parties, self._agreement.facts.get("rows"))
            for (_, l), correction in deal(plan, self._number, self._seeds).items():
                self._network.send(l, "correction", correction)
        else:
            self._tuple(kind, request)

    def _tuple(self, kind: str, request: Request) -> None:
        from smpc.engine.tuples import correction, product_shape  # imports torch and crypten: only here

        wanted = tuple_request(kind, request)
        sizes, operation, options = wanted.sizes, wanted.operation, wanted.options
        seeds = [self._seeds[name] for name in self._parties]
        try:
            result = product_shape(sizes, operation, options) if len(sizes) == 2 else sizes[0]
            wanted.check_work(result, len(seeds))
            answer = correction(kind, seeds, self._number, sizes, operation, options)
        except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError):  # torch's, of what does not fit
            raise Refused(f"{operation} of {sizes} with {options} is no product") from None
        self._network.send(self._parties[0], "correction", answer)
