"""Times and socket bytes of joint products on stock CrypTen with its trusted third party.

From "all parties hold their float tables" to "every party has the result", one process and one torch thread each.
`python -m tests.bench.stock_products` prints the measurements as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.attacks.stock import StockParties
from tests.bench.product_tasks import TASKS, ProductTask
from tests.bench.sockets import Traffic, traffic

REPETITIONS = 7


@dataclass(frozen=True)
class StockProduct:
    """Medians over the repetitions; bytes are those of one repetition, by party.

    seconds: of the slowest party, all in. online_seconds: without the wait for the third party's triples.
    sent_bytes: to other parties. dealer_bytes: to and from the third party. max_error: against float64.
    """

    seconds: float
    online_seconds: float
    sent_bytes: list[int]
    dealer_bytes: list[int]
    max_error: float
    repetitions: list[float]


@dataclass(frozen=True)
class _PartyRun:
    seconds: list[float]
    triple_seconds: list[float]
    before: list[Traffic]
    after: list[Traffic]
    opened: list[npt.NDArray[np.floating[Any]]]


def measure(tasks: Sequence[ProductTask] = TASKS, repetitions: int = REPETITIONS) -> dict[str, StockProduct]:
    """Every task's measurement by its name; processes are started once for each number of parties."""
    results = {}
    for count in sorted({len(task.widths) for task in tasks}):
        with StockParties(count, provider="TTP") as parties:
            for task in tasks:
                if len(task.widths) == count:
                    runs = parties.run(_multiply, task=task, repetitions=repetitions)
                    results[task.name] = _summary(task, repetitions, runs)
    return results


def _multiply(rank: int, task: ProductTask, repetitions: int) -> _PartyRun:
    """In a stock party: one warm-up, then the repetitions, each after a barrier."""
    import crypten
    import torch
    from crypten.mpc.primitives import ArithmeticSharedTensor  # without the autograd layer: the cheapest way in

    own = torch.from_numpy(task.columns(rank))
    provider = crypten.mpc.get_default_provider()
    deal = type(provider).generate_additive_triple
    waited = 0.0

    def timed_deal(*args: Any, **options: Any) -> Any:
        nonlocal waited
        start = time.perf_counter()
        triple = deal(provider, *args, **options)
        waited += time.perf_counter() - start
        return triple

    def product() -> list[torch.Tensor]:
        shared = [
            ArithmeticSharedTensor(own, src=source)
            if source == rank
            else ArithmeticSharedTensor(size=(task.rows, width), src=source)
            for source, width in enumerate(task.widths)
        ]
        return [shared[k].t().matmul(shared[l]).get_plain_text() for k, l in task.blocks]

    provider.generate_additive_triple = timed_deal
    communicator = crypten.communicator.get()
    try:
        product()
        communicator.barrier()
        run = _PartyRun([], [], traffic(), [], [])
        for _ in range(repetitions):
            communicator.barrier()
            waited, start = 0.0, time.perf_counter()
            opened = product()
            run.seconds.append(time.perf_counter() - start)
            run.triple_seconds.append(waited)
        communicator.barrier()
        run.after.extend(traffic())
        run.opened.extend(block.numpy() for block in opened)
    finally:
        del provider.generate_additive_triple
    return run


def _summary(task: ProductTask, repetitions: int, runs: Sequence[_PartyRun]) -> StockProduct:
    seconds = [max(times) for times in zip(*(run.seconds for run in runs), strict=True)]
    waits = [max(times) for times in zip(*(run.triple_seconds for run in runs), strict=True)]
    ends = {connection.local for run in runs for connection in run.after}
    sent, dealer = [], []
    for run in runs:
        start = {(c.local, c.remote): c for c in run.before}
        between = third = 0
        for now in run.after:
            was = start[now.local, now.remote]
            if now.remote in ends:
                between += now.sent - was.sent
            else:  # the only other process is the third party
                third += now.sent - was.sent + now.received - was.received
        sent.append(between // repetitions)
        dealer.append(third // repetitions)
    return StockProduct(
        seconds=median(seconds),
        online_seconds=median(total - wait for total, wait in zip(seconds, waits, strict=True)),
        sent_bytes=sent,
        dealer_bytes=dealer,
        max_error=max(
            float(np.abs(block - exact).max()) for block, exact in zip(runs[0].opened, task.exact(), strict=True)
        ),
        repetitions=seconds,
    )


if __name__ == "__main__":
    print(json.dumps({name: asdict(result) for name, result in measure().items()}, indent=2))
