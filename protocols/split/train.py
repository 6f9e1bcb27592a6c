"""Split learning of two parties (paper 4): Algorithm 1, and TPSL (Algorithm 3), whose transcript is label-private.

P_N has the features and f, P_L the labels and h; together they train h(f(x)). Before training, P_L draws a perturbed
value for every label (`protocols.split.perturb`), once and for all runs (`protocols.split.memo`); from then on no step
has a label. So all that P_N sees, in whatever order, over however many epochs, is a function of its own values and of
these draws: epsilon for one label, whatever the number of batches, and twice that with two independent draws.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanisms.randomness import RandomWords
from protocols.schema import Floats
from protocols.split.memo import Account, Memo
from protocols.split.perturb import on_lattice
from protocols.split.plan import Plan
from protocols.split.sides import FeatureSide, Floats32, LabelSide, Side
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, Posted


def released_values(
    labels: Integers, ids: Sequence[str], plan: Plan, memo: Memo, random: RandomWords, account: Account | None = None
) -> Integers:
    """P_L's values for training, shape (copies, rows, width): stored draws, new draws, or (no law) the labels."""
    if plan.law is None:
        return on_lattice(labels, plan.classes, plan.width)[np.newaxis]
    return memo.draw(ids, labels, plan.law, random, copies=plan.copies, account=account)


def train(s: Session, features: Held[FeatureSide], labels: Held[LabelSide], plan: Plan) -> None:
    """Train both networks in place, from the last checkpoint that both parties have.

    step  from -> to    message      the receiver learns
    1     P_N -> all    checkpoints  how far a run before this one came
    2     P_L -> all    checkpoints  how far a run before this one came
    3     P_N -> P_L    embeddings   f(x) of a batch of records: features are not protected
    4     P_L -> P_N    gradients    a function of 3, h and the batch's perturbed labels: epsilon for each label
    """
    s.agree("split learning", plan)
    start = _common(s, features, labels)
    if start:
        s.at(plan.features, _call, features, "restore", start)
        s.at(plan.labels, _call, labels, "restore", start)
    under_way: deque[Posted] = deque()
    for number, rows in plan.batches(start):
        shape = (len(rows), plan.cut)
        embeddings = s.at(plan.features, _call, features, "forward", rows)
        sent = s.post(embeddings, to=plan.labels, shape=shape, message="embeddings", dtype=np.float32)  # 3
        gradients = s.at(plan.labels, _call, labels, "step", rows, s.collect(sent))
        under_way.append(s.post(gradients, to=plan.features, shape=shape, message="gradients", dtype=np.float32))  # 4
        done = number + 1
        keep = done % plan.checkpoint == 0 or done == plan.total_batches
        while len(under_way) > (0 if keep else plan.ahead):
            s.at(plan.features, _call, features, "backward", s.collect(under_way.popleft()))
        if keep:
            s.at(plan.labels, _call, labels, "save", done)
            s.at(plan.features, _call, features, "save", done)


def _common(s: Session, features: Held[FeatureSide], labels: Held[LabelSide]) -> int:
    """The newest checkpoint of both parties; they are at most one apart, as neither gets far alone."""
    told = []
    for side in (features, labels):
        positions: Held[Floats] = s.at(side.holder, _call, side, "positions")
        told.append(s.publish(positions, shape=(3,), message="checkpoints"))  # 1, 2
    return max({0} | {int(p) for p in told[0]} & {int(p) for p in told[1]})


def _call(side: Side, method: str, *arguments: Any) -> Any:
    """A step of a side, as its own class takes it."""
    return getattr(side, method)(*arguments)


def predict(s: Session, embeddings: Held[Floats32], labels: Held[LabelSide], plan: Plan, rows: int) -> Held[Floats32]:
    """Logits of new records at the label party, shape (rows, width).

    step  from -> to    message         the receiver learns
    1     P_N -> P_L    new embeddings  f(x) of the new records
    """
    sent = s.post(embeddings, to=plan.labels, shape=(rows, plan.cut), message="new embeddings", dtype=np.float32)
    return s.at(plan.labels, _call, labels, "scores", s.collect(sent))
