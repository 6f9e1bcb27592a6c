"""The label party's values in a split-learning job: kept in the memo beside its table, charged to its ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from urllib.parse import quote

import numpy as np

from launch.jobfile.parties import PartySpec
from launch.tables.table import Table
from launch.tasks.own_table import charge, check_affordable
from launch.tasks.split import SplitTask
from launch.tasks.task import Prepared
from launch.terminal import tell
from mechanisms.guarantee import Row
from mechanisms.ledger import BudgetError, Ledger
from mechanisms.randomness import SecureRandom
from protocols.schema import Column
from protocols.split.memo import Account, Memo
from protocols.split.plan import Plan
from protocols.split.train import released_values
from smpc.ring import Integers


def check_labels(task: SplitTask, plan: Plan, table: Table) -> Callable[[], None]:
    """Raises InputError, before any connection, for a memo that cannot be used. Returns the check of the budget."""
    spec = task.spec(plan.labels)
    if plan.law is None:
        return partial(check_affordable, task.parties, spec.name, plan.guarantee, collusion=1)
    memo, ids = Memo(memo_place(spec, task.label)), _ids(table)
    changed = memo.changed(ids, _labels(table), plan.law)
    if changed:
        tell(
            f"{spec.name}: {changed} values of {task.label.name} are others than when they were perturbed; what was "
            "drawn stays"
        )
    new, others = memo.strangers(ids)
    if new and others:
        tell(
            f"{spec.name}: {new} ids of {spec.id} are new to {memo.path.name}, which has draws of {others} others; "
            "the same people under other ids would cost epsilon again, which no ledger sees"
        )
    if spec.ledger is None:
        return Prepared().check_budget
    account = _account(spec, spec.ledger, plan.guarantee.worst(1), task.job)
    due = partial(memo.due, ids, plan.law, copies=plan.copies, account=account)
    return partial(_check_budget, account, due, again=new < len(ids))


def _check_budget(account: Account, due: Callable[[], tuple[Fraction, Fraction]], *, again: bool) -> None:
    """`again`: there are draws of these people."""
    try:
        account.check(*due())
    except BudgetError as error:
        if not again:
            raise
        raise BudgetError(f"{error}; the same law and epsilon as before cost nothing") from None


def released(task: SplitTask, plan: Plan, table: Table) -> Integers:
    """The values to train on, shape (copies, rows, width); what new ones cost is charged before they are kept."""
    spec = task.spec(plan.labels)
    account = None
    if plan.law is None or spec.ledger is None:
        charge(task.parties, spec.name, plan.guarantee, collusion=1, job=task.job)
    else:
        account = _account(spec, spec.ledger, plan.guarantee.worst(1), task.job)
    memo = Memo(memo_place(spec, task.label))
    return released_values(_labels(table), _ids(table), plan, memo, SecureRandom(), account)


def memo_place(spec: PartySpec, label: Column) -> Path:
    """Beside the table; each column of labels has its own, or one column would be taught as another."""
    return spec.table.with_name(f"{spec.table.name}.{quote(label.name, safe='')}.memo")


def _account(spec: PartySpec, path: Path, row: Row, job: str) -> Account:
    """The data set's account in the ledger at `path`, named as seen from the table: both may move together."""
    ledger = Ledger(path)

    def check(epsilon: Fraction, delta: Fraction) -> None:
        if epsilon or delta:
            ledger.check(spec.data_set, replace(row, epsilon=epsilon, delta=delta))

    def charge_more(epsilon: Fraction, delta: Fraction) -> None:
        ledger.reserve(spec.data_set, replace(row, epsilon=epsilon, delta=delta), job=job)

    place = os.path.relpath(path.resolve(), spec.table.resolve().parent)
    return Account(f"{spec.data_set} in {place}", check, charge_more, partial(ledger.charged, spec.data_set, row.unit))


def _ids(table: Table) -> list[str]:
    return [str(identifier) for identifier in table.ids.to_pylist()]


def _labels(table: Table) -> Integers:
    labels: Integers = table.columns[0].astype(np.int64)
    return labels
