"""What a joint operation costs, as a formula of public sizes, and what it did cost at the sockets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from smpc.engine.frames import HEADER
from smpc.products import MASKED, ProductPlan

RECORD_BYTES = 16384  # TLS 1.3
RECORD_OVERHEAD = 22  # header, content type, tag
SMALL_BYTES = RECORD_BYTES // 2  # an array up to this size travels in one record with its header
DIMENSION_BYTES = 8


def frame_bytes(label: str, dimensions: int, body: int) -> int:
    """Socket bytes of one message: frame header and array as TLS records, of which a small message needs but one."""
    head = HEADER.size + DIMENSION_BYTES * dimensions + len(label)
    return wire_bytes(head + body) if body <= SMALL_BYTES else wire_bytes(head) + wire_bytes(body)


def wire_bytes(size: int) -> int:
    """Bytes on the wire of so many bytes handed to TLS at once."""
    return size + RECORD_OVERHEAD * -(-size // RECORD_BYTES)


def product_bytes(plan: ProductPlan, party: str) -> int:
    """Bytes that `party` sends online for a product: 8 n d_k to each partner, plus framing. One round."""
    width = plan.widths[party]
    rows = (block.stop - block.start for block in plan.row_blocks())
    return len(plan.partners(party)) * sum(frame_bytes(MASKED, 2, 8 * width * count) for count in rows)


def message_bytes(label: str, shape: Sequence[int], size: int = 8) -> int:
    """Bytes of an array of this shape, `size` bytes an element, sent under `label`: 8 in the ring and for float64."""
    return frame_bytes(label, len(shape), size * math.prod(shape))


def peak_memory() -> int:
    """The most memory that this process has had so far, in bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return 0


@dataclass
class CostReport:
    """One participant's costs: bytes to each peer at the socket, rounds, seconds a phase, formula against counter.

    `waited`: seconds idle for others; `sockets`: seconds in TLS and the kernel; both are parts of the phases' seconds
    (a background thread has some of the latter). `peak_memory`: bytes so far, 0 where the system does not tell.
    `rounds` counts messages that had to wait for another: the longest chain before this participant's end.
    """

    party: str
    handshake_bytes: dict[str, int] = field(default_factory=dict)
    bytes_sent: dict[str, int] = field(default_factory=dict)
    messages_sent: dict[str, int] = field(default_factory=dict)
    rounds: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    waited: float = 0.0
    sockets: float = 0.0
    peak_memory: int = 0
    predicted: dict[str, int] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)

    def compare(self, operation: str, predicted: int, counted: int) -> None:
        """Set a formula's bytes beside the socket's."""
        self.predicted[operation] = self.predicted.get(operation, 0) + predicted
        self.counted[operation] = self.counted.get(operation, 0) + counted

    def warnings(self) -> list[str]:
        """The operations whose socket bytes are more than 1 % from their formula."""
        return [
            f"{self.party}: {name} took {self.counted[name]} bytes, its formula says {expected}"
            for name, expected in self.predicted.items()
            if abs(self.counted[name] - expected) > expected / 100
        ]

    def to_dict(self) -> dict[str, object]:
        return asdict(self)
