"""`smpc audit`: a job's protocol on two neighbours, what the server could tell them apart by, beside the claim.

Two-row tables in the clear reference, which releases the same integers as the secure session. One record differs, in
the way that attains the sensitivity: features at their upper bounds and the label too, against features in the middle
and the label at its lower bound. Outcomes are the log-likelihood ratio of the server's view, up to the noise's scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from launch.job import load_job
from launch.tasks.functional import FunctionalTask
from mechanisms.audit import Event, epsilon_lower_bound, events
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import RandomWords
from protocols.functional import protocol as functional
from protocols.functional.plan import Plan
from protocols.schema import Column, Floats, Schema
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.errors import InputError
from smpc.ring import Integers
from smpc.values import Held, Shared, value_of

ALPHA = 1e-9
LEAST_TRIALS = 1000
NO_PROOF = "(a lower bound: an audit can refute a guarantee, never prove it)"
OUTSIDE = 1 << 60  # beyond all thresholds


class _Silent(DiscreteLaplace):
    """Draws nothing: what the view would be without noise."""

    def draw(self, count: int, random: RandomWords) -> Integers:
        return np.zeros(count, dtype=np.int64)


class _WatchedSession(ClearSession):
    """Keeps what the server is shown."""

    def __init__(self, cast: Cast) -> None:
        super().__init__(cast)
        self.shown: list[Integers] = []

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        return self._watch(super()._reveal(shared, to))

    def _send(self, held: Held[Integers], to: str, shape: tuple[int, ...], message: str) -> Held[Integers]:
        return self._watch(super()._send(held, to, shape, message))

    def _watch(self, held: Held[Integers]) -> Held[Integers]:
        if held.holder == self.cast.server:
            self.shown.append(value_of(held))
        return held


def audit(path: Path, trials: int) -> str:
    """One line: the claimed epsilon, and the lower bound that `trials` runs of each neighbour demonstrate."""
    if trials < LEAST_TRIALS:
        raise InputError(f"--trials {trials}: fewer than {LEAST_TRIALS} demonstrate nothing; give more")
    job = load_job(path)
    if not isinstance(job.task, FunctionalTask):
        raise InputError(f"{path}: protocol = {job.protocol!r} has no audit yet; functional has one")
    plan = job.task.plan(2)
    neighbours = [_tables(plan.schema, upper=upper) for upper in (True, False)]
    silent = _silenced(plan)
    exact = [_view(silent, tables) for tables in neighbours]
    laplace = plan.options.mechanism == "laplace"
    first, second = (
        np.array([_ratio(_view(plan, tables), *exact, laplace=laplace) for _ in range(trials)], dtype=np.int64)
        for tables in neighbours
    )
    registered = events(0, float(np.abs(_ratio(exact[0], *exact, laplace=laplace))) / 4)
    bound = epsilon_lower_bound(first, second, registered, delta=float(plan.delta), alpha=ALPHA)
    most = _attainable(float(plan.epsilon), trials, registered)
    verdict = "consistent" if bound.value <= float(plan.epsilon) else "VIOLATED"
    return (
        f"claimed: epsilon {float(plan.epsilon):g} against the server; shown by {trials} runs of two neighbours:"
        f" at least {bound.value:.3f} (event {bound.event}, confidence 1 - {ALPHA:g}; so many runs of a release with"
        f" exactly the claimed epsilon show about {most:.3f}): {verdict} {NO_PROOF}"
    )


def _attainable(epsilon: float, trials: int, registered: Sequence[Event]) -> float:
    """What randomised response, of which one bit shows all of its epsilon, would show in its expected outcomes."""
    likely = round(trials / (1 + math.exp(-epsilon)))
    outcomes = np.where(np.arange(trials) < likely, -OUTSIDE, OUTSIDE)
    return epsilon_lower_bound(outcomes, -outcomes, registered, alpha=ALPHA).value


def _tables(schema: Schema, *, upper: bool) -> dict[str, Floats]:
    """Two rows: one that is the same in both neighbours, and the one that differs."""
    tables = {}
    for party in schema.widths:
        columns = schema.columns(party)
        table = np.array([[column.origin, _end(columns, i, upper)] for i, column in enumerate(columns)])
        if party == schema.label_holder:  # classes have no middle
            table[-1] = schema.label.high, schema.label.high if upper else schema.label.low
        tables[party] = table
    return tables


def _end(columns: tuple[Column, ...], i: int, upper: bool) -> float:
    """What column i has in the row that differs. Of a category: its first value, or its second (or reference)."""
    column = columns[i]
    if column.category is None:
        return column.high if upper else column.middle
    earlier = sum(other.category == column.category for other in columns[:i])
    return float(earlier == (0 if upper else 1))


def _view(plan: Plan, tables: dict[str, Floats]) -> Integers:
    """Everything that the server is shown in one run, as one vector."""
    s = _WatchedSession(Cast(tuple(plan.schema.widths)))
    functional.fit(s, {party: Held(party, table) for party, table in tables.items()}, plan)
    return np.concatenate(s.shown)


def _silenced(plan: Plan) -> Plan:
    """The same release without noise: what the noise of any order is added to."""
    groups = tuple(replace(group, mechanism=_Silent(Fraction(1))) for group in plan.groups)
    return replace(plan, groups=groups, noise="paper" if plan.noise == "paper" else "shares")


def _ratio(view: Integers, first: Integers, second: Integers, *, laplace: bool = True) -> int:
    """What the best test of first against second looks at: the log-likelihood ratio, up to its scale.

    Laplace: the difference of L1 distances. Noise that looks at L2: the projection on the difference.
    """
    if laplace:
        return int((np.abs(view - second) - np.abs(view - first)).sum())
    step = (first - second).astype(np.float64)
    return round(float((view - (first + second) / 2) @ step / np.linalg.norm(step)))
