"""Jobs of the ensemble: [auxiliary], [voters], and the compute parties' doors for ballots."""

from __future__ import annotations

import hashlib
import json
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from launch.ballot_keys import SEAL, public_sealing_key, read_roster, read_sealing_key
from launch.jobfile.compute_parties import ComputeParty, read_classes, read_compute_parties
from launch.jobfile.endpoints import ENDPOINT_KEYS, Endpoint, read_endpoint
from launch.jobfile.fields import Fields, JobError
from launch.jobfile.options import read_delta, read_epsilon
from launch.noise_share import votes_line
from launch.outputs import BALLOTS, cost_json
from launch.tables.auxiliary import AuxiliaryTable
from launch.tasks.counted import counted_run
from launch.tasks.task import Outlook, Prepared, Task
from launch.tasks.trial import ROWS, Size, Trial
from launch.voted_model import FEATURES, VOTED, are_different, rule, weight_names
from protocols.ensemble import paper, statistic
from protocols.ensemble.auxiliary import Auxiliary
from protocols.ensemble.budget import Budget
from protocols.ensemble.paper import CONSTANTS, LABELS, PaperPlan
from protocols.ensemble.release import EnsembleRelease
from protocols.ensemble.statistic import StatisticPlan
from smpc.ballots.box import Box
from smpc.ballots.counting import FULL_VOTE, LONGEST_VOTE, full_vote
from smpc.ballots.poll import ID_BYTES, Poll
from smpc.ballots.receiver import Receiver
from smpc.cast import Cast
from smpc.engine.handshake import Agreement, derive
from smpc.engine.network import Network
from smpc.engine.session import CryptenSession
from smpc.engine.tls import Identity, fingerprint, listen
from smpc.forecast import Forecast
from smpc.session import Session
from smpc.values import Held

STATISTIC = "statistic"
NO_BALLOTS = bytes(ID_BYTES)  # the job and the run of a poll that is planned only


@dataclass(frozen=True)
class Door:
    """What a compute party opens before it connects."""

    key: X25519PrivateKey
    identity: Identity
    listener: socket.socket


