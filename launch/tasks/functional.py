"""Jobs of the functional mechanism: [label], [budgets], and the choices in [job]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from launch.backend import BACKEND_KEYS, Backend
from launch.jobfile.fields import Fields, JobError
from launch.jobfile.options import OPTION_KEYS, option_facts, read_budgets, read_epsilon, read_options
from launch.jobfile.parties import PartySpec, column_facts, features_of, read_label, read_parties
from launch.noise_share import noise_line
from launch.outputs import cost_json, model_json
from launch.tables.table import Table
from launch.tasks.counted import counted_run
from launch.tasks.own_table import admit, agreed_rows, check_affordable, held_tables, own_table, unnamed
from launch.tasks.task import Outlook, Prepared, Task
from launch.tasks.trial import BGN, CLEAR, CRYPTEN, Trial
from protocols.functional import protocol as functional
from protocols.functional.options import Options
from protocols.functional.plan import NOISE_ORDERS, Plan
from protocols.schema import Column, Schema
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import InputError
from smpc.fixedpoint import MAX_FRACTION_BITS
from smpc.forecast import Forecast


@dataclass(frozen=True)
class FunctionalTask(Task):
    """A linear or logistic model of the parties' columns. Every party's columns end with the label, if it holds it."""

    TABLES = ("label", "budgets")
    KEYS = ("noise", "fraction_bits", "clip", *BACKEND_KEYS, *OPTION_KEYS)
    BACKENDS = (CRYPTEN, BGN, CLEAR)

    job: str
    epsilon: Fraction | None
    noise: str
    options: Options
    fraction_bits: int | None
    clip: bool
    label_party: str
    label: Column
    parties: tuple[PartySpec, ...]
    backend: Backend

    @classmethod
    def read(cls, path: Path, top: Fields, job: Fields) -> FunctionalTask:
        holder, target, parties = read_label(top, read_parties(path, top, categories=True))
        budgets = read_budgets(top, [party.name for party in parties])
        if budgets and job.has("epsilon"):
            raise JobError(f"{path}: epsilon beside [budgets]: bottom-up it is the budgets' sum; leave one of them out")
        task = cls(
            job=job.text("name"),
            epsilon=None if budgets else read_epsilon(job, "epsilon"),
            noise=job.text("noise", "shares", among=NOISE_ORDERS),
            options=read_options(str(path), job, budgets),
            fraction_bits=job.whole("fraction_bits", 1, MAX_FRACTION_BITS),
            clip=job.switch("clip"),
            label_party=holder,
            label=target,
            parties=parties,
            backend=Backend.read(job, tuple(party.name for party in parties)),
        )
        if task.backend.keys is not None:
            task.check_holders_noise(job)
        return task

    def check_holders_noise(self, job: Fields) -> None:
        """Raises JobError for noise that is not drawn by the holders of each value alone."""
        if self.noise == "joint":
            raise job.fail("noise", "'shares' or 'paper' on backend = 'bgn': joint noise is made on additive shares")
        if self.options.mechanism == "gamma-norm":
            raise job.fail(
                "mechanism", "'laplace' or 'gaussian' on backend = 'bgn': only holders of a value perturb it"
            )

    @property
    def features(self) -> dict[str, tuple[Column, ...]]:
        """Every party's columns without the label."""
        return features_of(self.parties, self.label_party)

    def facts(self) -> dict[str, str]:
        return {
            "epsilon": str(self.epsilon or "the budgets' sum"),
            "noise": self.noise,
            "fraction_bits": str(self.fraction_bits or "chosen from the rows"),
            "clip": str(self.clip),
            "label": f"{self.label.name} of {self.label_party}",
            **option_facts(self.options),
            **column_facts(self.parties),
        }

    def schema(self, rows: int) -> Schema:
        """The public facts of the job's columns."""
        return Schema(rows, self.features, self.label_party, self.label)

    def plan(self, rows: int) -> Plan:
        """All public numbers of a run on `rows` rows. Raises InputError for what the backend cannot hold."""
        return Plan.make(
            self.schema(rows),
            epsilon=self.epsilon,
            noise=self.noise,
            bits=self.fraction_bits,
            options=self.options,
            room=self.backend.room,
        )

    def prepare(self, me: str) -> Prepared:
        self.backend.check()
        table = own_table(self.parties, me, clip=self.clip)
        if table is None:
            return Prepared()
        plan = self.plan(table.rows)
        plan.check_labels(me, table.columns)
        cast = self.backend.cast(unnamed(self.parties, dealer=self.without_dealer is None))
        self._forecast(cast, plan)  # what is too large to be sent is told before any connection
        guarantee = plan.guarantee(cast)
        check_budget = partial(check_affordable, self.parties, me, guarantee, collusion=cast.tolerated)
        return Prepared(table, {"rows": str(table.rows)}, check_budget)

    def run(self, cast: Cast, network: Network, agreement: Agreement, mine: Prepared) -> dict[str, str | bytes]:
        table: Table | None = mine.data
        rows = agreed_rows(agreement)
        plan = self.plan(rows)
        session = self.backend.session(cast, network, agreement)
        admit(self.parties, cast, network, agreement, table, plan.guarantee(cast), job=self.job)
        tables = held_tables(self.parties, network.me, table)
        release, report = counted_run(session, self.backend, lambda s: functional.fit(s, tables, plan))
        about: Mapping[str, object] = {
            "job": self.job,
            "protocol": "functional",
            "loss": self.options.loss,
            "rows": rows,
            "label": self.label.name,
            "categories": {name: values for party in self.parties for name, values in party.categories.items()},
            "bounds": {column.name: [column.low, column.high] for party in self.features.values() for column in party},
            "fraction_bits": plan.bits,
            "noise_standard_deviation": plan.noise_deviation,
            "indefinite": release.indefinite,
        }
        return {
            "model.json": model_json(release, about),
            "guarantee.json": release.guarantee.to_json() + "\n",
            "cost.json": cost_json({network.me: report.to_dict()}),
            "transcript.jsonl": session.transcript.to_jsonl(),
        }

    def outlook(self, cast: Cast, rows: int) -> Outlook:
        plan = self.plan(rows)
        table = functional.script(plan.noise).__doc__ or ""
        if self.backend.keys is not None:
            if plan.noise != "shares":
                raise InputError(
                    f"noise = {plan.noise!r}: no table of its steps on backend = 'bgn' here, see docs/protocols/bgn.md"
                )
            table = self.backend.keys.table
        noise = noise_line(plan.noise_deviation, rows)
        return Outlook(table, plan.guarantee(cast), self._forecast(cast, plan), noise=noise)

    def trial(self, sizes: Mapping[str, int], backend: str) -> Trial:
        from launch.tasks.functional_trial import FunctionalTrial

        return FunctionalTrial.of(self, sizes["rows"], sizes["parties"], backend)

    def _forecast(self, cast: Cast, plan: Plan) -> Forecast:
        forecast = self.backend.forecast(cast)
        functional.fit(forecast, held_tables(self.parties, "", None), plan)
        return forecast
