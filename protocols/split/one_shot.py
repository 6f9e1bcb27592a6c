"""The variant in which the label party sends its perturbed labels once and goes: coupled TPSL without the exchange.

All that P_N sees in a coupled run is a function of its own values, h and the perturbed labels t. So P_L may as well
send t: P_N then trains f and h alone, by the same steps, to the same weights, and learns no more about a label than
epsilon allows in either case. What P_L gives up is h: it is P_N's, too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import nn

from protocols.split.plan import Plan, check_one_shot
from protocols.split.sides import FeatureSide, LabelSide
from protocols.split.train import train
from smpc.clear import ClearSession
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held


def train_one_shot(
    s: Session, features: Held[FeatureSide], released: Held[Integers], head: Callable[[], nn.Module], plan: Plan
) -> Held[LabelSide]:
    """P_N's training of both networks; `released` is P_L's, shape (1, rows, width), `head` makes h with its weights.

    step  from -> to    message           the receiver learns
    1     P_L -> P_N    perturbed labels  epsilon for each label; all else P_N does alone
    """
    check_one_shot(plan)
    s.agree("one-shot split learning", plan)
    shape = (1, plan.rows, plan.width)
    sent = s.send(released, to=plan.features, shape=shape, message="perturbed labels")
    return s.at(plan.features, _train_alone, features, sent, head, plan)


def _train_alone(features: FeatureSide, released: Integers, head: Callable[[], nn.Module], plan: Plan) -> LabelSide:
    """The protocol's own steps, both sides in this process."""
    labels = LabelSide(head(), np.asarray(released), plan)
    train(ClearSession(plan.cast), Held(plan.features, features), Held(plan.labels, labels), plan)
    return labels
