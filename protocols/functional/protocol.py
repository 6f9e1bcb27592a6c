"""Vertically partitioned functional mechanism (paper 1; Zhang et al. 2012 for the mechanism).

A quadratic objective needs the data only through the Gram matrix of the columns; the logistic one is made quadratic
first (`protocols.functional.losses`). Its coefficients become secret shares, get exact noise, and only then are opened,
to the server, which minimises the noisy form. All public choices and numbers are in the plan
(`protocols.functional.plan`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from mechanisms.joint_laplace import JointLaplace
from protocols.functional.groups import Group
from protocols.functional.plan import Plan
from protocols.functional.quadratic import Mask
from protocols.release import Release
from protocols.schema import Floats
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, Shared


def fit(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> Release:
    """A linear or logistic model of vertically split columns, differentially private for one record.

    `tables[p]`, held by p, has shape (width, rows): the columns `plan.schema.columns(p)`. The order of noise and
    opening is `plan.noise`. Returns the same release to every participant.
    """
    s.agree("plan", plan.bits, *((group.mechanism, group.times.tolist()) for group in plan.groups))
    published = script(plan.noise)(s, tables, plan)
    return Release(
        names=("intercept", *(column.name for column in plan.schema.all_features)),
        values=published[:-1],
        guarantee=plan.guarantee(s.cast),
        indefinite=int(published[-1]),
    )


def script(noise: str) -> Callable[[Session, Mapping[str, Held[Floats]], Plan], Floats]:
    """The protocol's text for an order of noise; its docstring has the table of who sends what and learns what."""
    return {"shares": _noise_on_shares, "joint": _noise_jointly, "paper": _noise_after_opening}[noise]


def _gram(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> Shared:
    columns = {party: s.at(party, plan.prepare, party, tables[party]) for party in plan.schema.widths}
    return s.gram(columns, rows=plan.schema.rows, widths=plan.schema.widths, bits=plan.bits)


def _coefficients(s: Session, gram: Shared, plan: Plan, group: Group) -> Shared:
    entries = group.entries
    return s.take(gram, plan.coefficients.first[entries], plan.coefficients.second[entries], times=group.times)


def _publish(s: Session, plan: Plan, released: list[Held[Integers]] | Held[list[Integers]]) -> Floats:
    """The server solves and tells everybody: model, and how many directions of the form were not convex."""
    model = s.at(s.cast.server, plan.solve, released)
    return s.publish(model, shape=(2 + len(plan.schema.all_features),), message="model")


def _noise_on_shares(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> Floats:
    """Noise before opening: block (k, k) by P_k, block (k, l) by P_k and by P_l, one full draw each.

    step  from -> to      message             the receiver learns
    1     dealer -> P_k   corrections         nothing: uniform
    2     P_k -> P_l      masked columns      nothing: uniform without the dealer's seeds
    3     P_k -> server   noisy coefficients  their sum, epsilon-DP; no single share, no single party's noise
    4     server -> all   model               post-processing of step 3
    """
    return _publish(s, plan, open_noisy_sums(s, tables, plan))


def open_noisy_sums(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> list[Held[Integers]]:
    """Steps 1 to 3 of noise on shares: every group's noisy sums, at the server."""
    noises = [s.draw_noise(group.mechanism, group.contributors) for group in plan.groups]
    gram = _gram(s, tables, plan)  # 1, 2
    released = []
    for group, noise in zip(plan.groups, noises, strict=True):
        noisy = s.add_noise(_coefficients(s, gram, plan, group), noise)
        released.append(s.reveal(noisy, to=s.cast.server, message="noisy coefficients"))  # 3
    return released


def _noise_jointly(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> Floats:
    """Noise before opening, one draw a coefficient, made on shares by all parties and known to nobody.

    step  from -> to      message             the receiver learns
    1     dealer -> P_k   corrections         nothing: uniform
    2     P_k -> P_l      masked columns      nothing: uniform without the dealer's seeds
    3     dealer -> P_k   corrections         nothing: uniform
    4     P_k -> P_l      masked noise bits   nothing: uniform without the dealer's seeds
    5     P_k -> server   noisy coefficients  their sum, (epsilon, delta)-DP; no single share, none of the noise
    6     server -> all   model               post-processing of step 5
    """
    gram = _gram(s, tables, plan)  # 1, 2
    released = []
    for group in plan.groups:  # 3 to 5 for every group of coefficients
        mechanism = cast(JointLaplace, group.mechanism)  # as the plan has it for this order
        noisy = s.add_joint_noise(_coefficients(s, gram, plan, group), mechanism)
        released.append(s.reveal(noisy, to=s.cast.server, message="noisy coefficients"))
    return _publish(s, plan, released)  # 6


def _noise_after_opening(s: Session, tables: Mapping[str, Held[Floats]], plan: Plan) -> Floats:
    """The paper's order (Algorithm 1): a party sees its exact blocks, adds the noise, and knows the noise.

    step  from -> to      message             the receiver learns
    1     dealer -> P_k   corrections         nothing: uniform
    2     P_k -> P_l      masked columns      nothing: uniform without the dealer's seeds
    3     P_l -> P_k      exact block         the exact coefficients of its columns with P_l's: no privacy against it
    4     P_k -> server   noisy block         epsilon-DP coefficients
    5     server -> all   model               post-processing of step 4
    """
    openers = [_first_holder(group) for group in plan.groups]
    noises = [s.draw_noise(group.mechanism, opener) for group, opener in zip(plan.groups, openers, strict=True)]
    gram = _gram(s, tables, plan)  # 1, 2
    exact = []
    for group, opener, noise in zip(plan.groups, openers, noises, strict=True):
        coefficients = _coefficients(s, gram, plan, group)
        for party, mask in opener.items():
            part = s.take(coefficients, np.flatnonzero(mask))
            block = s.reveal(part, to=party, message="exact block", unprotected=True)  # 3
            exact.append((party, mask, block, noise.draws[party]))
    sent = []
    for party, mask, block, draws in exact:
        noisy = s.at(party, _perturb, block, draws, mask)
        sent.append(s.send(noisy, to=s.cast.server, shape=(int(mask.sum()),), message="noisy block"))  # 4
    return _publish(s, plan, s.at(s.cast.server, _assemble, openers, sent))  # 5


def _perturb(block: Integers, draws: Integers, mask: Mask) -> Integers:
    return block + draws[mask]


def _assemble(openers: list[dict[str, Mask]], blocks: list[Integers]) -> list[Integers]:
    """The groups' vectors from the parties' parts."""
    rest = iter(blocks)
    released = []
    for opener in openers:
        vector = np.zeros(len(next(iter(opener.values()))), dtype=np.int64)
        for mask in opener.values():
            vector[mask] = next(rest)
        released.append(vector)
    return released


def _first_holder(group: Group) -> dict[str, Mask]:
    """For every party the coefficients that it opens and perturbs: of two holders, the first."""
    taken = np.zeros(group.size, dtype=np.bool_)
    mine = {}
    for party, mask in group.contributors.items():
        if (mask & ~taken).any():
            mine[party] = mask & ~taken
        taken |= mask
    return mine
