"""One split of a public table into training and test rows: the protocol and the baselines on it, by test error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from fractions import Fraction

import numpy as np

from mechanisms.randomness import RandomWords
from protocols.baselines.inputs import with_ones
from protocols.baselines.model import Model
from protocols.evaluation import mean_squared_error, misclassification, split, words_of
from protocols.functional import protocol as functional
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.functional.weights import without_categories
from protocols.public_coding import Dataset
from protocols.schema import Column, Floats, Schema
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.errors import InputError
from smpc.ring import Integers
from smpc.values import Held

Fit = Callable[[Floats, Floats, RandomWords], Model]


class RememberingSession(ClearSession):
    """The clear session for many runs on the same tables: a joint product is made once for every fixed point."""

    def __init__(self, cast: Cast) -> None:
        super().__init__(cast)
        self._grams: dict[int, Integers] = {}

    def restart(self, random: Mapping[str, RandomWords]) -> None:
        """Other randomness from here on."""
        self._words = random

    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Integers:
        if one not in self._grams:
            self._grams[one] = super()._gram(columns, rows, widths, one)
        return self._grams[one]


def shared_out(columns: tuple[Column, ...], parties: int) -> list[slice]:
    """Neighbouring columns for each party, as even as categories, which stay whole, allow.

    Raises InputError where there are fewer columns and categories than parties.
    """
    starts = [i for i, c in enumerate(columns) if not i or c.category is None or c.category != columns[i - 1].category]
    if parties > len(starts):
        raise InputError(f"parties = {parties}: {len(starts)} columns and whole categories are too few; take fewer")
    edges = [0]
    for k in range(1, parties):
        left = [start for start in starts if start > edges[-1]]
        allowed = left[: len(left) - (parties - 1 - k)]  # one for each party that is still to come
        edges.append(min(allowed, key=lambda s: abs(s - k * len(columns) / parties)))
    return [slice(a, b) for a, b in zip(edges, [*edges[1:], len(columns)], strict=True)]


class Trial:
    """A data set, the split of its rows by `seed`, a fifth of them for the test, and the number of a draw of noise."""

    def __init__(self, data: Dataset, seed: int, draw: int = 0) -> None:
        self.data, self.seed, self.draw = data, seed, draw
        self.train, self.test = split(len(data.y), seed)
        self.y = data.scaled()[1]
        self.x = {signed: with_ones(data.scaled(signed=signed)[0]) for signed in (True, False)}
        self._sessions: dict[tuple[int, bool], RememberingSession] = {}

    def again(self, draw: int) -> Trial:
        """The same split, and products made so far, with other noise."""
        other = copy(self)
        other.draw = draw
        return other

    def schema(self, parties: int) -> Schema:
        """The columns with so many parties, the label with the first."""
        held = [self.data.columns[place] for place in shared_out(self.data.columns, parties)]
        names = [f"P{k}" for k in range(1, parties + 1)]
        return Schema(len(self.train), dict(zip(names, held, strict=True)), names[0], self.data.label)

    def baseline(self, name: str, fit: Fit, *, signed: bool = True) -> float:
        """The test error of a central method; `name` names its draws.

        Columns are in [-1, 1], indicators 0 or 1 unless `signed`, and the last column is one of ones.
        """
        words, x = words_of("baseline", name, self.seed, self.draw), self.x[signed]
        return self._error(fit(x[self.train], self.y[self.train], words).score(x[self.test]))

    def protocol(
        self, epsilon: Fraction, options: Options, *, noise: str = "shares", parties: int = 2, categories: bool = True
    ) -> float:
        """The test error of `functional.fit` in the clear; without `categories` indicators are as any column."""
        schema = self.schema(parties)
        if not categories:
            schema = without_categories(schema)
        plan = Plan.make(schema, epsilon=epsilon, noise=noise, options=options)
        coding = (parties, bool(plan.schema.categories))
        session = self._sessions.setdefault(coding, RememberingSession(Cast(tuple(schema.widths))))
        drawn = (epsilon, options, noise, parties, categories, self.seed, self.draw)
        session.restart({name: words_of("protocol", name, *drawn) for name in session.cast.everyone})
        release = functional.fit(session, self._tables(schema), plan)
        scores = release.values[0] + self.data.x[self.test] @ release.values[1:]
        if self.data.loss == "linear":
            scores = (scores - self.data.label.middle) / self.data.label.half
        return self._error(scores)

    def _tables(self, schema: Schema) -> dict[str, Held[Floats]]:
        tables = {}
        places = shared_out(self.data.columns, len(schema.widths))
        for name, place in zip(schema.widths, places, strict=True):
            own = [self.data.x[self.train][:, place].T]
            own += [self.data.y[self.train][None]] if name == schema.label_holder else []
            tables[name] = Held(name, np.vstack(own))
        return tables

    def _error(self, scores: Floats) -> float:
        measure = mean_squared_error if self.data.loss == "linear" else misclassification
        return measure(self.y[self.test], scores)
