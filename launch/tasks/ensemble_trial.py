"""The ensemble at one size: rows are the auxiliary samples, and all voters' ballots are in when counting starts."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from launch.tasks.ensemble import NO_BALLOTS, EnsembleTask, release
from launch.tasks.trial import Text, Trial, party_names
from protocols.ensemble.auxiliary import Auxiliary, unit_rows
from protocols.ensemble.paper import PaperPlan
from protocols.ensemble.statistic import StatisticPlan
from smpc.ballots import envelope, shares
from smpc.ballots.box import Box
from smpc.ballots.counting import full_vote
from smpc.ballots.poll import Poll
from smpc.cast import Cast
from smpc.forecast import Forecast
from smpc.values import Held

Ballots = Mapping[str, Sequence[bytes]]


@dataclass(frozen=True)
class EnsembleTrial(Trial):
    task: EnsembleTask
    rows: int
    parties: int
    voters: int

    @property
    def cast(self) -> Cast:
        return Cast(party_names(self.parties))

    @property
    def plan(self) -> StatisticPlan | PaperPlan:
        rng = np.random.default_rng(self.rows)
        samples = rng.uniform(size=(self.rows, len(self.task.table.columns)))
        return self.task.plan_of(Auxiliary.of(unit_rows(samples)), self._poll())

    def _poll(self) -> Poll:
        seals = {party: _seal(party).public_key() for party in self.cast.parties}
        voters = {voter: _signature(voter).public_key() for voter in map(str, range(self.voters))}
        return Poll(NO_BALLOTS, NO_BALLOTS, seals, voters, self.rows, len(self.task.classes))

    def material(self) -> Ballots:
        """Every party's ballots: of each voter uniform votes."""
        poll, rng = self._poll(), np.random.default_rng(self.voters)
        made: dict[str, list[bytes]] = {party: [] for party in poll.parties}
        for voter in poll.voters:
            contents = shares.split(poll.encode(rng.integers(0, poll.classes, poll.samples)), poll.parties)
            sealed = envelope.make(contents, poll=poll.id, voter=voter, key=_signature(voter), seals=poll.seals)
            for party, ballot in sealed.items():
                made[party].append(ballot.to_bytes())
        return made

    def forecast(self) -> Forecast:
        plan = self.plan
        session = Forecast(self.cast, full_vote(plan.poll))
        release(session, {party: Held(party) for party in self.cast.parties}, plan)
        return session

    @contextmanager
    def text(self, me: str | None, material: Ballots) -> Iterator[Text]:
        plan = self.plan
        with tempfile.TemporaryDirectory(prefix="smpc-profile-") as folder:
            boxes: dict[str, Held[Box]] = {party: Held(party) for party in self.cast.parties}
            for party in self.cast.parties:
                if me in (None, party):
                    place = Path(folder) / party
                    place.mkdir()
                    box = Box(plan.poll, party, _seal(party), place)
                    for ballot in material[party]:
                        box.put(ballot)
                    boxes[party] = Held(party, box)
            yield lambda s: release(s, boxes, plan)


def _seal(party: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(hashlib.sha256(f"seal {party}".encode()).digest())


def _signature(voter: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"voter {voter}".encode()).digest())
