"""Times of smpc.bgn against the bars of its issue, and its cost model against larger runs.

    python -m tests.bench.bench_bgn

Times of one core are processor times, so that other work on the machine disturbs them little; the speed-up on two cores
is wall time, the best of several, beside what two independent processes reach at the same time: no thread can beat that
on a busy machine. Exit status 1 if a bar is missed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np

from mechanisms.randomness import SecureRandom
from smpc.bgn import decrypt, linear
from smpc.bgn.curve import G1, G2, GT, Elements, Encoded, Group
from smpc.bgn.decrypt import Partial, decrypt_partly, finish, read_ciphertexts
from smpc.bgn.dlog import DiscreteLog
from smpc.bgn.estimate import Estimate, UnitCosts
from smpc.bgn.keys import SecretKey
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scheme import Encryptor, TargetKey
from smpc.bgn.server_products import groups_of
from smpc.bgn.threads import cores
from smpc.products import ProductPlan
from smpc.ring import Integers

PAIRS, BITS = 1024, 10
SESSION = bytes(32)
RANDOM = SecureRandom()
LARGER = ((1500, (2, 2)), (800, (2, 1, 2)))  # rows and widths of the runs that the model is compared with
REPETITIONS = 5


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"{'ok  ' if self.holds else 'MISS'}  {self.name:58} {self.value:10.2f}  {sign} {self.limit:g}"


class Bench:
    """Two parties' keys and columns of random integers."""

    def __init__(self) -> None:
        self.x, self.y = SecretKey.make(G1, RANDOM), SecretKey.make(G2, RANDOM)
        self.encryptors = {G1: Encryptor(G1, self.x.public), G2: Encryptor(G2, self.y.public)}
        self.key = TargetKey(self.x.public, self.y.public)

    def upload(self, group: object, values: Integers, threads: int | None = 1) -> Encoded:
        encryptor = self.encryptors[group]  # type: ignore[index]
        return encryptor.group.encode(encryptor.encrypt(values, RANDOM, threads))

    def first(self, message: Encoded) -> Encoded:
        """k's part in opening, its message in and out."""
        fresh = self.key.add(read_ciphertexts(message, len(message), what="l"), [1] * len(message), RANDOM)
        return decrypt_partly(fresh, self.x, SESSION, "k", RANDOM).encode()

    def noisy(self, message: Encoded) -> Encoded:
        """l's part before."""
        return GT.encode(
            self.key.add(read_ciphertexts(message, len(message), what="server"), [1] * len(message), RANDOM)
        )

    def finish(self, message: Encoded, count: int) -> Elements:
        """l's part after."""
        return finish(Partial.decode(message, count, what="k"), self.x.public, self.y, SESSION, "k")


def columns(count: int, rows: int) -> Integers:
    return np.random.default_rng(count + rows).integers(-(2**BITS), 2**BITS + 1, (count, rows))


