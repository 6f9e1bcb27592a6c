"""Jobs of split learning: a party with features, a party with labels, nobody else."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from launch.jobfile.fields import MAX_NAME, Fields, JobError
from launch.jobfile.options import read_delta, read_epsilon
from launch.jobfile.parties import PartySpec, column_facts, read_label, read_parties
from launch.tasks.own_table import own_table
from launch.tasks.task import Outlook, Prepared, Task
from launch.tasks.trial import ROWS, Size, Trial
from protocols.schema import Column
from protocols.split.perturb import LAWS, perturbation
from protocols.split.plan import COUPLINGS, Plan, check_one_shot
from protocols.split.post import POSTS
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.session import CryptenSession
from smpc.errors import InputError

_WHOLE = {
    "epochs": (1, 10_000),
    "batch": (1, 1 << 20),
    "ahead": (0, 1000),
    "cut": (2, 4096),
    "seed": (0, 1 << 31),
    "checkpoint": (1, 1 << 31),
}
_DEFAULT_CUT = 32


@dataclass(frozen=True)
class SplitTask(Task):
    """f at the party with the columns, h at the party whose only column is the label: whole numbers from 0.

    Beside the label party's table lie its memo (`.memo`, with its key) and, while a job runs, beside both tables the
    checkpoints (`.checkpoints`): a job that stopped goes on from there.
    """

    TABLES = ("label",)
    KEYS = (
        *("law", "epsilon", "delta", "coupling", "post", "bound", "learning_rate"),
        *("categories", "one_shot", "unprotected", *_WHOLE),
    )
    SERVER = False
    SIZES: ClassVar[Mapping[str, Size]] = {"rows": Size((1_000, 10_000), ROWS.low, ROWS.high)}

    job: str
    choices: Mapping[str, Any]
    law: str | None
    epsilon: Fraction | None
    delta: Fraction | None
    one_shot: bool
    categories: tuple[str, ...]
    label_party: str
    label: Column
    parties: tuple[PartySpec, ...]

    @property
    def without_dealer(self) -> str | None:
        return "protocol = 'split'"

    @property
    def roles(self) -> Mapping[str, str]:
        return {party.name: "P_L" if party.name == self.label_party else "P_N" for party in self.parties}

    def spec(self, name: str) -> PartySpec:
        """A party by its name."""
        return next(party for party in self.parties if party.name == name)

    @classmethod
    def read(cls, path: Path, top: Fields, job: Fields) -> SplitTask:
        holder, label, parties = read_label(top, read_parties(path, top))
        if len(parties) != 2 or any(len(party.columns) != 1 for party in parties if party.name == holder):
            raise JobError(
                f"{path}: split learning is between two parties, and {holder}'s only column is the label; leave "
                "the others out"
            )
        if label.low != 0 or label.high != int(label.high) or label.high < 1:
            raise JobError(f"{path}: the label {label.name} needs the bounds [0, classes - 1], has {_bounds(label)}")
        unprotected = job.switch("unprotected")
        extra = next((key for key in ("law", "epsilon", "delta", "post") if unprotected and job.has(key)), None)
        if extra:
            raise job.fail(extra, "left out: unprotected = true sends what labels say as it is")
        law = None if unprotected else job.text("law", "laplace", among=LAWS)
        choices: dict[str, Any] = {key: job.whole(key, *ends) for key, ends in _WHOLE.items() if job.has(key)}
        choices |= {
            "coupling": job.text("coupling", "coupled", among=COUPLINGS),
            "post": job.text("post", "none", among=POSTS),
            "bound": job.number("bound", 0, 0, 1000),
            "learning_rate": job.number("learning_rate", 1e-3, 1e-9, 10),
            "unprotected": unprotected,
        }
        task = cls(
            job=job.text("name"),
            choices=choices,
            law=law,
            epsilon=None if law is None else read_epsilon(job, "epsilon"),
            delta=read_delta(job) if job.has("delta") else None,
            one_shot=job.switch("one_shot"),
            categories=_categories(job, parties, holder),
            label_party=holder,
            label=label,
            parties=parties,
        )
        try:
            task.plan(1)
        except InputError as error:
            raise JobError(f"{path}: {error}") from None
        return task

    def plan(self, rows: int) -> Plan:
        """All public numbers of a run on `rows` records. Raises InputError where its messages would be too large."""
        classes = int(self.label.high) + 1
        law = None if self.law is None else perturbation(self.law, self.epsilon, classes, self.delta)
        chosen = {"cut": _DEFAULT_CUT, **self.choices}
        features = next(party.name for party in self.parties if party.name != self.label_party)
        plan = Plan(features, self.label_party, rows=rows, law=law, classes=classes, **chosen)
        if self.one_shot:
            check_one_shot(plan)
        return plan

    def facts(self) -> dict[str, str]:
        return {
            "law": str(self.law),
            "epsilon": str(self.epsilon),
            "delta": str(self.delta or 0),
            "one shot": str(self.one_shot),
            "categories": json.dumps(self.categories),
            "label": f"{self.label.name} of {self.label_party}",
            **{key: str(value) for key, value in self.choices.items()},
            **column_facts(self.parties),
        }

    def prepare(self, me: str) -> Prepared:
        table = own_table(self.parties, me, clip=None)
        if table is None:
            return Prepared()
        spec = self.spec(me)
        for column, values in zip(spec.columns, table.columns, strict=True):
            wrong = int(np.count_nonzero(values != np.rint(values)))
            if wrong and (column == self.label or column.name in self.categories):
                raise InputError(
                    f"{spec.table}: {column.name} has {wrong} values that are no whole number; code them so"
                )
        from launch.tasks.split_labels import check_labels
        from launch.tasks.split_run import check_checkpoints

        plan, mine = self.plan(table.rows), Prepared(table, {"rows": str(table.rows)})
        if me != self.label_party and spec.ledger is not None:
            raise InputError(
                f"ledger of {me}: what f says of its records is sent without noise, which no cap allows; leave the "
                "ledger out to say that you know"
            )
        try:
            if me == self.label_party:
                mine = replace(mine, check_budget=check_labels(self, plan, table))
            check_checkpoints(self, plan, me, table)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            label = f" and its column {self.label.name}" if me == self.label_party else ""
            raise InputError(
                f"{spec.table}: the files kept beside it are named after it{label}, which is too long a name here: "
                "shorten it"
            ) from None
        return mine

    def run(self, cast: Cast, network: Network, agreement: Agreement, mine: Prepared) -> dict[str, str | bytes]:
        from launch.tasks.split_run import take_part

        return take_part(self, CryptenSession(cast, network, agreement), agreement, mine.data)

    def checkpoints(self, me: str) -> Path | None:
        """Where a party's are kept while it trains; nowhere for `one_shot`."""
        table = self.spec(me).table
        return None if self.one_shot else table.with_name(table.name + ".checkpoints")

    def leftovers(self, me: str) -> Sequence[Path]:
        place = self.checkpoints(me)
        return () if place is None else (place,)

    def outlook(self, cast: Cast, rows: int) -> Outlook:
        from launch.tasks.split_run import forecast, script

        plan = self.plan(rows)
        return Outlook(script(self.one_shot).__doc__ or "", plan.guarantee, forecast(cast, plan, self.one_shot))

    def trial(self, sizes: Mapping[str, int], backend: str) -> Trial:
        from launch.tasks.split_trial import SplitTrial

        return SplitTrial(self, sizes["rows"])


def _categories(job: Fields, parties: tuple[PartySpec, ...], holder: str) -> tuple[str, ...]:
    """Columns of the feature party whose values are codes, for embeddings."""
    if not job.has("categories"):
        return ()
    columns = {c.name: c for party in parties if party.name != holder for c in party.columns}
    given = job.get("categories")
    if not isinstance(given, list) or not all(isinstance(n, str) and 0 < len(n) <= MAX_NAME for n in given):
        raise job.fail("categories", "a list of column names")
    for name in given:
        column = columns.get(name)
        if column is None or column.low != 0 or column.high != int(column.high) or column.high > 1e6:
            raise job.fail("categories", f"feature columns with bounds [0, codes - 1]; {name!r} is none")
    return tuple(dict.fromkeys(given))


def _bounds(column: Column) -> str:
    return f"[{column.low:g}, {column.high:g}]"
