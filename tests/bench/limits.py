"""Our hot paths beside the machine's limit for the same work, in turns: how many times the limit each takes.

    python -m tests.bench.limits

The limit is what the library below does with nothing of ours around it: one TLS connection, one cipher, one loop of
pairings, one signature and one unsealing a ballot. Turn by turn, so that other work on the machine falls on both;
processor time, but for the connection.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from launch.keys import make_keys
from launch.pool import Pool
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import SecureRandom, Stream
from smpc.ballots import envelope
from smpc.ballots.box import Box
from smpc.ballots.envelope import Envelope
from smpc.bgn.curve import G1, G2
from smpc.bgn.mcl import WORDS, library
from smpc.cast import Cast
from smpc.engine.session import CryptenSession
from smpc.engine.sharing import keyed, ring_elements
from smpc.ring import inner
from tests.ballots.support import Election
from tests.bench.barrier import together
from tests.bench.bench_bgn import Bench, columns, multiply
from tests.bench.text import aligned, spread

TURNS = 7
MEGABYTES = 64
PAIRS = 512


@dataclass(frozen=True)
class Beside:
    """Seconds of ours and of the limit, turn by turn, for `amount` units of work."""

    name: str
    limit: str
    unit: str
    amount: float
    ours: tuple[float, ...]
    least: tuple[float, ...]

    def line(self) -> list[str]:
        rates = [f"{self.amount / min(seconds):,.0f} {self.unit}" for seconds in (self.ours, self.least)]
        times = [a / b for a, b in zip(self.ours, self.least, strict=True)]
        return [self.name, *rates, spread(times), self.limit]


def seconds(f: Callable[[], object]) -> float:
    """Of processor time."""
    start = time.process_time()
    f()
    return time.process_time() - start


def in_turns(
    name: str, limit: str, unit: str, amount: float, ours: Callable[[], Any], bare: Callable[[], Any]
) -> Beside:
    ours(), bare()
    turns = [(seconds(ours), seconds(bare)) for _ in range(TURNS)]
    return Beside(name, limit, unit, amount, tuple(t[0] for t in turns), tuple(t[1] for t in turns))


def sockets() -> Beside:
    """64 MB from one process to another, until the other has it all and says so."""
    with bare_connection() as bare, Pool(Cast(("p0", "p1"))) as pool:
        bare(), pool.run(send_task)
        turns = [(pool.run(send_task)["p0"], bare()) for _ in range(TURNS)]
    ours, least = zip(*turns, strict=True)
    return Beside("messages over TLS", "one TLS 1.3 connection, 1 MB a write", "MB/s", MEGABYTES, ours, least)


def send_task(s: CryptenSession) -> float:
    together(s)
    start = time.perf_counter()
    block = np.zeros(1 << 17)
    if s.me == "p0":
        for _ in range(MEGABYTES):
            s.network.send("p1", "block", block)
        s.network.receive("p1", "all", np.float64, (1,))
    if s.me == "p1":
        for _ in range(MEGABYTES):
            s.network.receive("p0", "block", np.float64, block.shape)
        s.network.send("p0", "all", np.zeros(1))
    return time.perf_counter() - start


@contextmanager
def bare_connection() -> Iterator[Callable[[], float]]:
    """Seconds for the same bytes over a connection of the ssl module."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = make_keys("bare", Path(folder))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            reader = multiprocessing.get_context("spawn").Process(
                target=read_all, args=(listener, str(certificate), str(key)), daemon=True
            )
            reader.start()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with socket.create_connection(listener.getsockname()) as plain, context.wrap_socket(plain) as connection:
                block = bytes(1 << 20)

                def send() -> float:
                    start = time.perf_counter()
                    for _ in range(MEGABYTES):
                        connection.sendall(block)
                    connection.recv(1)
                    return time.perf_counter() - start

                yield send
        reader.join()


