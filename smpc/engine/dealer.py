"""The dealer: makes correlated randomness from seeds it shares with each party, and sees no data message.

It accepts named requests of bounded size from the first party, answers the party that needs the correction, and ends
when every participant has said goodbye.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from time import perf_counter

from smpc.engine.crossproduct import deal
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.products import ProductPlan

MAX_ROWS = 1 << 40
MAX_WIDTH = 1 << 14
MAX_ELEMENTS = 1 << 25
MAX_OPTION = 1 << 10  # of a convolution: its padding makes memory, too
TUPLES = ("additive", "square", "binary", "wraps", "B2A")
OPERATIONS = ("mul", "matmul", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")
CONVOLUTION = ("stride", "padding", "output_padding", "dilation", "groups")


class Dealer:
    """Serves the parties of one job."""

    def __init__(self, network: Network, agreement: Agreement, parties: Sequence[str]) -> None:
        self._network = network
        self._parties = tuple(parties)
        self._seeds = {name: agreement.key(name, "dealer") for name in parties}
        self._number = 0
        self.seconds = 0.0

    def serve(self) -> None:
        """Answer requests until the first party says goodbye."""
        first = self._parties[0]
        while self._network.waiting_for(first, "request"):
            request = self._network.receive_facts(first, "request", scripted=False)
            if request.get("number") != self._number:
                raise PeerError(f"{first}: request number {request.get('number')!r}, the dealer is at {self._number}")
            kind = request.get("kind")
            self._network.step = f"request {self._number} ({kind})"
            start = perf_counter()
            if kind == "product":
                self._product(request)
            elif kind in TUPLES:
                self._tuple(str(kind), request)
            else:
                raise PeerError(
                    f"{first}: unknown request {str(kind)[:40]!r}; the dealer knows product, {', '.join(TUPLES)}"
                )
            self._number += 1
            self.seconds += perf_counter() - start

    def _product(self, request: dict[str, object]) -> None:
        plan = _plan(request, self._parties)
        for (_, l), correction in deal(plan, self._number, self._seeds).items():
            self._network.send(l, "correction", correction)

    def _tuple(self, kind: str, request: dict[str, object]) -> None:
        from smpc.engine.tuples import correction, product_shape  # imports torch and crypten: only here

        first = self._parties[0]
        sizes, operation, options = _tuple_request(kind, request, first)
        try:
            result = product_shape(sizes, operation, options) if len(sizes) == 2 else sizes[0]
        except (RuntimeError, TypeError, ValueError):
            raise PeerError(f"{first}: {operation} of {sizes} with {options} is no product") from None
        if math.prod(result) > MAX_ELEMENTS:
            raise PeerError(f"{first}: a {kind} request with a result of {result}, at most {MAX_ELEMENTS} elements")
        seeds = [self._seeds[name] for name in self._parties]
        self._network.send(first, "correction", correction(kind, seeds, self._number, sizes, operation, options))


def _plan(request: dict[str, object], parties: Sequence[str]) -> ProductPlan:
    """A product request, if it is one the dealer accepts."""
    rows, widths, blocks = request.get("rows"), request.get("widths"), request.get("blocks")
    allowed = {frozenset(pair) for pair in combinations(parties, 2)}
    if (
        not isinstance(rows, int)
        or not 1 <= rows <= MAX_ROWS
        or not isinstance(widths, dict)
        or not set(widths) <= set(parties)
        or not all(isinstance(width, int) and 1 <= width <= MAX_WIDTH for width in widths.values())
        or not isinstance(blocks, list)
        or not all(isinstance(block, list) and all(isinstance(name, str) for name in block) for block in blocks)
        or not all(frozenset(block) in allowed and set(block) <= set(widths) for block in blocks)
        or not all(len(block) == 2 for block in blocks)
        or len({frozenset(block) for block in blocks}) != len(blocks)
    ):
        raise PeerError(
            f"{parties[0]}: a product request outside the dealer's limits (rows <= {MAX_ROWS}, columns <= {MAX_WIDTH}, "
            "each block between two of the job's parties once)"
        )
    return ProductPlan(rows, widths, tuple((k, l) for k, l in blocks))


def _tuple_request(
    kind: str, request: dict[str, object], first: str
) -> tuple[list[tuple[int, ...]], str, dict[str, int | tuple[int, ...]]]:
    """A request for a tuple of CrypTen's, if it is one the dealer accepts."""
    sizes, operation, options = request.get("sizes"), request.get("operation", "mul"), request.get("options", {})
    wanted = 2 if kind in ("additive", "binary") else 1
    if (
        not isinstance(sizes, list)
        or len(sizes) != wanted
        or not all(_is_shape(size) for size in sizes)
        or operation not in OPERATIONS
        or not isinstance(options, dict)
        or not set(options) <= set(CONVOLUTION)
        or not all(_is_option([value] if isinstance(value, int) else value) for value in options.values())
    ):
        raise PeerError(
            f"{first}: a {kind} request outside the dealer's limits ({MAX_ELEMENTS} elements, {OPERATIONS})"
        )
    settings = {name: value if isinstance(value, int) else tuple(value) for name, value in options.items()}
    return [tuple(size) for size in sizes], str(operation), settings


def _is_shape(size: object) -> bool:
    return (
        isinstance(size, list)
        and len(size) <= 8
        and all(isinstance(length, int) and not isinstance(length, bool) and length >= 0 for length in size)
        and math.prod(size) <= MAX_ELEMENTS
    )


def _is_option(value: object) -> bool:
    return _is_shape(value) and isinstance(value, list) and all(number <= MAX_OPTION for number in value)
