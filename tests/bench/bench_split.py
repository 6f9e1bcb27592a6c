"""Split learning between two processes: samples a second, bytes a sample, what protection adds.

    python -m tests.bench.bench_split [--rows N] [--repeats R] [--hosts A B] [--wrap "COMMAND A" "COMMAND B"]

On loopback, or between two hosts' addresses on this machine: `--wrap` stands before each party's command, like
"ip netns exec a". Delay and rate are those of the link as it is given.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from launch.keys import make_keys
from mechanisms.randomness import SecureRandom
from protocols.split.memo import Memo
from protocols.split.models import FeatureNet, LabelNet, seeded
from protocols.split.one_shot import train_one_shot
from protocols.split.perturb import on_lattice, perturbation
from protocols.split.plan import Plan
from protocols.split.sides import FeatureSide, LabelSide
from protocols.split.train import released_values, train
from smpc import Held
from smpc.engine.session import CryptenSession
from smpc.engine.start import join
from smpc.engine.tls import Contexts, Identity, listen

NAMES = ("ann", "bob")
PORT = 17_843
NUMBERS, CATEGORIES, CUT = 13, (1000,) * 26, 16


def plans(rows: int) -> dict[str, Plan]:
    law = perturbation("laplace", 1)
    common: dict[str, Any] = {"features": "ann", "labels": "bob", "rows": rows, "cut": CUT, "checkpoint": 10**6}
    return {
        "unprotected, batch 256": Plan(**common, law=None, unprotected=True, batch=256),
        "coupled, batch 256": Plan(**common, law=law, batch=256),
        "independent, batch 256": Plan(**common, law=law, batch=256, coupling="independent"),
        "unprotected, batch 256, 8 ahead": Plan(**common, law=None, unprotected=True, batch=256, ahead=8),
        "coupled, batch 256, 8 ahead": Plan(**common, law=law, batch=256, ahead=8),
        "coupled, batch 1024, 8 ahead": Plan(**common, law=law, batch=1024, ahead=8),
        "one-shot, batch 256": Plan(**common, law=law, batch=256),
    }


def run(s: CryptenSession, name: str, plan: Plan, folder: Path) -> dict[str, float]:
    """Seconds of one epoch, processor seconds of drawing into a new memo, and bytes sent."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(plan.rows, NUMBERS)).astype(np.float32)
    codes = rng.integers(0, 1000, (plan.rows, len(CATEGORIES)))
    features: Held[FeatureSide] = Held("ann")
    labels: Held[LabelSide] = Held("bob")
    drawn = 0.0
    released: Held[Any] = Held("bob")
    if s.me == "ann":
        net = seeded(0, lambda: FeatureNet(NUMBERS, CATEGORIES, CUT))
        features = Held("ann", FeatureSide(net, [torch.from_numpy(numbers), torch.from_numpy(codes)], plan))
    else:
        start = time.process_time()
        memo = Memo(tempfile.mkdtemp(dir=folder) + "/memo")
        truth = (numbers[:, 0] > 1).astype(np.int64)
        values = released_values(truth, [str(i) for i in range(plan.rows)], plan, memo, SecureRandom())
        drawn = time.process_time() - start
        released = Held("bob", values)
        labels = Held("bob", LabelSide(seeded(1, lambda: LabelNet(CUT, plan.width)), values, plan))
    s.publish(Held("ann", np.zeros(1) if s.me == "ann" else None), shape=(1,), message="ready")
    s.publish(Held("bob", np.zeros(1) if s.me == "bob" else None), shape=(1,), message="ready")
    before = sum(s.network.sent_on_purpose().values())
    start, processor = time.perf_counter(), time.process_time()
    if name.startswith("one-shot"):
        train_one_shot(s, features, released, lambda: seeded(1, lambda: LabelNet(CUT, plan.width)), plan)
    else:
        train(s, features, labels, plan)
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "drawn": drawn,
        "bytes": sum(s.network.sent_on_purpose().values()) - before,
    }


