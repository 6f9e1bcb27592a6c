"""Comparisons on shares: `argmax` of two rows beside the same circuit in stock CrypTen with its trusted third party.

    python -m tests.bench.comparisons [--repetitions N]

Both compare by CrypTen's code. Ours is encrypted, and its dealer draws from AES where stock's draws from a 32-bit seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from launch.pool import Pool
from smpc.cast import Cast
from smpc.engine.session import CryptenSession
from smpc.values import Held
from tests.attacks.stock import StockParties
from tests.bench.barrier import together
from tests.bench.text import aligned, spread

SIZES = (100, 100_000)


def own_task(s: CryptenSession, count: int, repetitions: int) -> list[float]:
    """In a participant's process: seconds of each repetition."""
    rows = np.random.default_rng(0).integers(0, 1000, (2, count))
    shares = {party: Held(party, rows if party == s.me == "p0" else np.zeros_like(rows)) for party in s.cast.parties}
    shared = s.adopt({p: h if p == s.me else Held(p) for p, h in shares.items()}, rows.shape)
    times = []
    for _ in range(repetitions + 1):
        together(s)
        start = time.perf_counter()
        s.argmax(shared)
        times.append(time.perf_counter() - start)
    return times[1:]


def stock_task(rank: int, count: int, repetitions: int) -> list[float]:
    """In a stock party: the steps of `argmax` for two rows."""
    import crypten
    import torch
    from crypten.mpc import MPCTensor

    rows = np.random.default_rng(0).integers(0, 1000, (2, count)) * (rank == 0)
    best, row = (MPCTensor.from_shares(torch.from_numpy(values.copy()), precision=0) for values in rows)
    times = []
    for _ in range(repetitions + 1):
        crypten.communicator.get().barrier()
        start = time.perf_counter()
        stays = best >= row
        _ = row + stays * (best - row), 1 + stays * (best * 0 - 1)
        times.append(time.perf_counter() - start)
    return times[1:]


def slowest(runs: Sequence[list[float]]) -> list[float]:
    return [1e3 * max(turn) for turn in zip(*runs, strict=True)]


def report(repetitions: int) -> str:
    names = ("p0", "p1")
    with Pool(Cast(names)) as pool:
        own = {n: pool.run(own_task, count=n, repetitions=repetitions) for n in SIZES}
    with StockParties(2, provider="TTP") as parties:
        stock: dict[int, Any] = {n: parties.run(stock_task, count=n, repetitions=repetitions) for n in SIZES}
    lines = [["columns", "ours ms", "stock ms", "stock / ours"]]
    for n in SIZES:
        mine, theirs = slowest([own[n][name] for name in names]), slowest(stock[n])
        ratio = float(np.median(theirs) / np.median(mine))
        lines.append([f"{n:,}", spread(mine, 1), spread(theirs, 1), f"{ratio:.2f}"])
    return aligned(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=5)
    print(report(parser.parse_args().repetitions))


if __name__ == "__main__":
    main()
