"""Encrypted columns on their way: parties encrypt once and upload row by row block, the server multiplies as they come.

step  from -> to      message            the receiver learns
1     P_k -> server   encrypted columns  nothing: the number of rows and columns, which is public

A party waits for the server's "next" before it is more than two blocks ahead, so that neither end keeps more than
that, however many the rows. Cost for n rows and d_k columns: 96 n d_k bytes where k is the first of a pair (G1), 192
n d_k where it is the second (G2), whatever the number of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import G1, G2, Elements, Encoded, Group
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scheme import Encryptor
from smpc.bgn.threads import on_all_cores, row_blocks
from smpc.cost import frame_bytes
from smpc.engine.network import Network
from smpc.products import ProductPlan
from smpc.ring import Integers

ENCRYPTED = "encrypted columns"
_NEXT = "next"
_ROWS = 256  # in one message
_AHEAD = 2


def groups_of(plan: ProductPlan, party: str) -> list[Group]:
    """In which groups a party encrypts: G1 as the first of a pair, G2 as the second."""
    return [group for place, group in enumerate((G1, G2)) if any(block[place] == party for block in plan.blocks)]


def upload_bytes(plan: ProductPlan, party: str) -> int:
    """Bytes that `party` sends the server for a product, framing included."""
    return sum(
        frame_bytes(ENCRYPTED, 4, plan.widths[party] * 2 * (rows.stop - rows.start) * group.size)
        for group in groups_of(plan, party)
        for rows in row_blocks(plan.rows, _ROWS)
    )


def upload(
    network: Network,
    server: str,
    plan: ProductPlan,
    columns: Integers,
    encryptors: Mapping[Group, Encryptor],
    random: RandomWords,
) -> None:
    """A party's part: its columns (width, rows) under its own keys. It learns nothing."""
    wave = network.round + 1  # one round: no message of the stream depends on another
    for number, rows in enumerate(row_blocks(plan.rows, _ROWS)):
        if number >= _AHEAD:
            network.receive(server, _NEXT, np.int64, (1,))
        for group in groups_of(plan, network.me):
            ciphertexts = encryptors[group].encrypt(columns[:, rows], random)
            network.send(server, ENCRYPTED, group.encode(ciphertexts), round_=wave)
        network.rows = (rows.stop, plan.rows)


def multiply(network: Network, plan: ProductPlan) -> dict[tuple[str, str], Elements]:
    """The server's part: each pair's sums as level-2 ciphertexts (d_k d_l, 4, words). It opens nothing.

    Raises PeerError that names a party whose upload is no ciphertexts.
    """
    sums = {(k, l): InnerProducts(plan.widths[k], plan.widths[l]) for k, l in plan.blocks}
    blocks = row_blocks(plan.rows, _ROWS)
    for number, rows in enumerate(blocks):
        received = {}
        for party in plan.widths:
            for group in groups_of(plan, party):
                shape = (plan.widths[party], 2, rows.stop - rows.start, group.size)
                data = network.receive(party, ENCRYPTED, np.uint8, shape).view(np.uint8)
                received[party, group] = _decoded(group, data, party)
        for (k, l), total in sums.items():
            total.add(received[k, G1], received[l, G2])
        if number + _AHEAD < len(blocks):
            for party in plan.widths:
                network.send(party, _NEXT, np.zeros(1, np.int64))
        network.rows = (rows.stop, plan.rows)
    return {pair: total.result() for pair, total in sums.items()}


def _decoded(group: Group, data: Encoded, party: str) -> Elements:
    """On all cores: the check of each point's order costs as much as its encryption."""
    columns, _, rows, _ = data.shape
    out = np.empty((columns, 2, rows, group.words), np.uint64)

    def decode(place: tuple[int, int, slice]) -> None:
        out[place] = group.decode(data[place], what=f"{party}: {ENCRYPTED}")

    on_all_cores(decode, product(range(columns), range(2), row_blocks(rows, 64)))
    return out
