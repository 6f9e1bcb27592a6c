"""Shared by tests: small tables, seeded randomness for equal draws, tasks that pool processes run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.randomness import RandomWords, Stream
from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from protocols.schema import Column, Floats, Schema
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.session import Session
from smpc.values import Held

SEED = bytes(range(32))


class Silent(DiscreteLaplace):
    """A test-only mechanism without noise."""

    def draw(self, count: int, random: RandomWords) -> npt.NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)


def silenced(plan: Plan) -> Plan:
    """The same plan without noise."""
    return replace(plan, groups=tuple(replace(g, mechanism=Silent(Fraction(1, 2**40))) for g in plan.groups))


def words_of(name: str) -> Stream:
    """The same words for the same name: only tests replay randomness."""
    return Stream(SEED[:-1] + bytes([len(name) + ord(name[0])]))


def schema(rows: int, widths: Mapping[str, int], label_holder: str) -> Schema:
    features = {p: tuple(Column(f"{p}{i}", -1.0, 1.0 + i) for i in range(width)) for p, width in widths.items()}
    return Schema(rows, features, label_holder, Column("y", 0.0, 4.0))


def tables(of: Schema, seed: int = 0) -> dict[str, Floats]:
    """Values all over the bounds, ends included."""
    rng = np.random.default_rng(seed)
    result = {}
    for party in of.widths:
        columns = of.columns(party)
        values = rng.random((len(columns), of.rows))
        values[rng.random(values.shape) < 0.1] = 1.0
        low = np.array([[c.low] for c in columns])
        high = np.array([[c.high] for c in columns])
        result[party] = np.clip(low + values * (high - low), low, high)
    return result


def held(s: Session, values: Mapping[str, Any]) -> dict[str, Held[Any]]:
    """Each party's value as it holds it: in a process of its own, the others' are absent."""
    return {p: Held(p, v if getattr(s, "me", p) == p else None) for p, v in values.items()}


def clear_fit(of: Schema, values: Mapping[str, Floats], plan: Plan) -> tuple[Any, ClearSession]:
    cast = Cast(tuple(of.widths))
    s = ClearSession(cast, random={name: words_of(name) for name in cast.everyone})
    return fit(s, held(s, values), plan), s


def fit_task(s: Any, of: Schema, values: Mapping[str, Floats], epsilon: str, noise: str, bits: int | None) -> Any:
    """`fit` in a pool process, with the words that `clear_fit` uses."""
    s._own_random = words_of(s.me)
    plan = Plan.make(of, epsilon=Fraction(epsilon), noise=noise, bits=bits)
    release = fit(s, held(s, values), plan)
    return release.values, s.transcript.steps()
