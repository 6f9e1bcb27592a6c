"""One known mask of stock CrypTen gives its generator's seed: all 2^32 of them are tried.

torch's CPU generator keeps the low 32 bits of a seed. `python -m tests.bench.seed_search` runs two stock parties, finds
rank 0's seed from one mask that rank 1 knows, predicts the next masks, reads rank 0's next input, and prints JSON.
`--bits 24` searches only the 2^24 seeds around the true one (a 256th of the time).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.attacks.stock import StockParties
from tests.attacks.test_predicted_masks import two_products

BLOCK = 1 << 14  # seeds at once: they and the temporaries stay in the cache
CHUNK = 1 << 22  # seeds a worker tries before it reports
SHIFT, FACTOR = 397, np.uint32(1812433253)
OFFSET = np.uint64(1 << 63)  # randint adds its lower bound, -2^63

Words = npt.NDArray[np.uint32]


def draws(seed: int, count: int) -> npt.NDArray[np.int64]:
    """The first `count` ring elements of torch's CPU generator with this seed."""
    raw = np.random.RandomState(seed)._bit_generator.random_raw(2 * count)  # MT19937 seeded as its authors do
    words = ((raw[::2] << np.uint64(32)) | raw[1::2]) ^ OFFSET
    return np.asarray(words.view(np.int64))


def temper(y: Words) -> Words:
    """MT19937's outputs for these words of its state."""
    y = y ^ (y >> np.uint32(11))
    y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
    y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
    return np.asarray(y ^ (y >> np.uint32(18)))


def outputs(seeds: Words, position: int) -> Words:
    """MT19937's 32-bit output number `position` (from 0, below 227) for each seed."""
    state, scratch = seeds.copy(), np.empty_like(seeds)
    kept = {}
    for i in range(position + SHIFT + 1):
        if i:
            np.right_shift(state, np.uint32(30), out=scratch)
            np.bitwise_xor(state, scratch, out=state)
            np.multiply(state, FACTOR, out=state)
            np.add(state, np.uint32(i), out=state)
        if i in (position, position + 1):
            kept[i] = state.copy()
    mixed = (kept[position] & np.uint32(1 << 31)) | (kept[position + 1] & np.uint32((1 << 31) - 1))
    return temper(state ^ (mixed >> np.uint32(1)) ^ ((mixed & np.uint32(1)) * np.uint32(0x9908B0DF)))


def search(mask: int, number: int, start: int, stop: int) -> int | None:
    """The seed in [start, stop) whose ring element `number` (from 0, below 113) is `mask`, if there is one."""
    high = np.uint32(((mask ^ (1 << 63)) >> 32) & 0xFFFFFFFF)
    for first in range(start, stop, BLOCK):
        seeds = np.arange(min(stop - first, BLOCK), dtype=np.uint32) + np.uint32(first)
        for seed in seeds[outputs(seeds, 2 * number) == high]:
            if draws(int(seed), number + 1)[number] == mask:
                return int(seed)
    return None


def search_all(mask: int, number: int, start: int, stop: int) -> int | None:
    """`search` on all cores."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        chunks = [(first, min(stop, first + CHUNK)) for first in range(start, stop, CHUNK)]
        for done in as_completed([workers.submit(search, mask, number, *chunk) for chunk in chunks]):
            if (seed := done.result()) is not None:
                workers.shutdown(cancel_futures=True)
                return seed
    return None


def true_seed(rank: int) -> int:
    """In a stock party: what the attack must find, to place a window and to check the answer."""
    import crypten
    import torch

    return int(crypten.generators["local"][torch.device("cpu")].initial_seed()) % 2**32


def run(bits: int) -> dict[str, Any]:
    """The whole attack over the 2^bits seeds around the true one."""
    random = np.random.default_rng()
    vectors = [{"first": random.uniform(-9, 9, 1), "second": random.uniform(-9, 9, 20)} for _ in range(2)]
    with StockParties(2) as parties:
        view = parties.run(two_products, vectors)[1]
        truth = parties.run(true_seed)[0]
    window = truth >> bits << bits
    begin = time.perf_counter()
    # rank 0 drew the mask of its own first vector, then that of rank 1's, which rank 1 learns, then the next product's
    seed = search_all(int(view.known[0] - view.masked[0]), 1, window, window + 2**bits)
    seconds = time.perf_counter() - begin
    read = None if seed is None else view.later + draws(seed, 2 + view.later.size)[2:]
    return {
        "seeds": 2**bits,
        "seconds": seconds,
        "found": seed == truth,
        "next_input_read": read is not None and np.array_equal(read, (vectors[0]["second"] * 2**16).astype(np.int64)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bits", type=int, default=32, choices=range(1, 33), metavar="1..32")
    print(json.dumps(run(parser.parse_args().bits), indent=2))
