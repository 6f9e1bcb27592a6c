"""A participant's part of a split-learning job: values for its labels, its network, training, result files."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import torch
from torch import nn

from launch.outputs import cost_json
from launch.tables.table import Table
from launch.tasks.counted import counted_run
from launch.tasks.own_table import agreed_rows, compare_ids, keyed_digest
from launch.tasks.split import SplitTask
from launch.tasks.split_labels import released
from protocols.schema import scaled
from protocols.split.checkpoint import Checkpoints
from protocols.split.models import FeatureNet, LabelNet, seeded
from protocols.split.one_shot import train_one_shot
from protocols.split.plan import Plan
from protocols.split.sides import FeatureSide, LabelSide, Side
from protocols.split.train import train
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network_session import NetworkSession
from smpc.errors import PeerError
from smpc.forecast import Forecast
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, value_of

SCORED = "before each record was first learnt from"  # not by the finished network
_GOES_ON = "run the same job again: it goes on from the last checkpoint"


def take_part(task: SplitTask, session: NetworkSession, agreement: Agreement, table: Table) -> dict[str, str | bytes]:
    """The result files: f.pt at the feature party; h.pt and evaluation.json where h is; what all protocols write."""
    plan = task.plan(agreed_rows(agreement))
    me = session.me
    compare_ids(session.network, agreement, plan.cast, table)
    values: Held[Integers] = Held(plan.labels, released(task, plan, table) if me == plan.labels else None)
    checkpoints = Checkpoints(task.checkpoints(me), _mark(task, table))
    features: Held[FeatureSide] = Held(plan.features)
    labels: Held[LabelSide] = Held(plan.labels)
    if me == plan.features:
        features = Held(me, feature_side(task, plan, table, checkpoints))
    elif not task.one_shot:
        labels = Held(me, LabelSide(head(plan), value_of(values), plan, checkpoints))
    try:
        trained, report = counted_run(
            session, task.backend, lambda s: train_networks(s, plan, task.one_shot, features, values, labels)
        )
    except PeerError as error:
        if task.one_shot or _GOES_ON in str(error):  # the peer has said it already
            raise
        raise PeerError(f"{error}; {_GOES_ON}") from None
    about = {
        "job": task.job,
        "protocol": "split",
        "loss": "cross-entropy",
        "rows": plan.rows,
        "label": task.label.name,
        "law": "none" if plan.law is None else str(plan.law),
        "coupling": plan.coupling,
        "post": plan.post,
        "epochs": plan.epochs,
        "one_shot": task.one_shot,
    }
    files: dict[str, str | bytes] = {
        "model.json": json.dumps(about, indent=1) + "\n",
        "guarantee.json": plan.guarantee.to_json() + "\n",
        "cost.json": cost_json({me: report.to_dict()}),
        "transcript.jsonl": session.transcript.to_jsonl(),
    }
    networks: list[tuple[str, Held[Any]]] = [("f.pt", features), ("h.pt", trained)]
    for name, side in networks:
        if side.holder == me:
            files[name] = _weights(value_of(side))
    if trained.holder == me and (estimate := value_of(trained).private_auc()) is not None:
        evaluation = {"auc_of_perturbed_labels": estimate, "scored": SCORED}
        files["evaluation.json"] = json.dumps(evaluation, indent=1) + "\n"
    return files


def script(one_shot: bool) -> Callable[..., Any]:
    """The protocol's text, whose docstring has its steps."""
    return train_one_shot if one_shot else train


def forecast(cast: Cast, plan: Plan, one_shot: bool) -> Forecast:
    """The messages of a run from its start."""
    counting = Forecast(cast)
    train_networks(counting, plan, one_shot, Held(plan.features), Held(plan.labels), Held(plan.labels))
    return counting


def train_networks(
    s: Session,
    plan: Plan,
    one_shot: bool,
    features: Held[FeatureSide],
    released: Held[Integers],
    labels: Held[LabelSide],
) -> Held[LabelSide]:
    """Both networks from the parties' sides, `released` being the label party's values: who has h in the end."""
    if one_shot:
        return train_one_shot(s, features, released, lambda: head(plan), plan)
    train(s, features, labels, plan)
    return labels


def feature_side(task: SplitTask, plan: Plan, table: Table, checkpoints: Checkpoints) -> FeatureSide:
    """f with its starting weights, on the columns of `table`."""
    columns = task.spec(plan.features).columns
    coded = np.array([column.name in task.categories for column in columns])
    numbers = tuple(column for column, code in zip(columns, coded, strict=True) if not code)
    sizes = [int(column.high) + 1 for column, code in zip(columns, coded, strict=True) if code]
    inputs = [
        torch.from_numpy(scaled(numbers, table.columns[~coded]).T.astype(np.float32)),
        torch.from_numpy(table.columns[coded].T.astype(np.int64)),
    ]
    return FeatureSide(seeded(plan.seed, lambda: FeatureNet(len(numbers), sizes, plan.cut)), inputs, plan, checkpoints)


def head(plan: Plan) -> nn.Module:
    """h with its starting weights."""
    return seeded(plan.seed + 1, lambda: LabelNet(plan.cut, plan.width))


def check_checkpoints(task: SplitTask, plan: Plan, me: str, table: Table) -> None:
    """Raises InputError, before any connection, for checkpoints beside the table that are another job's or damaged."""
    place = task.checkpoints(me)
    if place is not None and place.is_dir():
        Checkpoints(place, _mark(task, table)).positions(plan)


def _mark(task: SplitTask, table: Table) -> str:
    """The job, its public facts and the records."""
    facts = json.dumps([task.job, task.facts()], sort_keys=True)
    return keyed_digest(facts.encode(), table).hex()


def _weights(side: Side) -> bytes:
    """The network's weights as torch saves them."""
    file = BytesIO()
    torch.save(side.network.state_dict(), file)
    return file.getvalue()
