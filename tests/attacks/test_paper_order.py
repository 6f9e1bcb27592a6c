"""The functional mechanism in its paper's order: a party opens exact blocks and knows the noise that it adds to them.

With a column that is zero but for one person, it reads that person's values at the next party: each is a coefficient.
Noise that meets the shares before they are opened leaves every coalition that lacks that party a full draw off.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pytest

from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from protocols.schema import Column, Floats, Schema
from smpc import Cast, ClearSession
from smpc.ring import Integers
from smpc.session import Mechanism
from smpc.values import Held, Noise, Shared, value_of

ROWS, PERSON, BITS = 60, 17, 22
CAST = Cast(("p0", "p1", "p2"))
ATTACKER, VICTIM = "p0", "p1"
FEATURES = {
    "p0": (Column("only_this_person", -1, 1), Column("age", 0, 120)),  # bounds whose middle is 0: zero stays zero
    "p1": (Column("income", 0, 2e5), Column("debt", -5e4, 1e6)),
    "p2": (Column("rooms", 1, 9),),
}
SCHEMA = Schema(ROWS, FEATURES, VICTIM, Column("rating", 0, 10))
BUDGETS = dict.fromkeys(combinations_with_replacement(CAST.parties, 2), Fraction(1, 6))


@dataclass(frozen=True)
class CoalitionView:
    """What colluders saw of a run: the arrays opened or sent to one of them, and what they drew.

    `noise`: for every coefficient to which any of them added noise, the sum of their draws; more entries do no harm.
    """

    opened: Sequence[Integers]
    noise: Integers


def attack(view: CoalitionView) -> set[int]:
    """All it can read: every entry as it is, and with any entry of the known noise taken off."""
    entries = np.concatenate([np.zeros(0, np.int64), *(array.ravel() for array in view.opened)])
    return {*entries.tolist(), *np.subtract.outer(entries, view.noise).ravel().tolist()}


class Recorded(ClearSession):
    """Keeps what each participant gets to see."""

    def __init__(self) -> None:
        super().__init__(CAST)
        self.opened: dict[str, list[Integers]] = {name: [] for name in CAST.everyone}
        self.draws: list[dict[str, Integers]] = []  # of each group of coefficients

    def draw_noise(self, mechanism: Mechanism, contributors: Mapping[str, npt.NDArray[np.bool_]]) -> Noise:
        noise = super().draw_noise(mechanism, contributors)
        self.draws.append({party: value_of(draw) for party, draw in noise.draws.items()})
        return noise

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        opened = super()._reveal(shared, to)
        self.opened[to].append(value_of(opened))
        return opened

    def _send(self, held: Held[Integers], to: str, shape: tuple[int, ...], message: str) -> Held[Integers]:
        sent: Held[Integers] = super()._send(held, to, shape, message)
        self.opened[to].append(value_of(sent))
        return sent

    def view(self, coalition: Collection[str]) -> CoalitionView:
        return CoalitionView([array for name in coalition for array in self.opened[name]], self.noise(coalition))

    def noise(self, coalition: Collection[str]) -> Integers:
        known = [[draw for party, draw in group.items() if party in coalition] for group in self.draws]
        return np.concatenate([np.zeros(0, np.int64), *(np.add.reduce(draws) for draws in known if draws)])


class FirstHolderOnly(Recorded):
    """A wrong variant: of the parties that a coefficient depends on, only the first adds noise."""

    def draw_noise(self, mechanism: Mechanism, contributors: Mapping[str, npt.NDArray[np.bool_]]) -> Noise:
        taken = np.zeros(next(iter(contributors.values())).size, dtype=np.bool_)
        alone = {}
        for party, mask in contributors.items():
            alone[party] = mask & ~taken
            taken |= mask
        return super().draw_noise(mechanism, alone)


@dataclass(frozen=True)
class Run:
    """A recorded run and the coefficients that are one person's values at the victim."""

    session: Recorded
    secret: set[int]

    def read(self, coalition: Collection[str]) -> int:
        return len(self.secret & attack(self.session.view(coalition)))


def run(noise: str, session: Recorded, bottom_up: bool) -> Run:
    tables = {party: random_table(SCHEMA.columns(party)) for party in SCHEMA.widths}
    tables[ATTACKER][0] = np.arange(ROWS) == PERSON
    tables[VICTIM][:, PERSON] = 52_000, 13_500, 7
    options, epsilon = (Options(budgets=BUDGETS), None) if bottom_up else (Options(), Fraction(1))
    plan = Plan.make(SCHEMA, epsilon=epsilon, noise=noise, bits=BITS, options=options)
    fit(session, {party: Held(party, table) for party, table in tables.items()}, plan)
    person = plan.prepare(VICTIM, tables[VICTIM])[:, PERSON]
    return Run(session, {int(value) << BITS for value in person})  # times the indicator's 1


def random_table(columns: Sequence[Column]) -> Floats:
    return np.array([np.random.default_rng().uniform(column.low, column.high, ROWS) for column in columns])


def coalitions(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [members for size in range(1, len(names) + 1) for members in combinations(names, size)]


WITHOUT_VICTIM = coalitions(["server", "p0", "p2"])
both_budgets = pytest.mark.parametrize("bottom_up", [False, True], ids=["top-down", "bottom-up"])


@both_budgets
def test_in_the_papers_order_the_party_that_opens_a_block_reads_one_persons_values(bottom_up: bool) -> None:
    paper = run("paper", Recorded(), bottom_up)
    assert len(paper.secret) == SCHEMA.widths[VICTIM]
    for coalition in WITHOUT_VICTIM:
        assert paper.read(coalition) == (len(paper.secret) if ATTACKER in coalition else 0)


@both_budgets
def test_in_the_papers_order_the_owner_of_the_noise_takes_it_off_what_the_server_got(bottom_up: bool) -> None:
    paper = run("paper", Recorded(), bottom_up)
    received = paper.session.opened["server"]
    assert paper.secret <= attack(CoalitionView(received, paper.session.noise([ATTACKER])))
    assert not paper.secret & attack(CoalitionView(received, paper.session.noise(["p2"])))


@both_budgets
@pytest.mark.parametrize("noise", ["shares", "joint"])
def test_noise_on_shares_leaves_nothing_to_the_server_with_all_other_parties(noise: str, bottom_up: bool) -> None:
    ours = run(noise, Recorded(), bottom_up)
    for coalition in WITHOUT_VICTIM:
        assert ours.read(coalition) == 0


@both_budgets
def test_the_views_are_complete_and_a_wrong_choice_of_contributors_is_caught(bottom_up: bool) -> None:
    ours = run("shares", Recorded(), bottom_up)
    assert ours.read(["server", *CAST.parties]) == len(ours.secret), "the victim's draws are all that is missing"
    wrong = run("shares", FirstHolderOnly(), bottom_up)
    for coalition in WITHOUT_VICTIM:
        assert wrong.read(coalition) == (len(wrong.secret) if {"server", ATTACKER} <= set(coalition) else 0)
