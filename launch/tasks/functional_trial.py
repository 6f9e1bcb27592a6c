"""The functional mechanism at one size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from launch.backend import Backend
from launch.tasks.functional import FunctionalTask
from launch.tasks.made_up import repeated, tables
from launch.tasks.trial import BGN, CRYPTEN, Text, Trial
from protocols.functional import protocol as functional
from smpc.bgn.modes import Keys
from smpc.cast import Cast
from smpc.forecast import Forecast


@dataclass(frozen=True)
class FunctionalTrial(Trial):
    task: FunctionalTask
    rows: int
    with_dealer: bool

    @classmethod
    def of(cls, task: FunctionalTask, rows: int, parties: int, backend: str) -> FunctionalTrial:
        specs, holder, _ = repeated(task.parties, task.label_party, parties)
        keys = (task.backend.keys or Keys("pair", None)) if backend == BGN else None
        made = replace(task, parties=specs, label_party=holder, backend=Backend(keys))
        return cls(made, rows, backend == CRYPTEN)

    @property
    def backend(self) -> Backend:
        return self.task.backend

    @property
    def cast(self) -> Cast:
        names = tuple(party.name for party in self.task.parties)
        return self.backend.cast(Cast(names, dealer="dealer" if self.with_dealer else None))

    def forecast(self) -> Forecast:
        return self.task.outlook(self.cast, self.rows).forecast

    @contextmanager
    def text(self, me: str | None, material: Any) -> Iterator[Text]:
        task, plan = self.task, self.task.plan(self.rows)
        whole = (task.label.name,) if task.options.loss == "logistic" else ()
        held = tables(task.parties, me, self.rows, whole)
        yield lambda s: functional.fit(s, held, plan)
