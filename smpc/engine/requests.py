"""The numbered requests of a job to its dealer: no number, and so no mask, is used twice."""

from __future__ import annotations

from collections.abc import Sequence

from smpc.engine import public_json
from smpc.engine.network import Network


class Requests:
    """Every party counts; the first party sends."""

    def __init__(self, network: Network, parties: Sequence[str], dealer: str) -> None:
        self._network = network
        self.first = network.me == parties[0]
        self._dealer = dealer
        self._next = 0

    def send(self, kind: str, **fields: object) -> int:
        """Make the next request; its number."""
        number = self._next
        self._next += 1
        if self.first:
            public_json.send(self._network, self._dealer, "request", {"kind": kind, "number": number, **fields})
        return number
