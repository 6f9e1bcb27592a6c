"""Ballots a minute through the whole way: voters over TLS, boxes, checks on shares, counts. Two compute parties.

    python -m tests.bench.bench_ballots [voters [samples [classes]]]

One process plays all voters, each compute party, the server and the dealer are processes of their own, as in a job. The
opened counts are compared with the plain ones (they are opened for that here; a release never opens them).
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from launch.keys import make_keys
from launch.pool import Pool
from smpc.ballots.counting import tally
from smpc.ballots.door import hand_in, open_doors
from smpc.ballots.receiver import Receiver
from smpc.ballots.shares import content_bytes
from smpc.cast import Cast
from smpc.engine.tls import Identity, listen
from smpc.values import Held, value_of
from tests.ballots.support import Election

PARTIES = ("p0", "p1")


def peak_megabytes() -> float:
    """Of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """What each process has used so far (Linux)."""
    fields = {name: Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for name, pid in pids.items()}
    return {name: (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK") for name, f in fields.items()}


def open_door(s: Any, of: Election, folder: str) -> Any:
    """Start to receive; where."""
    if not s.is_party:
        return None
    place = Path(folder) / s.me
    place.mkdir()
    box = of.boxes(place)[s.me]
    listener = listen(("127.0.0.1", 0))
    keys = Path(folder) / f"{s.me}.key", Path(folder) / f"{s.me}.crt"
    s.door = Receiver(box, Identity(s.me, *keys), listener).__enter__()
    s.box = box
    return listener.getsockname()


def count(s: Any, of: Election) -> Any:
    """Tally until all have voted: counts at the server, and what it took here."""
    before, start = peak_megabytes(), time.perf_counter()
    own = s.box if s.is_party else None
    boxes = {party: Held(party, own if party == s.me else None) for party in s.cast.parties}
    sent = sum(s.network.sent().values())
    result = tally(s, boxes, of.poll)
    seconds = time.perf_counter() - start
    opened = s.reveal(result.counts, to="server", message="counts", unprotected=True)
    return {
        "counts": value_of(opened) if s.me == "server" else None,
        "counted": len(result.counted),
        "seconds": seconds,
        "sent": sum(s.network.sent().values()) - sent,
        "phases": dict(s.seconds),
        "megabytes": (before, peak_megabytes()),
    }


def measure(voters: int, samples: int, classes: int, say: Callable[[str], None] = print) -> float:
    """The largest memory of a compute party in MB. Raises ValueError where the counts are wrong."""
    of = Election(PARTIES, tuple(f"v{i}" for i in range(voters)), samples, classes)
    expected = np.zeros((of.poll.width, samples), dtype=np.int64)
    with tempfile.TemporaryDirectory() as folder, Pool(Cast(PARTIES), deadline=120.0) as pool:
        for party in PARTIES:
            make_keys(party, Path(folder))
        sender = replace(of)
        addresses = pool.run(open_door, of=replace(of), folder=folder)
        certificates = {party: Path(folder) / f"{party}.crt" for party in PARTIES}
        at = {party: addresses[party] for party in PARTIES}
        doors = open_doors(at, certificates, seconds=120)

        def vote() -> None:
            for voter in of.voters:
                labels = sender.poll.encode(sender.labels(voter))
                np.add(expected, labels, out=expected)
                hand_in(sender.ballot(voter, labels), doors)

        pids = {**{name: process.pid for name, process in pool.processes.items()}, "voters": os.getpid()}
        start, before = time.perf_counter(), processor_seconds(pids)
        with ThreadPoolExecutor(1) as threads:
            voting = threads.submit(vote)
            results = pool.run(count, of=replace(of))
            voting.result()
        seconds = time.perf_counter() - start
        used = {name: value - before[name] for name, value in processor_seconds(pids).items()}
        if not np.array_equal(results["server"]["counts"], expected):
            raise ValueError("the counts are wrong")
        first = sender.ballot(of.voters[0], of.votes(of.voters[0]))
        size = {party: len(envelope.to_bytes()) for party, envelope in first.items()}
    say(f"{voters} voters, {samples} samples, {classes} classes: counts exact")
    say(f"{60 * voters / seconds:,.0f} ballots a minute, voters' work included ({seconds:.1f} s)")
    own = sum(value for name, value in used.items() if name != "voters")
    told = ", ".join(f"{name} {1000 * value / voters:.2f}" for name, value in used.items())
    say(f"processor time a ballot in ms: {told}")
    say(f"without the voters' {1000 * own / voters:.2f} ms: {120 * voters / own:,.0f} ballots a minute on 2 cores")
    say(f"a voter sends {size} bytes; contents {content_bytes(of.poll.entries, first=True)} and 32")
    for party in PARTIES:
        r = results[party]
        low, high = r["megabytes"]
        say(
            f"{party}: {1000 * r['seconds'] / voters:.2f} ms a ballot, waiting included, {r['sent'] / voters:,.0f} "
            f"bytes sent a ballot, memory {low:.0f} to {high:.0f} MB"
        )
        say("    " + ", ".join(f"{name} {value:.1f} s" for name, value in sorted(r["phases"].items())))
    return float(max(results[party]["megabytes"][1] for party in PARTIES))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    measure(*(given + [5000, 1000, 10][len(given) :]))
