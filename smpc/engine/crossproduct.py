"""The joint product of `smpc.products` over the network: what a party sends and computes, what the dealer does."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from smpc.engine.network import Network
from smpc.engine.sharing import keyed, ring_elements
from smpc.products import MASKED, ProductPlan
from smpc.ring import Integers, inner

_AHEAD = 2  # messages a party sends before it waits for its peers' first
_UNREAD = 1 << 23  # bytes queued for each peer before a party waits: a slow reader must not make it queue its table

Block = tuple[str, str]


@dataclass
class Correlation:
    """One product's correlated randomness: a number never used again, and the dealer's corrections once received."""

    number: int
    plan: ProductPlan
    corrections: dict[Block, Integers] | None = None

    def receive(self, network: Network, dealer: str) -> dict[Block, Integers]:
        """Wait for the dealer's corrections for this party. They depend on no data and may be fetched ahead."""
        if self.corrections is None:
            self.corrections = {
                (k, l): network.receive(
                    dealer, "correction", np.int64, (self.plan.widths[k], self.plan.widths[l]), scripted=False
                ).view(np.int64)
                for k, l in self.plan.blocks
                if l == network.me
            }
        return self.corrections


def mask(seed: bytes, number: int, rows: slice, width: int) -> Integers:
    """A_k for these rows, shape (width, rows): known to the party and the dealer."""
    return ring_elements(keyed(seed, "mask", number, rows.start), (width, rows.stop - rows.start))


def pad(seed: bytes, number: int, block: Block, plan: ProductPlan) -> Integers:
    """s_kl: known to P_k and the dealer only, else A_k'A_l would give P_l the product itself."""
    return ring_elements(keyed(seed, "pad", number, block), (plan.widths[block[0]], plan.widths[block[1]]))


def deal(plan: ProductPlan, number: int, seeds: Mapping[str, bytes]) -> dict[Block, Integers]:
    """The dealer's corrections A_k'A_l - s_kl of every block, streamed over the rows."""
    totals = {(k, l): -pad(seeds[k], number, (k, l), plan) for k, l in plan.blocks}
    needed = {name for block in plan.blocks for name in block}
    for rows in plan.row_blocks() if needed else ():
        masks = {name: mask(seeds[name], number, rows, plan.widths[name]) for name in needed}
        for k, l in plan.blocks:
            totals[k, l] += inner(masks[k], masks[l])
    return totals


def multiply(
    network: Network, dealer: str, seed: bytes, correlation: Correlation, columns: Integers
) -> dict[Block, Integers]:
    """This party's shares of its blocks. `columns` has shape (width, rows).

    Sends its masked columns once to each partner, in row blocks, while it multiplies what has arrived. Waits for a
    partner that does not read, and receives meanwhile; PeerError names it after the network's patience.
    """
    me, plan = network.me, correlation.plan
    width = plan.widths[me]
    partners = plan.partners(me)
    totals: dict[Block, Integers] = {}
    for block in plan.blocks:
        if block[0] == me:
            totals[block] = pad(seed, correlation.number, block, plan)
        elif block[1] == me:
            totals[block] = np.zeros((plan.widths[block[0]], width), dtype=np.int64)
    second = any(l == me for _, l in plan.blocks)
    wave = network.round + 1  # one round: no message of the stream depends on another
    waiting: deque[tuple[slice, Integers | None]] = deque()

    def absorb() -> None:
        rows, own_mask = waiting.popleft()
        network.rows = (rows.stop, plan.rows)
        for name in partners:
            shape = (plan.widths[name], rows.stop - rows.start)
            masked = network.receive(name, MASKED, np.int64, shape).view(np.int64)
            if (me, name) in totals:
                totals[me, name] += inner(columns[:, rows], masked)
            elif own_mask is not None:
                totals[name, me] += inner(masked, own_mask)

    for rows in plan.row_blocks():
        own_mask = mask(seed, correlation.number, rows, width)
        masked = columns[:, rows] - own_mask
        for name in partners:
            network.send(name, MASKED, masked, round_=wave)
        network.flush(_UNREAD)
        waiting.append((rows, own_mask if second else None))
        if len(waiting) > _AHEAD:
            absorb()
    while waiting:
        absorb()
    for block, correction in correlation.receive(network, dealer).items():
        totals[block] += correction
    return totals
