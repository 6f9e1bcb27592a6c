"""Polls with keys, voters with ballots right and wrong, boxes in folders."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from smpc.ballots import envelope, shares
from smpc.ballots.box import Box
from smpc.ballots.envelope import Envelope
from smpc.ballots.poll import Poll
from smpc.values import Held

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Election:
    """Seeded keys, so that processes of a test agree without sending any; contents of votes stay random."""

    parties: tuple[str, ...]
    voters: tuple[str, ...]
    samples: int
    classes: int
    job: str = "job"
    run: str = "first run"

    @cached_property
    def poll(self) -> Poll:
        return Poll(
            hashlib.sha256(self.job.encode()).digest(),
            hashlib.sha256(self.run.encode()).digest(),
            {p: self.seal(p).public_key() for p in self.parties},
            {v: self.key(v).public_key() for v in self.voters},
            self.samples,
            self.classes,
        )

    def seal(self, party: str) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(hashlib.sha256(f"seal {party}".encode()).digest())

    def key(self, voter: str) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(f"voter {voter}".encode()).digest())

    def ballot(
        self, voter: str, votes: Integers, alter: Callable[[dict[str, bytes]], dict[str, bytes]] = lambda c: c
    ) -> dict[str, Envelope]:
        """Envelopes for any integers, votes or not; `alter` changes the contents before they are sealed."""
        contents = alter(shares.split(votes, self.parties))
        poll = self.poll
        return envelope.make(contents, poll=poll.id, voter=voter, key=self.key(voter), seals=poll.seals)

    def labels(self, voter: str) -> Integers:
        seed = int.from_bytes(hashlib.sha256(voter.encode()).digest()[:4], "big")
        return np.random.default_rng(seed).integers(0, self.classes, self.samples)

    def votes(self, voter: str) -> Integers:
        return self.poll.encode(self.labels(voter))

    def counts(self, voters: Sequence[str]) -> Integers:
        return np.add.reduce([self.votes(voter) for voter in voters])

    def boxes(self, folder: Path) -> dict[str, Box]:
        made = {}
        for party in self.parties:
            place = folder / party
            place.mkdir(parents=True)
            made[party] = Box(self.poll, party, self.seal(party), place)
        return made

    def filled(self, s: Any, folder: Path, sent: Mapping[str, Sequence[bytes]]) -> dict[str, Held[Box]]:
        """The boxes as this process of a session has them, closed: with all ballots sent to its party in its own."""
        own = None
        if s.is_party:
            own = self.boxes(folder)[s.me]
            for data in sent[s.me]:
                own.put(data)
            own.close()
        return {party: Held(party, own if party == s.me else None) for party in s.cast.parties}

    def another_job(self) -> Election:
        return replace(self, job="another job")

    def another_run(self) -> Election:
        return replace(self, run="second run")


def put(boxes: Mapping[str, Box], ballot: Mapping[str, Envelope]) -> None:
    for party, box in boxes.items():
        box.put(ballot[party].to_bytes())