def read_all(listener: socket.socket, certificate: str, key: str) -> None:
    """The other end: a byte back for each MEGABYTES read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate, key)
    plain, _ = listener.accept()
    with context.wrap_socket(plain, server_side=True) as connection:
        buffer = bytearray(1 << 20)
        left = MEGABYTES << 20
        while size := connection.recv_into(buffer):
            left -= size
            if not left:
                connection.sendall(b".")
                left = MEGABYTES << 20


def masks() -> Beside:
    shape = (10, 100_000)
    zeros, out = bytes(8 * shape[0] * shape[1]), bytearray(8 * shape[0] * shape[1])
    return in_turns(
        "masks of a table",
        "AES-256-CTR of `cryptography`, one call",
        "MB/s",
        len(out) / 1e6,
        lambda: ring_elements(keyed(bytes(32), "bench"), shape),
        lambda: Cipher(algorithms.AES256(bytes(32)), modes.CTR(bytes(16))).encryptor().update_into(zeros, out),
    )


def products() -> Beside:
    x, y = (np.random.default_rng(i).integers(-(2**63), 2**63, (10, 100_000), dtype=np.int64) for i in (0, 1))
    a, b = x.astype(np.float64), y.astype(np.float64)
    return in_turns(
        "integer product 10 x 10",
        "the same product in float64 (BLAS, inexact)",
        "M multiply-adds/s",
        x.shape[1] * 100 / 1e6,
        lambda: inner(x, y),
        lambda: a @ b.T,
    )


def pairings() -> Beside:
    """Four Miller loops a pair, 128 pairs a call."""
    bench, one, lib = Bench(), columns(1, PAIRS), library()
    a, b = (group.decode(bench.upload(group, one), what="k") for group in (G1, G2))
    points = [np.ascontiguousarray(side[0, 0]) for side in (a, b)]
    out = np.empty(WORDS["GT"], dtype=np.uint64)

    def bare() -> None:
        for _ in range(4):
            for start in range(0, PAIRS, 128):
                parts = (np.ascontiguousarray(side[start : start + 128]) for side in points)
                p, q = parts
                lib.mclBn_millerLoopVec(out.ctypes.data, p.ctypes.data, q.ctypes.data, len(p))

    return in_turns(
        "products of encrypted pairs",
        "mcl's loop of 4 pairings a pair, one core",
        "pairs/s",
        PAIRS,
        lambda: multiply(a, b, 1),
        bare,
    )


class Counting(SecureRandom):
    """Counts the words drawn."""

    drawn = 0

    def words(self, count: int) -> Any:
        self.drawn += count
        return super().words(count)


def sampler(name: str, law: Any) -> Beside:
    draws, random = 1_000_000, Counting()
    law.draw(draws, random)
    words, stream = random.drawn, Stream(bytes(32))
    return in_turns(
        f"{name} at 2^20",
        f"AES-256-CTR of the {8 * words / draws:.0f} random bytes a draw",
        "draws/s",
        draws,
        lambda: law.draw(draws, SecureRandom()),
        lambda: stream.words(words),
    )


def ballots() -> Beside:
    """A compute party with seeds, one core: ballots kept on disk and taken out again."""
    election = Election(("p0", "p1"), tuple(f"v{i}" for i in range(40)), 1_000, 10)
    made = {voter: election.ballot(voter, election.votes(voter))["p1"].to_bytes() for voter in election.voters}
    suite, key = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM), election.seal("p1")
    envelopes = {voter: Envelope.read(data) for voter, data in made.items()}
    numbers = count()

    with tempfile.TemporaryDirectory() as folder:

        def ours() -> None:
            place = Path(folder) / str(next(numbers))
            place.mkdir()
            box = Box(election.poll, "p1", key, place)
            for data in made.values():
                box.put(data)
            box.take(np.arange(len(made)))

        def bare() -> None:
            for voter, one in envelopes.items():
                signed = envelope._signed(election.poll.id, voter, one.digests)
                election.poll.voters[voter].verify(one.signature, signed)
                hashlib.sha256(one.sealed).digest()
                content = suite.decrypt(one.sealed, key, info=envelope._info(election.poll.id, voter, "p1"))
                Stream(content).words(election.poll.entries)

        return in_turns(
            "ballots of 10,000 entries in",
            "Ed25519, HPKE and AES-256-CTR of `cryptography`",
            "ballots/s",
            len(made),
            ours,
            bare,
        )


def report() -> str:
    scale = Fraction(2**20)
    rows = [
        sockets(),
        masks(),
        products(),
        pairings(),
        sampler("discrete Laplace", DiscreteLaplace(scale)),
        sampler("discrete Gaussian", DiscreteGaussian(scale**2)),
        ballots(),
    ]
    header = ["hot path", "ours", "limit", "times the limit", "the limit is"]
    return aligned([header, *(row.line() for row in rows)])


if __name__ == "__main__":
    print(report())
