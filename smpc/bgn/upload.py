"""Encrypted columns on their way: parties encrypt once and upload row by row block, whoever multiplies takes them in.

A party waits for each receiver's "next" before it is more than two blocks ahead, so that neither end keeps more than
that, however many the rows. Cost for n rows and d_k columns: 96 n d_k bytes in G1, 192 n d_k in G2, to each receiver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from smpc.bgn.curve import Elements, Encoded, Group
from smpc.bgn.mode import Part, Traffic, one_message
from smpc.bgn.scheme import Encryptor
from smpc.bgn.threads import on_all_cores, row_blocks
from smpc.products import ProductPlan
from smpc.ring import Integers

ENCRYPTED = "encrypted columns"
_NEXT = "next"
_ROWS = 256  # in one message
_AHEAD = 2
_DECODED = 64  # rows that one thread checks at once


def upload_bytes(plan: ProductPlan, party: str, groups: Sequence[Group]) -> int:
    """Bytes that `party` sends each receiver for a product, framing included."""
    return sum(
        one_message(ENCRYPTED, 4, plan.widths[party] * 2 * (rows.stop - rows.start) * group.size)
        for group in groups
        for rows in message_rows(plan)
    )


def upload_traffic(plan: ProductPlan, sender: str, receivers: Sequence[str], groups: Sequence[Group]) -> Traffic:
    """A party's columns to each receiver, and each one's word to go on."""
    go_on = max(0, len(message_rows(plan)) - _AHEAD) * one_message(_NEXT, 1, 8)
    there = [(sender, receiver, upload_bytes(plan, sender, groups)) for receiver in receivers]
    return [*there, *((receiver, sender, go_on) for receiver in receivers)]


def message_rows(plan: ProductPlan) -> list[slice]:
    """The rows of each message, in order."""
    return row_blocks(plan.rows, _ROWS)


class Upload:
    """A party's stream of its own columns, under the encryptors' keys, to `receivers`. It learns nothing."""

    def __init__(self, part: Part, receivers: Sequence[str], encryptors: Mapping[Group, Encryptor]) -> None:
        self._part, self._receivers, self._encryptors = part, receivers, encryptors
        self._wave = part.network.round + 1  # one round: no message of the stream depends on another
        self._sent = 0

    def send(self, columns: Integers) -> None:
        """The next rows, (width, rows of this message)."""
        network = self._part.network
        if self._sent >= _AHEAD:
            for name in self._receivers:
                network.receive(name, _NEXT, np.int64, (1,))
        self._sent += 1
        for group, encryptor in self._encryptors.items():
            message = group.encode(encryptor.encrypt(columns, self._part.random))
            for name in self._receivers:
                network.send(name, ENCRYPTED, message, round_=self._wave)


def receive(part: Part, plan: ProductPlan, sender: str, group: Group, rows: slice) -> Elements:
    """A party's ciphertexts of these rows, (width, 2, n, words). PeerError that names it if they are none."""
    shape = (plan.widths[sender], 2, rows.stop - rows.start, group.size)
    return _decoded(group, part.receive(sender, ENCRYPTED, shape), sender)


def ask_on(part: Part, plan: ProductPlan, senders: Sequence[str], rows: slice) -> None:
    """Tell `senders` that these rows are done with."""
    if rows.stop + (_AHEAD - 1) * _ROWS < plan.rows:  # they have not sent everything
        for name in senders:
            part.network.send(name, _NEXT, np.zeros(1, np.int64))
    part.network.rows = (rows.stop, plan.rows)


def _decoded(group: Group, data: Encoded, party: str) -> Elements:
    """On all cores: the check of each point's order costs as much as its encryption."""
    columns, _, rows, _ = data.shape
    out = np.empty((columns, 2, rows, group.words), np.uint64)

    def decode(place: tuple[int, int, slice]) -> None:
        out[place] = group.decode(data[place], what=f"{party}: {ENCRYPTED}")

    on_all_cores(decode, product(range(columns), range(2), row_blocks(rows, _DECODED)))
    return out
