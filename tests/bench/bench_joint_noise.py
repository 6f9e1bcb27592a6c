"""Jointly drawn discrete Laplace noise: draws a second and bytes a draw, at 2 and 3 parties.

Run `python -m tests.bench.bench_joint_noise`. One process a party plus server and dealer, TLS on loopback, one thread
each. Time: from a barrier to the slowest party's shares, the dealer's work included. Bytes: what a party sends all
other parties, at the socket; `dealer`: the dealer's answers, which go to the first party. Exit code 1 if a bar is
missed: what the same circuit took with one number a word, for 2 parties, in stock CrypTen without TLS.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np

from launch.pool import Pool
from mechanisms.joint_laplace import WORD, JointLaplace
from smpc.cast import Cast
from smpc.engine.session import CryptenSession
from smpc.values import Shared
from tests.bench.barrier import together

DISTANCE = Fraction(1, 2**56)


@dataclass(frozen=True)
class Bar:
    """At most these bytes a draw and party, at least this many draws a second, in arrays of this length."""

    scale: Fraction
    count: int
    sent: float
    rate: float


BARS = (
    Bar(Fraction(1), 20_000, 5_200, 16_700),
    Bar(Fraction(16), 20_000, 8_100, 13_600),
    Bar(Fraction(65536), 2_000, 16_900, 2_800),
)
OTHERS = ((Fraction(65536), 20_000), (Fraction(2**40), 230), (Fraction(2**58), 230), (Fraction(2**58), 20_000))


def draw(s: CryptenSession, law: JointLaplace, count: int, repetitions: int) -> Any:
    """In a participant's process: seconds of each repetition and bytes sent to the other parties in one."""
    share = s._tensor(np.zeros(count, dtype=np.int64)) if s.is_party else None
    seconds, sent = [], 0
    for _ in range(repetitions):
        together(s)
        before = s.network.sent()
        start = time.perf_counter()
        s.add_joint_noise(Shared((count,), 0, share), law)
        seconds.append(time.perf_counter() - start)
        after = s.network.sent()
        sent = sum(after[name] - before[name] for name in s.cast.parties if name != s.me)
    return seconds, sent


def dealt_bytes(law: JointLaplace, count: int) -> int:
    """The dealer's answers: a word for 64 products, and a ring element for each digit."""
    total = 0
    for size in law.pieces(count):
        _, digits, words = law.shape(size)
        total += 8 * digits * words * (32 + 2 * (16 + 8 + 4 + 2 + 1) + WORD)
    return total


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=7)
    repetitions = parser.parse_args().repetitions
    missed = []
    head = ("parties", "scale", "digits", "draws", "draws/s", "bytes/draw", "dealer", "bar draws/s", "bar bytes")
    print("".join(f"{name:>13}" for name in head))
    for parties in (2, 3):
        with Pool(Cast(tuple(f"p{k}" for k in range(parties)))) as pool:
            pool.run(draw, law=JointLaplace.within(Fraction(1), DISTANCE), count=64, repetitions=1)  # warm
            for scale, count in [(bar.scale, bar.count) for bar in BARS] + list(OTHERS):
                law = JointLaplace.within(scale, DISTANCE)
                runs = [pool.run(draw, law=law, count=count, repetitions=repetitions)[p] for p in pool.cast.parties]
                rate = count / median(max(times) for times in zip(*(seconds for seconds, _ in runs), strict=True))
                sent = max(sent for _, sent in runs) / count
                bar = next((bar for bar in BARS if (bar.scale, bar.count) == (scale, count)), None)
                limits = f"{bar.rate:>13,.0f}{bar.sent:>13,.0f}" if bar else ""
                dealer = dealt_bytes(law, count) / count
                print(
                    f"{parties:>13}{float(scale):>13.4g}{law.bits:>13}{count:>13,}{rate:>13,.0f}{sent:>13,.0f}"
                    f"{dealer:>13,.0f}{limits}"
                )
                if bar and (rate < bar.rate or sent > bar.sent):
                    missed.append(f"scale {float(scale):.4g} with {parties} parties")
    print(f"missed: {', '.join(missed)}" if missed else "all bars met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
