"""What a dealer accepts: requests of known kinds, about public facts of the job, of bounded size and work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

from smpc.engine.frames import MAX_PAYLOAD
from smpc.products import ProductPlan

PRODUCT = "product"
TUPLES = ("additive", "square", "binary", "wraps", "B2A")
OPERATIONS = ("mul", "matmul", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")
CONVOLUTION = ("stride", "padding", "output_padding", "dilation", "groups")
MAX_ROWS = 1 << 40
MAX_WIDTH = 1 << 14
MAX_CORRECTIONS = MAX_PAYLOAD  # bytes for one request
MAX_ELEMENTS = MAX_CORRECTIONS // 8
MAX_WORDS = 1 << 27  # that the dealer draws at once, for all parties
MAX_UNFOLDED = 1 << 26  # elements that a convolution may copy
MAX_OPTION = 1 << 10  # of a convolution: its padding makes memory, too
_MAX_DIMENSIONS = 8
_SHOWN = 60

Request = dict[str, object]
Shape = tuple[int, ...]


class Refused(Exception):
    """A request outside the limits; the message says which value, and what is allowed."""


@dataclass(frozen=True)
class TupleRequest:
    """A tuple of CrypTen's: `operation` and `options` say how two factors are multiplied."""

    kind: str
    sizes: tuple[Shape, ...]
    operation: str
    options: dict[str, int | Shape]

    def check_work(self, result: Shape, parties: int) -> None:
        """Refuse a tuple whose dependent value, of shape `result`, takes too much to make."""
        elements = [math.prod(shape) for shape in (*self.sizes, result)]
        if elements[-1] > MAX_ELEMENTS:
            raise Refused(f"its result has {elements[-1]} elements, at most {MAX_ELEMENTS}")
        if parties * sum(elements) > MAX_WORDS:
            raise Refused(f"it needs {parties * sum(elements)} words of all {parties} parties, at most {MAX_WORDS}")
        if self.operation.startswith("conv"):
            unfolded = max(elements[0], elements[-1]) * elements[1]
            if unfolded > MAX_UNFOLDED:
                raise Refused(f"its convolution unfolds to {unfolded} elements, at most {MAX_UNFOLDED}")


def kind_of(request: Request, number: int) -> str:
    """The kind of a request, which must be the dealer's next."""
    if not _is_whole(request.get("number"), number, number):
        raise Refused(f"number = {_shown(request.get('number'))}, the dealer is at {number}")
    kind = request.get("kind")
    if not isinstance(kind, str) or kind not in (PRODUCT, *TUPLES):
        raise Refused(f"kind = {_shown(kind)}, the dealer knows {PRODUCT}, {', '.join(TUPLES)}")
    return kind


def product_request(request: Request, parties: tuple[str, ...], agreed_rows: str | None) -> ProductPlan:
    """A product request. `agreed_rows` is how many rows the parties' tables have, where the handshake tells."""
    rows, widths, blocks = request.get("rows"), request.get("widths"), request.get("blocks")
    if not isinstance(rows, int) or not _is_whole(rows, 1, MAX_ROWS):
        raise Refused(f"rows = {_shown(rows)}, must be a whole number from 1 to {MAX_ROWS}")
    if agreed_rows is not None and str(rows) != agreed_rows:
        raise Refused(f"rows = {rows}, the parties' tables have {_shown(agreed_rows)}")
    if not isinstance(widths, dict) or not widths or not set(widths) <= set(parties):
        raise Refused(f"widths = {_shown(widths)}, must name parties of the job: {', '.join(parties)}")
    if not all(_is_whole(width, 1, MAX_WIDTH) for width in widths.values()):
        raise Refused(f"widths = {_shown(widths)}, each must be a whole number from 1 to {MAX_WIDTH}")
    pairs = {frozenset(pair) for pair in combinations(widths, 2)}
    if not isinstance(blocks, list) or not all(_is_pair(block) and frozenset(block) in pairs for block in blocks):
        raise Refused(f"blocks = {_shown(blocks)}, must be pairs of {', '.join(widths)}")
    if len({frozenset(block) for block in blocks}) != len(blocks):
        raise Refused(f"blocks = {_shown(blocks)}, must have each pair once")
    size = 8 * sum(widths[k] * widths[l] for k, l in blocks)
    if size > MAX_CORRECTIONS:
        raise Refused(f"its corrections have {size} bytes, at most {MAX_CORRECTIONS}; use fewer columns")
    return ProductPlan(rows, widths, tuple((k, l) for k, l in blocks))


def tuple_request(kind: str, request: Request) -> TupleRequest:
    """A request for a tuple of CrypTen's."""
    sizes, operation, options = request.get("sizes"), request.get("operation", "mul"), request.get("options", {})
    wanted = 2 if kind in ("additive", "binary") else 1
    if not isinstance(sizes, list) or len(sizes) != wanted or not all(_is_shape(size) for size in sizes):
        raise Refused(
            f"sizes = {_shown(sizes)}, must be {wanted} of at most {_MAX_DIMENSIONS} lengths, {MAX_ELEMENTS} elements"
        )
    if operation not in (OPERATIONS if kind == "additive" else OPERATIONS[:1]):
        raise Refused(f"operation = {_shown(operation)}, not known for {kind}")
    known = CONVOLUTION if str(operation).startswith("conv") else ()
    if not isinstance(options, dict) or not set(options) <= set(known) or not all(map(_is_option, options.values())):
        raise Refused(f"options = {_shown(options)}, not known for {operation}, or not up to {MAX_OPTION}")
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    return TupleRequest(kind, tuple(tuple(size) for size in sizes), str(operation), settings)


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_pair(block: object) -> bool:
    return isinstance(block, list) and len(block) == 2 and all(isinstance(name, str) for name in block)


def _is_shape(size: object) -> bool:
    return (
        isinstance(size, list)
        and len(size) <= _MAX_DIMENSIONS
        and all(_is_whole(length, 0, MAX_ELEMENTS) for length in size)
        and math.prod(size) <= MAX_ELEMENTS
    )


def _is_option(value: object) -> bool:
    numbers = value if isinstance(value, list) else [value]
    return len(numbers) <= _MAX_DIMENSIONS and all(_is_whole(number, 0, MAX_OPTION) for number in numbers)


def _shown(value: object) -> str:
    """What a peer sent, fit for a line."""
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
