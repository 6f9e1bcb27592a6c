"""Auxiliary rows, elections on them, and whole clear runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import RandomWords
from protocols.ensemble.auxiliary import Auxiliary, unit_rows
from protocols.ensemble.release import EnsembleRelease
from protocols.schema import Floats
from smpc import Cast, ClearSession, Held
from tests.ballots.support import Election, Integers, put
from tests.support import Silent, words_of

PARTIES = ("ann", "bob")
VOTERS = tuple(f"v{i}" for i in range(5))
SILENT = Silent(Fraction(1))


def rows_of(samples: int, features: int, seed: int = 0) -> Floats:
    return unit_rows(np.random.default_rng(seed).uniform(-1, 1, (samples, features)))


def auxiliary(samples: int, features: int = 2, seed: int = 0) -> Auxiliary:
    return Auxiliary.of(rows_of(samples, features, seed))


def election(samples: int, classes: int, voters: tuple[str, ...] = VOTERS) -> Election:
    return Election(PARTIES, voters, samples, classes)


def run(
    script: Callable[..., EnsembleRelease], plan: Any, of: Election, ballots: Mapping[str, Integers]
) -> tuple[EnsembleRelease, ClearSession]:
    cast = Cast(of.parties)
    s = ClearSession(cast, random={name: words_of(name) for name in cast.everyone})
    with tempfile.TemporaryDirectory() as folder:
        boxes = of.boxes(Path(folder))
        for voter, votes in ballots.items():
            put(boxes, of.ballot(voter, votes))
        boxes[of.parties[0]].close()
        return script(s, {party: Held(party, box) for party, box in boxes.items()}, plan), s


def all_votes(of: Election) -> dict[str, Integers]:
    return {voter: of.votes(voter) for voter in of.voters}


class Unit(DiscreteLaplace):
    """A test-only mechanism: ones."""

    def draw(self, count: int, random: RandomWords) -> Integers:
        return np.ones(count, dtype=np.int64)