def core_seconds(f: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        f()
        times.append(time.process_time() - start)
    return median(times)


def fastest(one: Callable[[], object], other: Callable[[], object], turns: int = 12) -> tuple[float, float]:
    """Wall seconds of both, the best of alternating turns."""
    times = []
    for _ in range(turns):
        for f in (one, other):
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
    return min(times[::2]), min(times[1::2])


def multiply(first: Elements, second: Elements, threads: int | None = 1) -> Elements:
    sums = InnerProducts(len(first), len(second))
    sums.add(first, second, threads)
    return sums.result()


class _Worker:
    """One process's ciphertexts, and their products on one thread: the same work as the threads share."""

    work: Callable[[], object]

    @classmethod
    def prepare(cls) -> None:
        bench, one = Bench(), columns(1, PAIRS)
        a, b = (group.decode(bench.upload(group, one), what="k") for group in (G1, G2))
        cls.work = staticmethod(lambda: multiply(a, b))
        cls.work()

    @classmethod
    def run(cls, _: int) -> None:
        cls.work()


def machine_speed_up() -> float:
    """How much faster two processes work at once than one after the other."""
    with get_context("spawn").Pool(2, initializer=_Worker.prepare) as pool:
        pool.map(_Worker.run, range(8), chunksize=1)
        alone, both = fastest(
            lambda: pool.apply(_Worker.run, (0,)), lambda: pool.map(_Worker.run, range(2), chunksize=1)
        )
    return 2 * alone / both


def measure(folder: Path) -> tuple[UnitCosts, list[Bar], Bench]:
    bench, one, other = Bench(), columns(1, PAIRS), columns(1, PAIRS)
    encrypt = {group: core_seconds(lambda g=group: bench.upload(g, one)) / PAIRS for group in (G1, G2)}
    uploads = {group: bench.upload(group, one) for group in (G1, G2)}
    decode = {g: core_seconds(lambda g=g: g.decode(uploads[g], what="k")) / PAIRS for g in (G1, G2)}
    a, b = (group.decode(uploads[group], what="k") for group in (G1, G2))
    whole = core_seconds(lambda: multiply(a, b))
    start = core_seconds(lambda: multiply(a[:, :, :0], b[:, :, :0]))
    most = machine_speed_up()
    alone, both = fastest(lambda: multiply(a, b, 1), lambda: multiply(a, b, 2))

    def plain() -> Elements:
        products = linear.PlainProducts(1, 1, 2**BITS, bench.x.public, RANDOM)
        products.add(a, other, 1)
        return products.result()

    plain_pair = core_seconds(plain) / PAIRS
    sums = GT.encode(bench.key.encrypt(list(range(4)), RANDOM))
    first = core_seconds(lambda: bench.first(sums), 3) / 4
    message = bench.first(sums)
    second = (core_seconds(lambda: bench.noisy(sums), 3) + core_seconds(lambda: bench.finish(message, 4), 3)) / 4

    built = time.process_time()
    logarithm = DiscreteLog(GT, 2**40, folder)
    built = time.process_time() - built
    table = next(folder.iterdir()).stat().st_size
    outermost = GT.power(GT.generator, [2**40, -(2**40)])
    worst = core_seconds(lambda: logarithm(outermost), 3) / 2
    small = DiscreteLog(GT, PAIRS * 4**BITS, folder)
    values = GT.power(GT.generator, [int(v) for v in columns(1, 8)[0] * 2**18])
    typical = core_seconds(lambda: small(values), 3) / 8
    opening = decrypt_alone(bench, message) + worst
    units = UnitCosts(
        encrypt[G1], encrypt[G2], decode[G1], decode[G2], (whole - start) / PAIRS, start, first, second, typical
    )
    bars = [
        Bar("encryption in G1, us a value", 1e6 * encrypt[G1], 60),
        Bar("encryption in G2, us a value", 1e6 * encrypt[G2], 120),
        Bar(f"multiply-accumulate of {PAIRS} encrypted pairs, us a pair", 1e6 * whole / PAIRS, 740),
        Bar(f"its speed-up on 2 of {cores()} cores", alone / both, 1.7, at_least=True),
        Bar("decryption of |m| = 2^40, s", opening, 1),
        Bar("its table, MB", table / 1e6, 256),
        Bar("linear against pair, times cheaper a pair", whole / PAIRS / plain_pair, 8, at_least=True),
    ]
    print(f"load {os.getloadavg()[0]:.1f}; against one, two processes reach {most:.2f}, two threads {alone / both:.2f}")
    print(f"table of 2^22 baby steps: {built:.1f} s once, kept on disk; a pair in linear: {1e6 * plain_pair:.2f} us")
    print(f"server's check of an uploaded value: {1e6 * decode[G1]:.0f} us (G1), {1e6 * decode[G2]:.0f} us (G2)")
    print(f"opening a sum: first party {1e3 * first:.1f} ms, second {1e3 * second:.1f} ms + logarithm\n")
    return units, bars, bench


def decrypt_alone(bench: Bench, message: Encoded) -> float:
    partial = Partial.decode(message, 4, what="k")
    return core_seconds(lambda: finish(partial, bench.x.public, bench.y, SESSION, "k"), 3) / 4


def compare_model(units: UnitCosts, bench: Bench) -> list[Bar]:
    """Larger runs on one core: the model's seconds against the measured ones."""
    bars = []
    print("cost model   n     widths     party encrypts s   server s   opens s   upload bytes of each party")
    for rows, widths in LARGER:
        plan = ProductPlan.gram(rows, {f"p{i}": width for i, width in enumerate(widths)})
        model = Estimate(plan, units)
        uploads, seconds = {}, {}
        for party, width in plan.widths.items():
            start = time.process_time()
            for group in groups_of(plan, party):
                uploads[party, group] = bench.upload(group, columns(width, rows))
            seconds[party] = time.process_time() - start
        start, sums = time.process_time(), []
        decoded = {(p, group): group.decode(data, what=p) for (p, group), data in uploads.items()}
        for k, l in plan.blocks:
            sums.append(multiply(decoded[k, G1], decoded[l, G2]))
        server = time.process_time() - start
        count = len(sums[0])
        encoded = GT.encode(sums[0])
        opens = core_seconds(lambda e=encoded: bench.first(e), 1)
        predicted = {party: model.encryption(party) for party in plan.widths}
        print(
            f"  model    {rows:5}  {widths!s:12} {max(predicted.values()):12.3f} {model.server():12.2f}"
            f" {count * units.first:9.3f}   {[model.upload_bytes(p) for p in plan.widths]}"
        )
        sizes = [sum(d.size for (q, _), d in uploads.items() if q == p) for p in plan.widths]
        print(f"  measured {rows:5}  {widths!s:12} {max(seconds.values()):12.3f} {server:12.2f} {opens:9.3f}   {sizes}")
        for name, expected, measured in (
            ("encryption", max(predicted.values()), max(seconds.values())),
            ("server", model.server(), server),
            ("bytes", float(sum(model.upload_bytes(p) for p in plan.widths)), float(sum(sizes))),
        ):
            bars.append(Bar(f"model off by, {name}, n = {rows}, {widths}, %", 100 * abs(expected / measured - 1), 20))
    return bars


def compare_parties(bench: Bench) -> list[Bar]:
    """With n and d_k fixed, what a participant encrypts and uploads as K grows: by its place in the order."""
    rows, width = 300, 2
    table = columns(width, rows)
    places: dict[str, list[list[Group]]] = {"first": [], "last": [], "between": []}  # at each K: what is encrypted
    for count in range(2, 9):
        plan = ProductPlan.gram(rows, {f"p{i}": width for i in range(count)})
        places["first"].append(groups_of(plan, "p0"))
        places["last"].append(groups_of(plan, f"p{count - 1}"))
        if count > 2:
            places["between"].append(groups_of(plan, "p1"))
    seconds, sizes = {}, {}
    for name, every in places.items():
        work = [lambda groups=groups: [bench.upload(group, table) for group in groups] for groups in every]
        turns = [[core_seconds(f, 1) for f in work] for _ in range(15)]  # every K in every turn: the machine changes
        seconds[name] = [min(times) for times in zip(*turns, strict=True)]
        sizes[name] = [float(sum(message.size for message in f())) for f in work]
    print(
        "\nK = 2..8, n and d_k fixed: encryption ms, upload bytes, and partials a participant makes (one a coefficient)"
    )
    for name in seconds:
        times = " ".join(f"{1e3 * s:.1f}" for s in seconds[name])
        print(f"  {name:8} {times}   {sorted(set(sizes[name]))}")
    print("  coefficients of the first party, d_k sum of the others' d: " + " ".join(str(4 * k) for k in range(1, 8)))
    return [
        Bar(f"{what} of the {name} party, spread over K = 2..8, %", 100 * (max(v) / min(v) - 1), 10)
        for what, values in (("encryption", seconds), ("upload", sizes))
        for name, v in values.items()
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        units, bars, bench = measure(Path(folder))
    bars += compare_model(units, bench)
    bars += compare_parties(bench)
    print("\n" + "\n".join(str(bar) for bar in bars))
    print(f"bytes of an opened sum: {decrypt.partial_bytes(1)} from the first party, {4 * GT.size} twice before")
    sys.exit(0 if all(bar.holds for bar in bars) else 1)


if __name__ == "__main__":
    main()
