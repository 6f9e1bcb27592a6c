"""Joint products: ours beside stock CrypTen with its trusted third party, in one run.

`python -m tests.bench.products` prints the table; `--repetitions N` counts runs of each task. From "all parties hold
their float tables" to "every party has the result"; medians of the slowest party, one thread and one process each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from launch.pool import Pool
from smpc import fixedpoint
from smpc.cast import Cast
from smpc.engine.session import CryptenSession
from smpc.products import ProductPlan
from smpc.ring import inner
from smpc.values import Shared, value_of
from tests.bench.barrier import together
from tests.bench.product_tasks import TASKS, ProductTask
from tests.bench.stock_products import StockProduct
from tests.bench.stock_products import measure as measure_stock
from tests.bench.text import aligned, spread

BITS = 16


@dataclass(frozen=True)
class PartyTimes:
    """Seconds of one repetition at one party, and the bytes it sent to the other parties in the online part.

    total: asking the dealer included, who works while the parties exchange their messages. online: with corrections
    fetched ahead, which took `dealer` seconds.
    """

    total: float
    dealer: float
    online: float
    bytes_sent: int


@dataclass(frozen=True)
class OwnProduct:
    """Medians over repetitions, and all totals.

    `link_seconds`: the same bytes through the same sockets; `product_seconds`: one integer matrix product of this size.
    """

    total_seconds: float
    totals: list[float]
    dealer_seconds: float
    online_seconds: float
    sent_bytes: int
    link_seconds: float
    product_seconds: float
    max_error: float


def own_task(s: CryptenSession, task: ProductTask, repetitions: int) -> Any:
    """In a participant's process: times of every repetition, this party's limits, and the opened blocks."""
    names = s.cast.parties
    plan = ProductPlan.gram(task.rows, dict(zip(names, task.widths, strict=True)))
    if not s.is_party:
        for _ in range(2 * repetitions):
            together(s)
            _open(s, plan, {})
        for _ in range(repetitions):
            together(s)
        return None
    table = np.ascontiguousarray(task.columns(names.index(s.me)).T)
    times = [_repetition(s, plan, table) for _ in range(repetitions)]
    links = [_move_bytes(s, plan) for _ in range(repetitions)]
    integers = fixedpoint.encode(table, BITS)
    products = [_seconds(lambda: inner(integers, integers)) for _ in range(repetitions)]
    return [t for t, _ in times], times[-1][1], median(links), median(products) * (len(names) - 1)


def _repetition(s: CryptenSession, plan: ProductPlan, table: Any) -> tuple[PartyTimes, list[Any]]:
    together(s)
    start = time.perf_counter()
    _open(s, plan, s.multiply(s.correlate(plan), fixedpoint.encode(table, BITS)))
    total = time.perf_counter() - start
    start = time.perf_counter()
    correlation = s.correlate(plan)
    correlation.receive(s.network, str(s.cast.dealer))
    dealer = time.perf_counter() - start
    together(s)
    before = s.network.sent()
    start = time.perf_counter()
    own = s.multiply(correlation, fixedpoint.encode(table, BITS))
    opened = _open(s, plan, own)
    online = time.perf_counter() - start
    after = s.network.sent()
    sent = sum(after[name] - before[name] for name in s.cast.parties if name != s.me)
    return PartyTimes(total, dealer, online, sent), opened


def _open(s: CryptenSession, plan: ProductPlan, own: Mapping[tuple[str, str], Any]) -> list[Any]:
    """Every block to every party."""
    opened = []
    for block in plan.blocks:
        shape = (plan.widths[block[0]], plan.widths[block[1]])
        share = s._tensor(own.get(block, np.zeros(shape, dtype=np.int64))) if s.is_party else None
        for name in s.cast.parties:
            held = s.reveal(Shared(shape, 2 * BITS, share), to=name, message="result", unprotected=True)
            if name == s.me:
                opened.append(fixedpoint.decode(value_of(held), 2 * BITS))
    return opened


def _move_bytes(s: CryptenSession, plan: ProductPlan) -> float:
    """Seconds for the same messages without any computation."""
    width = plan.widths[s.me]
    together(s)
    start = time.perf_counter()
    ready = np.zeros((width, plan.rows_per_message), dtype=np.int64)
    for rows in plan.row_blocks():
        for name in plan.partners(s.me):
            s.network.send(name, "bytes", ready[:, : rows.stop - rows.start])
    for rows in plan.row_blocks():
        for name in plan.partners(s.me):
            s.network.receive(name, "bytes", np.int64, (plan.widths[name], rows.stop - rows.start))
    return time.perf_counter() - start


def _seconds(f: Any) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def measure(repetitions: int) -> dict[str, OwnProduct]:
    """Every task's measurement by its name."""
    results = {}
    for count in sorted({len(task.widths) for task in TASKS}):
        names = tuple(f"p{k}" for k in range(count))
        with Pool(Cast(names)) as pool:
            for task in (task for task in TASKS if len(task.widths) == count):
                pool.run(own_task, task=task, repetitions=1)  # warm
                runs = pool.run(own_task, task=task, repetitions=repetitions)
                results[task.name] = _summary(task, {name: runs[name] for name in names})
    return results


