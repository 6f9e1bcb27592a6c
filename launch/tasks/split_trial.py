"""Split learning at one size. The labels' values are drawn before it starts; no checkpoints are kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from launch.tables.table import Table
from launch.tasks.made_up import table
from launch.tasks.split import SplitTask
from launch.tasks.split_run import feature_side, forecast, head, train_networks
from launch.tasks.trial import Text, Trial
from mechanisms.randomness import SecureRandom
from protocols.split.checkpoint import Checkpoints
from protocols.split.memo import Memo
from protocols.split.sides import FeatureSide, LabelSide
from protocols.split.train import released_values
from smpc.cast import Cast
from smpc.forecast import Forecast
from smpc.ring import Integers
from smpc.values import Held


@dataclass(frozen=True)
class SplitTrial(Trial):
    task: SplitTask
    rows: int

    @property
    def cast(self) -> Cast:
        return self.task.plan(self.rows).cast

    def forecast(self) -> Forecast:
        return forecast(self.cast, self.task.plan(self.rows), self.task.one_shot)

    @contextmanager
    def text(self, me: str | None, material: Any) -> Iterator[Text]:
        task, plan = self.task, self.task.plan(self.rows)
        features: Held[FeatureSide] = Held(plan.features)
        released: Held[Integers] = Held(plan.labels)
        labels: Held[LabelSide] = Held(plan.labels)
        if me in (None, plan.features):
            columns = table(task.spec(plan.features).columns, self.rows, task.categories)
            features = Held(plan.features, feature_side(task, plan, Table(None, columns), Checkpoints()))
        if me in (None, plan.labels):
            values = self._values()
            released = Held(plan.labels, values)
            labels = Held(plan.labels, LabelSide(head(plan), values, plan))
        yield lambda s: train_networks(s, plan, task.one_shot, features, released, labels)

    def _values(self) -> Integers:
        plan = self.task.plan(self.rows)
        truth = table((self.task.label,), self.rows, (self.task.label.name,))[0].astype(np.int64)
        with tempfile.TemporaryDirectory(prefix="smpc-profile-") as folder:
            memo = Memo(Path(folder) / "memo")
            return released_values(truth, [str(i) for i in range(self.rows)], plan, memo, SecureRandom())
