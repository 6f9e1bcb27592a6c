"""gloo's reduce leaves a value that stock CrypTen opens to rank 1 in the memory of rank 0.

In ours the others send their shares to the receiver, who alone adds them up.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.pool import Pool
from smpc.engine.session import CryptenSession
from smpc.values import Held, Shared, value_of
from tests.attacks.ours import Recorded
from tests.attacks.recording import Recording, recording
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

kept: list[Recording] = []  # in a stock party: rank 0 follows the protocol and keeps its buffers
kept_in_ours: list[Any] = []  # in a process of ours: what it opened; the pool keeps its frames


def attack(process: int, word: int) -> int:
    """How often the 64-bit `word` occurs in the writable memory of a process of this user that is waiting."""
    needle = word.to_bytes(8, "little", signed=True)
    found = 0
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            addresses, rights, *_ = line.split()
            if not rights.startswith("rw") or line.endswith("[vvar]"):
                continue
            start, end = (int(address, 16) for address in addresses.split("-"))
            while start < end:
                chunk = os.pread(memory.fileno(), min(end - start, 1 << 24), start)
                if not chunk:
                    break
                found += chunk.count(needle)
                start += len(chunk) if start + len(chunk) >= end else len(chunk) - 7
    return found


def open_to_rank_1(rank: int, word: int) -> int:
    """In a stock party: rank 1's integer is shared and opened to rank 1; that rank's result, 0 at the other."""
    import crypten
    import torch

    with recording() as seen:
        shared = crypten.cryptensor(torch.tensor([word]), src=1, precision=0)
        opened = shared.get_plain_text(dst=1)
    kept.append(seen)
    return int(opened.item()) if rank == 1 else 0


def by_session(s: CryptenSession, shared: Shared) -> Any:
    opened = s.reveal(shared, to="p1", message="word", unprotected=True)
    return value_of(opened) if s.me == "p1" else None


def by_crypten(s: CryptenSession, shared: Shared) -> Any:
    return shared.share.get_plain_text(dst=1) if s.is_party else None


def by_crypten_to_all(s: CryptenSession, shared: Shared) -> Any:
    """A wrong variant."""
    return shared.share.get_plain_text() if s.is_party else None


def open_in_ours(s: CryptenSession, frames: Recorded, word: int, opening: Callable[..., Any]) -> int:
    """In a process of ours: p1's integer is shared and opened to p1; its result, 0 elsewhere."""
    held = Held("p1", np.array([word]) if s.me == "p1" else None)
    opened = opening(s, s.share(held, (1,)))
    kept_in_ours.append(opened)
    return int(opened[0]) if s.me == "p1" else 0


def found_in_ours(pool: Pool, opening: Callable[..., Any]) -> dict[str, int]:
    """How often a word that p1 opened in this way is in each participant's memory."""
    word = secrets.randbits(63)
    words = {name: {"word": word if name == "p1" else 0} for name in pool.cast.everyone}
    assert pool.run(open_in_ours, words, opening=opening)["p1"] == word
    return {name: attack(process.pid, word) for name, process in pool.processes.items()}


def test_value_opened_to_one_party_is_in_the_others_memory_in_stock_crypten_and_not_in_ours(
    stock_pair: StockParties, our_pair: Pool
) -> None:
    word, other = (secrets.randbits(63) for _ in range(2))
    _, opened = stock_pair.run(open_to_rank_1, [{"word": 0}, {"word": word}])

    assert opened == word
    assert attack(stock_pair.processes[0].pid, word) > 0
    assert attack(stock_pair.processes[0].pid, other) == 0

    for opening in (by_session, by_crypten):
        found = found_in_ours(our_pair, opening)
        assert found.pop("p1") > 0
        assert found == {"p0": 0, "server": 0, "dealer": 0}
    found = found_in_ours(our_pair, by_crypten_to_all)
    assert found["p0"] > 0 and found["server"] == found["dealer"] == 0
