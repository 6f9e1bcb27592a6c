"""gloo's reduce leaves a value that stock CrypTen opens to rank 1 in the memory of rank 0."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from tests.attacks.recording import Recording, recording
from tests.attacks.stock import StockParties

pytestmark = pytest.mark.mpc

kept: list[Recording] = []  # in a stock party: rank 0 follows the protocol and keeps its buffers


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


def test_value_that_stock_crypten_opens_to_rank_1_is_in_rank_0s_memory(stock_pair: StockParties) -> None:
    word, other = (secrets.randbits(63) for _ in range(2))
    _, opened = stock_pair.run(open_to_rank_1, [{"word": 0}, {"word": word}])

    assert opened == word
    assert attack(stock_pair.processes[0].pid, word) > 0
    assert attack(stock_pair.processes[0].pid, other) == 0
