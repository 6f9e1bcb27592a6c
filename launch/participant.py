"""One participant of a job, from its own table to its result files: `smpc party`."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from launch.job import Job
from launch.jobfile.parties import PartySpec
from launch.outputs import cost_json, kept, reserved, write_folder
from launch.progress import Progress
from launch.tasks.exclusions import check_excluded, excluding
from launch.trace import NAME as TRACE
from launch.trace import trace_json
from smpc.engine.dealer import Dealer
from smpc.engine.recorder import Recorder
from smpc.engine.start import join
from smpc.engine.tls import Address, Contexts, Identity, fingerprint
from smpc.errors import InputError


@dataclass(frozen=True)
class Endpoints:
    """Where the participants listen and which certificates they show."""

    addresses: Mapping[str, Address]
    certificates: Mapping[str, Path]

    def public_facts(self) -> dict[str, str]:
        """What participants must agree on, as in a job."""
        hosts = {f"address of {name}": f"{host} port {port}" for name, (host, port) in self.addresses.items()}
        return hosts | {f"certificate of {name}": fingerprint(path) for name, path in self.certificates.items()}


def with_own_account(job: Job, me: str, ledger: Path, data_set: str | None) -> Job:
    """The job with `me`'s releases charged where its owner says, not where the shared file does."""
    if not any(isinstance(party, PartySpec) and party.name == me for party in job.task.parties):
        raise InputError(f"--ledger {ledger}: {me} brings no table to this job and is charged nothing; leave it out")
    parties = tuple(
        replace(party, ledger=ledger, data_set=data_set or party.data_set)
        if isinstance(party, PartySpec) and party.name == me
        else party
        for party in job.task.parties
    )
    return replace(job, task=replace(job.task, parties=parties))  # type: ignore[type-var]  # every task is a dataclass


def take_part(
    job: Job,
    identity: Identity,
    endpoints: Endpoints,
    listener: Callable[[], socket.socket],
    out: Path,
    progress: Progress,
    *,
    trace: bool = False,
) -> None:
    """Play one role of `job` to its end and write this participant's files into `out`.

    The own table is checked before any connection is made: its faults are told on the owner's terminal only. With
    `trace`, the times of steps and messages are written, too.
    """
    me, cast = identity.name, job.cast
    with reserved(out), kept(job.task.leftovers(me)):
        check_excluded(job.path, job.task.parties)
        mine = job.task.prepare(me)
        mine.check_budget()
        contexts, door = Contexts(identity, endpoints.certificates), listener()
        others = ", ".join(name for name in cast.everyone if name != me)
        progress.say(f"waiting for {others} (up to {job.start_deadline:g} s)")
        recorder = Recorder(me) if trace else None
        network, agreement = join(
            cast,
            contexts,
            endpoints.addresses,
            door,
            {**job.public_facts(), **endpoints.public_facts(), **mine.facts, "software": "sharewise 0.1"},
            deadline=job.deadline,
            start_deadline=job.start_deadline,
            recorder=recorder,
        )
        with progress.watch(network):  # until all is written: whoever says nothing is taken for stopped
            with network:
                if me == cast.dealer:
                    dealer = Dealer(network, agreement, cast.parties)
                    dealer.serve()
                    files: dict[str, str | bytes] = {"cost.json": cost_json({me: dealer.report().to_dict()})}
                else:
                    with excluding(job.path, job.task.parties):
                        files = job.task.run(cast, network, agreement, mine)
            if recorder is not None:
                files[TRACE] = trace_json(recorder, cast.everyone)
            write_folder(out, files)
    progress.say(f"done, results are in {out}")