def _summary(task: ProductTask, runs: Mapping[str, Any]) -> OwnProduct:
    times = [run[0] for run in runs.values()]
    error = max(
        float(np.abs(got - want).max()) for run in runs.values() for got, want in zip(run[1], task.exact(), strict=True)
    )
    totals = [max(t.total for t in turn) for turn in zip(*times, strict=True)]
    return OwnProduct(
        total_seconds=median(totals),
        totals=totals,
        dealer_seconds=median(max(t.dealer for t in turn) for turn in zip(*times, strict=True)),
        online_seconds=median(max(t.online for t in turn) for turn in zip(*times, strict=True)),
        sent_bytes=max(t.bytes_sent for turn in times for t in turn),
        link_seconds=max(run[2] for run in runs.values()),
        product_seconds=max(run[3] for run in runs.values()),
        max_error=error,
    )


def report(own: Mapping[str, OwnProduct], stock: Mapping[str, StockProduct]) -> str:
    times = ["task", "total ms", "online ms", "dealer ms", "stock ms", "stock / ours"]
    lines = [
        [*times, "MB", "of stock's MB", "bytes / n d 8 (K-1)", "online / limit", "total / product", "error", "stock's"]
    ]
    for task in TASKS:
        mine, theirs = own[task.name], stock[task.name]
        ideal = task.rows * max(task.widths) * 8 * (len(task.widths) - 1)
        lines.append(
            [
                task.name,
                spread([1e3 * seconds for seconds in mine.totals]),
                f"{1e3 * mine.online_seconds:.2f}",
                f"{1e3 * mine.dealer_seconds:.2f}",
                spread([1e3 * seconds for seconds in theirs.repetitions], 1),
                f"{theirs.seconds / mine.total_seconds:.1f}",
                f"{mine.sent_bytes / 1e6:.2f}",
                f"{mine.sent_bytes / max(theirs.sent_bytes):.2f}",
                f"{mine.sent_bytes / ideal:.4f}",
                f"{mine.online_seconds / max(mine.link_seconds, mine.product_seconds):.2f}",
                f"{mine.total_seconds / mine.product_seconds:.1f}",
                f"{mine.max_error:.1g}",
                f"{theirs.max_error:.1g}",
            ]
        )
    return aligned(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=9)
    repetitions = parser.parse_args().repetitions
    own = measure(repetitions)
    stock = measure_stock(TASKS, repetitions)
    print(report(own, stock))
    print(
        "\nstock / ours: stock's total by ours; online / limit: by the larger of moving the same bytes"
        " through the same TLS sockets and one integer product; errors against float64"
    )


if __name__ == "__main__":
    main()