@dataclass(frozen=True)
class EnsembleTask(Task):
    """A linear classifier of public samples, from the secret votes of registered voters."""

    TABLES = ("auxiliary", "voters")
    SIZES: ClassVar[Mapping[str, Size]] = {
        "rows": replace(ROWS, default=(100, 1_000, 10_000)),
        "parties": Size((2, 3), 2, 3),
        "voters": Size((20,), 1, 100_000),
    }
    KEYS = ("release", "epsilon", "allow_weak", "delta", "regularisation", "constants")

    job: str
    release: str
    budget: Budget
    regularisation: Fraction
    constants: str
    table: AuxiliaryTable
    classes: tuple[str, ...]
    roster: Path
    seconds: float
    parties: tuple[ComputeParty, ...]
    helpers: tuple[Endpoint, ...]

    @classmethod
    def read(cls, path: Path, top: Fields, job: Fields) -> EnsembleTask:
        voters = top.inner("voters", ("keys", "seconds"))
        samples = top.inner("auxiliary", ("table", "id", "columns", "classes", "clip"))
        table, classes = AuxiliaryTable.read(path, samples), read_classes(samples)
        if not are_different(weight_names(classes, table.columns)):
            raise JobError(f"{path}: a class and a column together are called like others (CLASS: COLUMN); rename one")
        return cls(
            job=job.text("name"),
            release=job.text("release", STATISTIC, among=(STATISTIC, *LABELS)),
            budget=Budget(read_epsilon(job, "epsilon"), read_delta(job) if job.has("delta") else None),
            regularisation=Fraction(str(job.number("regularisation", 1e-4, 1e-9, 100))),
            constants=job.text("constants", "tight", among=CONSTANTS),
            table=table,
            classes=classes,
            roster=path.parent / voters.text("keys"),
            seconds=voters.number("seconds", 600, 1, LONGEST_VOTE),
            parties=read_compute_parties(path, top),
            helpers=tuple(read_endpoint(top.inner(who, ENDPOINT_KEYS), path) for who in ("server", "dealer")),
        )

    @cached_property
    def voters(self) -> dict[str, Ed25519PublicKey]:
        return read_roster(self.roster)

    def facts(self) -> dict[str, str]:
        roster = json.dumps({voter: key.public_bytes_raw().hex() for voter, key in self.voters.items()})
        return {
            "release": self.release,
            "epsilon": str(self.budget.epsilon),
            "delta": str(self.budget.delta or 0),
            "regularisation": str(self.regularisation),
            "constants": self.constants,
            "classes": json.dumps(self.classes, ensure_ascii=False),
            "voters": f"{len(self.voters)}, SHA-256 {hashlib.sha256(roster.encode()).hexdigest()}",
            "seconds for ballots": str(self.seconds),
            **self.table.facts(),
            **{f"sealing key of {party.name}": party.sealing_key for party in self.parties},
        }

    def poll(self, auxiliary: Auxiliary, run: bytes | None = None) -> Poll:
        """What a ballot is bound to: this job on these samples, for these voters and keys, and one run of it.

        Without `run` it is planned only.
        """
        job = NO_BALLOTS if run is None else self.job_hash(auxiliary)
        seals = {party.name: public_sealing_key(party.sealing_key) for party in self.parties}
        return Poll(job, run or NO_BALLOTS, seals, self.voters, auxiliary.count, len(self.classes))

    def job_hash(self, auxiliary: Auxiliary) -> bytes:
        """Of all that a voter trusts in: what is computed, from which samples and ballots, by whom.

        A participant is who has the certificate that the job file lists under its name, where it lists one.
        """
        everyone = (*self.parties, *self.helpers)
        listed = [(who.name, fingerprint(who.certificate) if who.certificate else "") for who in everyone]
        public = {"job": self.job, **self.facts(), "samples": digest(auxiliary), "participants": listed}
        return hashlib.sha256(json.dumps(public, sort_keys=True).encode()).digest()

    def plan(self, auxiliary: Auxiliary, run: bytes | None = None) -> StatisticPlan | PaperPlan:
        return self.plan_of(auxiliary, self.poll(auxiliary, run))

    def plan_of(self, auxiliary: Auxiliary, poll: Poll) -> StatisticPlan | PaperPlan:
        """All public numbers of this release."""
        if self.release == STATISTIC:
            return StatisticPlan(auxiliary, poll, self.budget, float(self.regularisation))
        return PaperPlan(auxiliary, poll, self.budget, self.release, self.constants, self.regularisation)

    def prepare(self, me: str) -> Prepared:
        auxiliary = self.table.load()
        self.plan(auxiliary)
        self.job_hash(auxiliary)  # a certificate's fault is told now
        return Prepared((auxiliary, self._door(me)), {"auxiliary samples": digest(auxiliary)})

    def _door(self, me: str) -> Door | None:
        for party in self.parties:
            if party.name == me and party.certificate is not None:
                key = read_sealing_key(party.certificate.with_suffix(SEAL))
                if key.public_key().public_bytes_raw().hex() != party.sealing_key:
                    raise JobError(f"sealing_key of {me}: is not that of {party.certificate.with_suffix(SEAL)}")
                identity = Identity(me, party.certificate.with_suffix(".key"), party.certificate)
                return Door(key, identity, listen(party.ballots))
        return None

    def run(self, cast: Cast, network: Network, agreement: Agreement, mine: Prepared) -> dict[str, str | bytes]:
        auxiliary, door = mine.data
        plan = self.plan(auxiliary, derive(agreement.nonce, "ballots"))
        session = CryptenSession(cast, network, agreement)
        refused: dict[str, int] = {}
        if door is None:
            boxes: dict[str, Held[Box]] = {party: Held(party) for party in cast.parties}
            released, report = counted_run(session, self.backend, lambda s: release(s, boxes, plan))
        else:
            with tempfile.TemporaryDirectory(prefix="smpc-ballots-") as folder:  # readable by this user only
                box = Box(plan.poll, network.me, door.key, Path(folder))
                boxes = {party: Held(party, box if party == network.me else None) for party in cast.parties}
                with Receiver(box, door.identity, door.listener), self._closing(box):
                    released, report = counted_run(session, self.backend, lambda s: release(s, boxes, plan))
                refused = {reason.value: count for reason, count in box.refused.items()}
        return {
            "model.json": self._model(released, plan),
            "guarantee.json": released.guarantee.to_json() + "\n",
            BALLOTS: _ballots(released, refused),
            "cost.json": cost_json({network.me: report.to_dict()}),
            "transcript.jsonl": session.transcript.to_jsonl(),
        }

    @contextmanager
    def _closing(self, box: Box) -> Iterator[None]:
        """The first party's clock closes the vote; the others' boxes are open until it has counted."""
        timer = threading.Timer(self.seconds, box.close)
        timer.daemon = True
        if box.me == self.parties[0].name:
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _model(self, released: EnsembleRelease, plan: StatisticPlan | PaperPlan) -> str:
        names = weight_names(self.classes, self.table.columns)
        about: dict[str, object] = {
            "job": self.job,
            "protocol": VOTED,
            "loss": "ensemble",
            "label": ", ".join(self.classes),
            "rows": plan.auxiliary.count,
            "classes": self.classes,
            "bounds": {column.name: [column.low, column.high] for column in self.table.columns},
            "release": self.release,
            "regularisation": str(self.regularisation),
            "voters_registered": len(self.voters),
            "voters_counted": len(released.counted),
            "features": FEATURES,
            "says": rule(self.classes),
        }
        if isinstance(plan, StatisticPlan):
            about["noise_share"] = plan.noise_share(len(released.counted))
        if released.statistic is not None:
            about["statistic"] = dict(zip(names, released.statistic.ravel().tolist(), strict=True))
        weights = dict(zip(names, released.weights.ravel().tolist(), strict=True))
        return json.dumps({**about, "coefficients": weights}, indent=1) + "\n"

    def outlook(self, cast: Cast, rows: int) -> Outlook:
        plan = self.plan(self.table.load())
        script = statistic.release if isinstance(plan, StatisticPlan) else paper.script(plan.labels)
        forecast = Forecast(cast, full_vote(plan.poll))
        release(forecast, {party: Held(party) for party in cast.parties}, plan)
        everybody = len(self.voters)
        noise = votes_line(plan.noise_share(everybody), len(self.classes)) if isinstance(plan, StatisticPlan) else ""
        return Outlook(script.__doc__ or "", plan.guarantee(cast, everybody), forecast, FULL_VOTE, noise)

    def trial(self, sizes: Mapping[str, int], backend: str) -> Trial:
        from launch.tasks.ensemble_trial import EnsembleTrial

        return EnsembleTrial(self, sizes["rows"], sizes["parties"], sizes["voters"])


def digest(auxiliary: Auxiliary) -> str:
    """Of public samples: who has others is told before anything runs."""
    rows = auxiliary.rows.astype("<i8")
    return f"{rows.shape[0]} x {rows.shape[1]}, SHA-256 {hashlib.sha256(rows.tobytes()).hexdigest()}"


def release(s: Session, boxes: Mapping[str, Held[Box]], plan: StatisticPlan | PaperPlan) -> EnsembleRelease:
    """The text of this plan's release."""
    if isinstance(plan, StatisticPlan):
        return statistic.release(s, boxes, plan)
    return paper.release(s, boxes, plan)


def _ballots(released: EnsembleRelease, refused: Mapping[str, int]) -> str:
    """What became of every registered voter, and what this party's own door refused."""
    rejected = {voter: reason.value for voter, reason in released.rejected.items()}
    report = {"counted": released.counted, "rejected": rejected, "missing": released.missing, "refused_here": refused}
    return json.dumps(report, indent=1) + "\n"
