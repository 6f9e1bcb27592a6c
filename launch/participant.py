"""One participant of a job, from its own table to its result files: `smpc party`."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from launch.job import Job
from launch.outputs import check_free, cost_json, model_json, write_folder
from launch.progress import Progress
from launch.tables import Table, read_table
from mechanisms.guarantee import Guarantee
from mechanisms.ledger import Ledger
from protocols import functional
from protocols.plan import Plan
from protocols.schema import Floats, Schema
from smpc.cost import CostReport
from smpc.engine.dealer import Dealer
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.session import CryptenSession
from smpc.engine.start import join
from smpc.engine.tls import Address, Identity, fingerprint
from smpc.errors import PeerError
from smpc.session import Cast, Held


@dataclass(frozen=True)
class Endpoints:
    """Where the participants listen and which certificates they show."""

    addresses: Mapping[str, Address]
    certificates: Mapping[str, Path]

    def public_facts(self) -> dict[str, str]:
        """What participants must agree on, as in a job."""
        hosts = {f"address of {name}": f"{host} port {port}" for name, (host, port) in self.addresses.items()}
        return hosts | {f"certificate of {name}": fingerprint(path) for name, path in self.certificates.items()}


def take_part(
    job: Job,
    identity: Identity,
    endpoints: Endpoints,
    listener: Callable[[], socket.socket],
    out: Path,
    progress: Progress,
) -> None:
    """Play one role of `job` to its end and write this participant's files into `out`.

    The own table is checked before any connection is made: its faults are told on the owner's terminal only.
    """
    check_free(out)
    me = identity.name
    table = _own_table(job, me)
    facts = {**job.public_facts(), **endpoints.public_facts(), "software": "sharewise 0.1"}
    if table is not None:
        rows = table.columns.shape[1]
        facts["rows"] = str(rows)
        Plan.make(schema_of(job, rows), **job.plan_arguments)  # what the ring cannot hold is told before any connection
    cast = Cast(tuple(party.name for party in job.parties), job.server.name, job.dealer.name)
    progress.say(f"{me}: waiting for the others")
    network, agreement = join(
        cast,
        identity,
        endpoints.addresses,
        endpoints.certificates,
        listener(),
        facts,
        deadline=job.deadline,
        start_deadline=job.start_deadline,
    )
    with progress.watch(network), network:
        if me == cast.dealer:
            start = time.perf_counter()
            dealer = Dealer(network, agreement, cast.parties)
            handshake = network.sent()
            dealer.serve()
            report = CostReport(me, handshake, {n: c - handshake[n] for n, c in network.sent().items()})
            report.seconds = {"correlated randomness": dealer.seconds, "total": time.perf_counter() - start}
            report.messages_sent = network.sent_frames()
            files = {"cost.json": cost_json({me: report.to_dict()})}
        else:
            files = _run(job, cast, network, agreement, table)
    write_folder(out, files)
    progress.say(f"{me}: done")


def _own_table(job: Job, me: str) -> Table | None:
    spec = job.party(me)
    if spec is None:
        return None
    table = read_table(spec, clip=job.clip)
    for column, count in table.clipped.items():
        print(f"{me}: {count} values of {column} were clipped to its bounds", file=sys.stderr)
    return table


def _run(job: Job, cast: Cast, network: Network, agreement: Agreement, table: Table | None) -> dict[str, str]:
    """The protocol, and the texts of the result files."""
    try:
        rows = int(agreement.facts["rows"])
    except (KeyError, ValueError):
        raise PeerError("the parties did not state their rows; is everybody's software the same?") from None
    schema = schema_of(job, rows)
    plan = Plan.make(schema, **job.plan_arguments)
    charge(job, network.me, plan.guarantee(cast))
    session = CryptenSession(cast, network, agreement)
    if table is not None:
        compare_ids(network, agreement, cast, table)
    release = functional.fit(session, held_tables(job, network.me, table), plan)
    report = session.report()
    for warning in report.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    about = {"job": job.name, "protocol": job.protocol, "loss": job.options.loss, "rows": rows, "label": job.label.name}
    numbers = {
        "fraction_bits": plan.bits,
        "noise_standard_deviation": plan.noise_deviation,
        "indefinite": release.indefinite,
    }
    return {
        "model.json": model_json(release, {**about, **numbers}),
        "guarantee.json": release.guarantee.to_json() + "\n",
        "cost.json": cost_json({network.me: report.to_dict()}),
        "transcript.jsonl": session.transcript.to_jsonl(),
    }


def charge(job: Job, me: str, guarantee: Guarantee) -> None:
    """Charge the release to the party's ledger before anything of its data is sent. Raises BudgetError over the cap."""
    spec = job.party(me)
    if spec is None:
        return
    if spec.ledger is None:
        print(f"{me}: no ledger in the job file: nobody keeps count of releases of {spec.table.name}", file=sys.stderr)
        return
    collusion = len(job.parties) - 1
    Ledger(spec.ledger).reserve(spec.data_set, guarantee.worst(collusion), job=job.name)


def compare_ids(network: Network, agreement: Agreement, cast: Cast, table: Table) -> None:
    """Refuse rows that are not the same people in the same order. Server and dealer learn nothing of it.

    Each party tells each other party a keyed digest of its ids; the key is theirs alone and new in every job.
    """
    network.step = "row ids"
    others = [name for name in cast.parties if name != network.me]
    digests = {name: _keyed_digest(agreement.key(name, "ids"), table) for name in others}
    for name in others:
        network.send(name, "row ids", np.frombuffer(digests[name], dtype=np.uint8))
    for name in others:
        theirs = network.receive(name, "row ids", np.uint8, (32,)).tobytes()
        if not hmac.compare_digest(theirs, digests[name]):
            raise PeerError(
                f"{network.me} and {name} do not hold the same ids: align the tables on their id column first"
            )


def _keyed_digest(key: bytes, table: Table) -> bytes:
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for start in range(0, len(table.ids), 1 << 14):  # piece by piece: the ids as Python strings would be a second table
        piece = [str(value) for value in table.ids[start : start + (1 << 14)].to_pylist()]
        digest.update(json.dumps(piece).encode())
    return digest.digest()


def held_tables(job: Job, me: str, table: Table | None) -> dict[str, Held[Floats]]:
    """Every party's columns as this process has them: its own, and the others' as handles."""
    return {
        spec.name: Held(spec.name, table.columns if table is not None and spec.name == me else None)
        for spec in job.parties
    }


def schema_of(job: Job, rows: int) -> Schema:
    """The public facts of the job's columns."""
    return Schema(rows, {spec.name: job.features(spec.name) for spec in job.parties}, job.label_party, job.label)
