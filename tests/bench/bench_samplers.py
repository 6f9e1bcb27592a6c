"""Values a second of every sampler on one core, many at once and one by one, beside opendp where it is installed.

Run `python -m tests.bench.bench_samplers`. Exit code 1 if a bar is missed: 3 M discrete Laplace and 1 M discrete
Gaussian values a second at any scale from 1 to 2^58, and 20 times opendp.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.gamma_norm import GammaNorm
from mechanisms.randomized_response import RandomizedResponse
from mechanisms.randomness import SecureRandom

COUNT = 1_000_000
PEER_COUNT = 20_000
SCALES = [Fraction(1), Fraction(10, 3), Fraction(2**20), Fraction(2**40), Fraction(2**58)]
BARS = {"discrete Laplace": 3e6, "discrete Gaussian": 1e6}
PEER_BAR = 20


def rate(draw: Callable[[], object], count: int) -> float:
    """Values a second of processor time: the best of three runs after a first one, each of 10 ms at least."""
    calls = 1
    while _seconds(draw, calls) < 0.01:
        calls *= 2
    best = min(_seconds(draw, calls) for _ in range(3))
    return calls * count / best


def _seconds(draw: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        draw()
    return time.process_time() - start


def peer_rates(scale: float, count: int) -> dict[str, float]:
    """opendp's measurements of vectors of `count` 64-bit integers; empty without opendp (extra `bench`)."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {}
    dp.enable_features("contrib")
    domain, zeros = dp.vector_domain(dp.atom_domain(T="i64")), np.zeros(count, dtype=np.int64)
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale)
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale)
    return {
        "discrete Laplace": rate(lambda: laplace(zeros), count),
        "discrete Gaussian": rate(lambda: gaussian(zeros), count),
    }


def main() -> int:
    random, missed = SecureRandom(), []
    print(f"{'sampler':<22}{'scale':>12}{'at once':>12}{'values/s':>14}{'opendp':>12}{'ratio':>8}")
    for scale, (count, peer_count) in product(SCALES, ((COUNT, PEER_COUNT), (1, 1))):
        peers = peer_rates(float(scale), peer_count)
        samplers = {"discrete Laplace": DiscreteLaplace(scale), "discrete Gaussian": DiscreteGaussian(scale**2)}
        for name, sampler in samplers.items():
            ours = rate(lambda s=sampler, n=count: s.draw(n, random), count)
            peer = peers.get(name)
            told = f"{peer:>12,.0f}{ours / peer:8.1f}" if peer else f"{'-':>12}{'-':>8}"
            print(f"{name:<22}{float(scale):>12.4g}{count:>12,}{ours:>14,.0f}{told}")
            if count == COUNT and (ours < BARS[name] or (peer and ours < PEER_BAR * peer)):
                missed.append(f"{name} at {float(scale):.4g}")
    answers = np.zeros(COUNT, dtype=np.int64)
    response = RandomizedResponse(Fraction(1), 10)
    print(f"{'10-ary response':<22}{'':>24}{rate(lambda: response.respond(answers, random), COUNT):>14,.0f}")
    for dimension in (10, 100):
        vectors = rate(lambda d=dimension: GammaNorm(Fraction(2**30)).draw(d, random), 1)
        print(f"{'gamma-norm vectors':<22}{f'd = {dimension}':>24}{vectors:>14,.0f}")
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
