"""The data release at one size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from launch.tasks.data_release import ReleaseTask
from launch.tasks.made_up import repeated, tables
from launch.tasks.trial import Text, Trial
from protocols.data_release import protocol as data_release
from smpc.cast import Cast
from smpc.forecast import Forecast


@dataclass(frozen=True)
class ReleaseTrial(Trial):
    task: ReleaseTask
    rows: int

    @classmethod
    def of(cls, task: ReleaseTask, rows: int, parties: int) -> ReleaseTrial:
        specs, holder, origins = repeated(task.parties, task.label_party, parties)
        ranges = {name: task.ranges[origin] for name, origin in origins.items()}
        return cls(replace(task, parties=specs, label_party=holder, ranges=ranges), rows)

    @property
    def cast(self) -> Cast:
        names = tuple(party.name for party in self.task.parties)
        return Cast(names, dealer="dealer" if self.task.without_dealer is None else None)

    def forecast(self) -> Forecast:
        return self.task.outlook(self.cast, self.rows).forecast

    @contextmanager
    def text(self, me: str | None, material: Any) -> Iterator[Text]:
        held, plan = tables(self.task.parties, me, self.rows), self.task.plan(self.rows)
        yield lambda s: data_release.release(s, held, plan, "profile")