def party(me: str, folder: Path, hosts: list[str], rows: int, repeats: int) -> None:
    torch.set_num_threads(1)
    cast = plans(rows)["coupled, batch 256"].cast
    addresses = {name: (host, PORT + i) for i, (name, host) in enumerate(zip(NAMES, hosts, strict=True))}
    certificates = {name: folder / f"{name}.crt" for name in NAMES}
    identity = Identity(me, folder / f"{me}.key", certificates[me])
    network, agreement = join(
        cast, Contexts(identity, certificates), addresses, listen(addresses[me]), {}, deadline=60, start_deadline=60
    )
    with network:
        s = CryptenSession(cast, network, agreement)
        found: dict[str, list[dict[str, float]]] = {name: [] for name in plans(rows)}
        for _ in range(repeats):
            for name, plan in plans(rows).items():
                found[name].append(run(s, name, plan, folder))
    print(json.dumps(found))


def table(found: dict[str, dict[str, list[dict[str, float]]]], rows: int) -> str:
    """Medians. `processor`: both processes' processor seconds an epoch, which other work on the machine moves less."""
    lines = [
        f"{'':>32} {'samples/s':>10} {'bytes/sample':>13} {'s an epoch':>11} {'processor s':>12} {'draws, memo s':>14}"
    ]
    processor = {}
    for name, own in found["ann"].items():
        pairs = list(zip(own, found["bob"][name], strict=True))
        seconds = float(np.median([max(a["seconds"], b["seconds"]) for a, b in pairs]))
        processor[name] = [a["processor"] + b["processor"] for a, b in pairs]
        drawn = float(np.median([b["drawn"] for _, b in pairs]))
        sent = sum(side["bytes"] for side in pairs[0]) / rows
        spent = float(np.median(processor[name]))
        lines.append(
            f"{name:>32} {rows / seconds:>10,.0f} {sent:>13.1f} {seconds:>11.2f} {spent:>12.2f} {drawn:>14.2f}"
        )
    for tail in ("batch 256", "batch 256, 8 ahead"):
        ratio = float(np.median(processor[f"coupled, {tail}"]) / np.median(processor[f"unprotected, {tail}"]))
        lines.append(f"coupled over unprotected, {tail}: processor time {100 * (ratio - 1):+.1f} %")
    return "\n".join(lines)


def label_steps(rows: int, turns: int = 15) -> str:
    """Processor time of the label party's own steps in one process, law and no law by turns."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    truth = (rng.random(rows) < 0.2).astype(np.int64)
    embeddings = rng.normal(size=(256, CUT)).astype(np.float32)
    spent: dict[str, list[float]] = {}
    for _ in range(turns):
        for name in ("unprotected, batch 256", "coupled, batch 256", "independent, batch 256"):
            plan = plans(rows)[name]
            values = on_lattice(truth, 2, 1)[np.newaxis]
            if plan.law is not None:
                values = plan.law.draw(np.tile(truth, plan.copies), SecureRandom()).reshape(plan.copies, rows, 1)
            side = LabelSide(seeded(1, lambda: LabelNet(CUT, 1)), values, plan)
            start = time.process_time()
            for _, places in plan.batches():
                side.step(places, embeddings[: len(places)])
            spent.setdefault(name, []).append(time.process_time() - start)
    plain, *others = spent.items()
    lines = []
    for name, own in others:
        low, middle, high = np.quantile(np.array(own) / np.array(plain[1]), (0.25, 0.5, 0.75))
        told = f"{100 * (middle - 1):+.1f} % [{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]"
        lines.append(f"label party's steps, {name}, over unprotected: processor time {told}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_480)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--hosts", nargs=2, default=["127.0.0.1", "127.0.0.1"])
    parser.add_argument("--wrap", nargs=2, default=["", ""])
    parser.add_argument("--party", nargs=2, help="for the processes that this one starts")
    given = parser.parse_args()
    if given.party:
        party(given.party[0], Path(given.party[1]), given.hosts, given.rows, given.repeats)
        return
    with tempfile.TemporaryDirectory(prefix="smpc-bench-") as folder:
        for name in NAMES:
            make_keys(name, Path(folder))
        sizes = ["--rows", str(given.rows), "--repeats", str(given.repeats), "--hosts", *given.hosts]
        running = [
            subprocess.Popen(
                [*shlex.split(wrap), sys.executable, "-m", "tests.bench.bench_split", "--party", name, folder, *sizes],
                stdout=subprocess.PIPE,
                text=True,
            )
            for name, wrap in zip(NAMES, given.wrap, strict=True)
        ]
        outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit("a party failed: see above")
    print(table({name: json.loads(output) for name, output in zip(NAMES, outputs, strict=True)}, given.rows))
    print(label_steps(given.rows))


if __name__ == "__main__":
    main()
