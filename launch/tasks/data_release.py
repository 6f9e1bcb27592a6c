"""Jobs of the data release: [label], [ranges], and the choices in [job]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from launch.jobfile.fields import Fields, JobError
from launch.jobfile.options import read_delta, read_epsilon
from launch.jobfile.parties import PartySpec, column_facts, features_of, read_label, read_parties
from launch.noise_share import noise_of
from launch.outputs import cost_json, model_json
from launch.tables.table import Table
from launch.tasks.counted import counted_run
from launch.tasks.own_table import admit, agreed_rows, check_affordable, held_tables, own_table, unnamed
from launch.tasks.task import Outlook, Prepared, Task
from launch.tasks.trial import Trial
from protocols.data_release import protocol as data_release
from protocols.data_release.mixing_rows import RULES
from protocols.data_release.plan import METHODS, RANGES, SENSITIVITIES, SIGMAS, ReleasePlan
from protocols.data_release.released_data import ONES
from protocols.data_release.released_file import to_parquet
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.schema import Column, Schema
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.session import CryptenSession
from smpc.forecast import Forecast
from smpc.values import value_of

RELEASED = "released.parquet"
_GRAM = "gram"
_OWN_CHOICES = ("rows", "sigma", "sensitivity")  # of the methods that release numbers of each party


@dataclass(frozen=True)
class ReleaseTask(Task):
    """Noisy columns of every party, or noisy second moments (`gram`), and the linear model they give."""

    TABLES = ("label", "ranges")
    KEYS = ("epsilon", "allow_weak", "delta", "method", "clip", *_OWN_CHOICES)

    job: str
    method: str
    epsilon: Fraction
    delta: Fraction
    rows: int | str
    sigma: str
    sensitivity: str
    ranges: Mapping[str, str]
    clip: bool
    label_party: str
    label: Column
    parties: tuple[PartySpec, ...]

    @classmethod
    def read(cls, path: Path, top: Fields, job: Fields) -> ReleaseTask:
        holder, label, parties = read_label(top, read_parties(path, top))
        names = [party.name for party in parties]
        if any(column.name == ONES for party in parties for column in party.columns):
            raise JobError(f"{path}: {ONES} is what released files call their column of ones; rename the column")
        method = job.text("method", "rmgm", among=(*METHODS, _GRAM))
        given = next((key for key in _OWN_CHOICES if job.has(key)), None)
        if method == _GRAM and (given or top.has("ranges")):
            raise JobError(
                f"{path}: {given or '[ranges]'} beside method = 'gram', which has no such choice; leave it out"
            )
        if method == "dgm" and job.has("rows"):
            raise job.fail("rows", "left out: method = 'dgm' releases a row for each record")
        ranges = top.inner("ranges", names, optional=True)
        task = cls(
            job=job.text("name"),
            method=method,
            epsilon=read_epsilon(job, "epsilon"),
            delta=read_delta(job),
            rows=_rows(job),
            sigma=job.text("sigma", "analytic", among=SIGMAS),
            sensitivity=job.text("sensitivity", "tight", among=SENSITIVITIES),
            ranges={name: ranges.text(name, "signed", among=tuple(RANGES)) for name in names},
            clip=job.switch("clip"),
            label_party=holder,
            label=label,
            parties=parties,
        )
        if task.sigma == "classical" and task.epsilon > 1:
            raise job.fail("epsilon", "at most 1 with sigma = 'classical'; sigma = 'analytic' holds for any")
        return task

    @property
    def without_dealer(self) -> str | None:
        return None if self.method == _GRAM else f"method = {self.method!r}"

    def facts(self) -> dict[str, str]:
        return {
            "method": self.method,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "released rows": str(self.rows),
            "sigma": self.sigma,
            "sensitivity": self.sensitivity,
            "clip": str(self.clip),
            "label": f"{self.label.name} of {self.label_party}",
            **{f"range of {party}": chosen for party, chosen in self.ranges.items()},
            **column_facts(self.parties),
        }

    def plan(self, rows: int) -> ReleasePlan | Plan:
        """All public numbers of a run on `rows` records. Raises InputError for what does not fit."""
        schema = Schema(rows, features_of(self.parties, self.label_party), self.label_party, self.label)
        if self.method == _GRAM:
            options = Options(mechanism="gaussian", delta=self.delta, repair="adassp")
            return Plan.make(schema, epsilon=self.epsilon, options=options)
        return ReleasePlan.make(
            schema,
            epsilon=self.epsilon,
            delta=self.delta,
            method=self.method,
            rows=self.rows,
            sigma=self.sigma,
            sensitivity=self.sensitivity,
            ranges=self.ranges,
        )

    def prepare(self, me: str) -> Prepared:
        table = own_table(self.parties, me, clip=self.clip)
        if table is None:
            return Prepared()
        plan = self.plan(table.rows)
        cast = unnamed(self.parties, dealer=self.without_dealer is None)
        self._forecast(cast, plan)  # what is too large to be sent is told before any connection
        guarantee = plan.guarantee(cast)
        check_budget = partial(check_affordable, self.parties, me, guarantee, collusion=cast.tolerated)
        return Prepared(table, {"rows": str(table.rows)}, check_budget)

    def run(self, cast: Cast, network: Network, agreement: Agreement, mine: Prepared) -> dict[str, str | bytes]:
        table: Table | None = mine.data
        records = agreed_rows(agreement)
        plan = self.plan(records)
        session = CryptenSession(cast, network, agreement)
        admit(self.parties, cast, network, agreement, table, plan.guarantee(cast), job=self.job)
        tables = held_tables(self.parties, network.me, table)
        name = agreement.nonce.hex()[:16]
        done, report = counted_run(session, self.backend, lambda s: data_release.release(s, tables, plan, name))
        about: dict[str, object] = {
            "job": self.job,
            "protocol": "data_release",
            "loss": "linear",
            "rows": records,
            "label": self.label.name,
            "method": self.method,
            "released_rows": plan.rows if isinstance(plan, ReleasePlan) else 1 + sum(plan.schema.widths.values()),
            **_noise(plan),
            "indefinite": done.model.indefinite,
        }
        files: dict[str, str | bytes] = {
            "model.json": model_json(done.model, about),
            "guarantee.json": done.model.guarantee.to_json() + "\n",
            "cost.json": cost_json({network.me: report.to_dict()}),
            "transcript.jsonl": session.transcript.to_jsonl(),
        }
        if network.me in done.data:
            files[RELEASED] = to_parquet(value_of(done.data[network.me]))
        return files

    def outlook(self, cast: Cast, rows: int) -> Outlook:
        plan = self.plan(rows)
        table = data_release.script(self.method).__doc__ or ""
        line, _ = noise_of({"rows": rows, **_noise(plan)}) or ("", False)
        return Outlook(table, plan.guarantee(cast), self._forecast(cast, plan), noise=line)

    def trial(self, sizes: Mapping[str, int], backend: str) -> Trial:
        from launch.tasks.release_trial import ReleaseTrial

        return ReleaseTrial.of(self, sizes["rows"], sizes["parties"])

    def _forecast(self, cast: Cast, plan: ReleasePlan | Plan) -> Forecast:
        forecast = Forecast(cast)
        data_release.release(forecast, held_tables(self.parties, "", None), plan, "")
        return forecast


def _noise(plan: ReleasePlan | Plan) -> dict[str, float]:
    """What model.json says of the noise, for `noise_of`."""
    if isinstance(plan, ReleasePlan) and plan.method == "rmgm":
        return {"expected_explained": plan.explained}
    return {"noise_standard_deviation": plan.noise_deviation}


def _rows(job: Fields) -> int | str:
    if not job.has("rows"):
        return "balanced"
    value = job.get("rows")
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if not whole and value not in RULES:
        raise job.fail("rows", f"a whole number from 1 to the number of records, or one of {', '.join(RULES)}")
    return int(value) if whole else str(value)
