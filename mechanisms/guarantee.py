"""What a release guarantees: a table over who colludes, never one number.

A row says: for these neighbours, the view of this coalition is (epsilon, delta)-indistinguishable, by this mechanism,
under these assumptions. Infinite epsilon is stated as a row too. A guarantee cannot be built without the rows that
matter: the server; the server with any T parties, T = 1 .. K-1; the server with the dealer; the dealer with a party.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from mechanisms import validate
from mechanisms.coalition import Coalition, required
from mechanisms.neighbours import FlipLabel, Neighbours, ReplaceParty, ReplaceRecord

INFINITE = math.inf
MOST_FINITE = 2**1000  # what is read and shown as a float
UNITS = {ReplaceRecord: "record", ReplaceParty: "party", FlipLabel: "label"}
RELATIONS = {unit: relation for relation, unit in UNITS.items()}
SEMI_HONEST = "every participant follows the protocol, with values within their declared bounds"
COMPUTATIONAL = "AES-256 keystreams and TLS 1.3 are unbroken"
DEALER_APART = "the dealer colludes with no party"
DEALER_KNOWS_MASKS = "the dealer made the masks: with a party it opens the columns of the other parties"
DEALER_OPENS_BALLOTS = "the dealer made the masks: with a compute party it opens every ballot"
OPENED_BEFORE_NOISE = "values are opened before their noise is added, as in the source paper"
NO_NOISE = "no noise is added"
OWN_DATA = "what the coalition itself holds is the same in both neighbours"


class Order(Enum):
    """When noise meets the values: each holder's draw on its shares, one joint draw on the shares, after opening (as
    the source papers do), or never."""

    SHARES = "shares"
    JOINT = "joint"
    PAPER = "paper"
    NONE = "none"


@dataclass(frozen=True)
class Row:
    """One line of the table. `accountant` names the rule that gave epsilon and delta."""

    coalition: Coalition
    neighbours: Neighbours
    epsilon: Fraction | float
    delta: Fraction
    mechanism: str
    accountant: str
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= validate.fraction("delta", self.delta) < 1:
            raise ValueError(f"delta={self.delta} is outside [0, 1): give a fraction in that range")
        if self.epsilon != INFINITE:
            epsilon = validate.fraction("epsilon", self.epsilon)
            if epsilon != 0 or self.delta == 0:  # (0, delta) bounds the total variation
                validate.positive("epsilon", epsilon)

    @property
    def unit(self) -> str:
        """What is protected."""
        return UNITS[type(self.neighbours)]


@dataclass(frozen=True)
class Guarantee:
    """The rows of a release of `parties`, a server and a dealer (None: the protocol has no such role).

    Raises ValueError when a required row is missing, when a larger coalition is said to learn less, when names clash.
    """

    parties: tuple[str, ...]
    server: str | None
    dealer: str | None
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        names = [*self.parties, *filter(None, (self.server, self.dealer))]
        if not self.parties or len(set(names)) < len(names) or not all(isinstance(n, str) and n for n in names):
            raise ValueError(f"names={names} must be one or more parties and distinct roles: rename them")
        for row in self.rows:
            unknown = row.coalition.members - set(names)
            if unknown or not 0 <= row.coalition.parties <= len(self.parties):
                raise ValueError(f"coalition={row.coalition} is not made of {names}: name roles of this job")
            if self._breaks(row.coalition) and row.epsilon != INFINITE:
                raise ValueError(
                    f"epsilon={row.epsilon} against {row.coalition}: the dealer with a party sees all, say inf"
                )
        self._check_required()
        self._check_order()

    def _breaks(self, coalition: Coalition) -> bool:
        members = coalition.members
        return self.dealer in members and (coalition.parties > 0 or not members.isdisjoint(self.parties))

    def _check_required(self) -> None:
        relations = {row.neighbours for row in self.rows}
        needed = required(self.parties, self.server, self.dealer)
        missing = {
            relation: [c for c in needed if not any(r.coalition == c and r.neighbours == relation for r in self.rows)]
            for relation in relations
        }
        if all(missing.values()):
            first = min(missing.values(), key=len, default=needed)
            raise ValueError(
                f"rows={len(self.rows)} lack {', '.join(f'{{{c}}}' for c in first)}: state every coalition"
            )

    def _check_order(self) -> None:
        for small in self.rows:
            for large in self.rows:
                comparable = small.neighbours == large.neighbours and small.coalition.within(large.coalition)
                if comparable and (large.epsilon, large.delta) < (small.epsilon, small.delta):
                    raise ValueError(
                        f"epsilon={large.epsilon} against {large.coalition} is below {small.epsilon} against "
                        f"{small.coalition}: a larger coalition learns no less"
                    )

    @classmethod
    def for_release(
        cls,
        *,
        order: str,
        epsilon: object,
        parties: Sequence[str],
        server: str | None,
        dealer: str | None,
        mechanism: str,
        delta: Fraction = Fraction(0),
        neighbours: Neighbours = ReplaceRecord(),  # noqa: B008  # a frozen value without state
        accountant: str = "pure sum",
        per_party: Mapping[str, Fraction] | None = None,
        server_opens: bool = False,
        assumptions: Sequence[str] = (),
        quorum: int | None = None,
    ) -> Guarantee:
        """The table of one release at `epsilon`, `delta`, with the noise order "shares", "joint", "paper" or "none".

        Noise on shares holds against the server with any K-1 parties: each value that depends on an honest party
        carries a full draw that no coalition without it knows. In the papers' order some party sees values before
        their noise; `server_opens` says that the server does too. `quorum` says that so many parties together, whoever
        they are, hold the keys to all that is encrypted. `per_party[p]` is epsilon^(p), for neighbours that differ at p
        only: rows of their own against every coalition with a finite epsilon.
        """
        try:
            when = Order(order)
        except ValueError:
            names = ", ".join(o.value for o in Order)
            raise ValueError(f"order={order!r} is no order of noise: give one of {names}") from None
        if quorum is not None and not 2 <= validate.integer("quorum", quorum) <= len(parties):
            raise ValueError(f"quorum={quorum} must be from 2 to the number of parties, {len(parties)}")
        finite = validate.epsilon(epsilon, allow_weak=True) if when is not Order.NONE else INFINITE
        noisy = Row(Coalition(frozenset()), neighbours, finite, delta, mechanism, accountant, ())
        exposed = replace(noisy, epsilon=INFINITE, delta=Fraction(0), accountant="none")
        common = (SEMI_HONEST, COMPUTATIONAL, *assumptions)
        apart = (DEALER_APART,) if dealer else ()
        opened_by_dealer = DEALER_OPENS_BALLOTS if isinstance(neighbours, ReplaceParty) else DEALER_KNOWS_MASKS
        coalitions = required(parties, server, dealer)
        if when is Order.PAPER and server:
            coalitions.append(Coalition(frozenset(), 1))
        if quorum is not None and server and quorum < len(parties):
            coalitions.append(Coalition(frozenset(), quorum))
        rows = []
        for coalition in coalitions:
            if dealer in coalition.members and coalition.parties:
                row = replace(exposed, assumptions=(opened_by_dealer,))
            elif when is Order.NONE:
                row = replace(exposed, assumptions=(NO_NOISE,))
            elif quorum is not None and coalition.parties >= quorum:
                row = replace(exposed, assumptions=(f"any {quorum} parties together hold the keys to everything",))
            elif when is Order.PAPER and (coalition.parties or server_opens):
                row = replace(exposed, assumptions=(OPENED_BEFORE_NOISE,))
            else:
                row = replace(noisy, assumptions=common if dealer in coalition.members else (*common, *apart))
            if row.epsilon != INFINITE and (coalition.parties or not coalition.members.isdisjoint(parties)):
                row = replace(row, assumptions=(*row.assumptions, OWN_DATA))
            rows.append(replace(row, coalition=coalition))
        finite_rows = [row for row in rows if row.epsilon != INFINITE]
        for party, part in (per_party or {}).items():
            if party not in parties:
                raise ValueError(f"per_party={party!r} is none of {', '.join(parties)}: name parties of this job")
            own, at_party = validate.epsilon(part, allow_weak=True), ReplaceRecord(party)
            rows += [replace(row, epsilon=own, neighbours=at_party) for row in finite_rows]
        return cls(tuple(parties), server, dealer, tuple(rows))

    def worst(self, collusion: int) -> Row:
        """The row to charge for: the largest epsilon among coalitions of at most `collusion` parties, dealer apart."""
        validate.integer("collusion", collusion)
        rows = [r for r in self.rows if r.coalition.parties <= collusion and not self._breaks(r.coalition)]
        return max(rows, key=lambda r: (r.epsilon, r.delta))

    def __str__(self) -> str:
        header = ("protects", "against", "neighbours", "epsilon", "delta", "mechanism", "accountant")
        against: dict[tuple[str, ...], list[str]] = {}  # coalitions that are protected against alike, in one line
        for r in self.rows:
            protects = "voter" if isinstance(r.neighbours, ReplaceParty) else r.unit  # parties of coalitions compute
            alike = (protects, str(r.neighbours), _decimal(r.epsilon), _decimal(r.delta), r.mechanism, r.accountant)
            against.setdefault(alike, []).append(str(r.coalition))
        lines = [header, *((unit, "; ".join(who), *rest) for (unit, *rest), who in against.items())]
        widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        notes: dict[str, list[str]] = {}
        for r in self.rows:
            for assumption in r.assumptions:
                notes.setdefault(assumption, []).append(str(r.coalition))
        listed = [f"- {note} ({'; '.join(dict.fromkeys(where))})" for note, where in notes.items()]
        return "\n".join([*table, "given that, or because:", *listed])

    def to_json(self) -> str:
        """Exact: fractions as text like "1/10", infinity as "inf"."""
        rows = [
            {
                "unit": r.unit,
                "coalition": {"members": sorted(r.coalition.members), "parties": r.coalition.parties},
                "neighbours": str(r.neighbours),
                "holder": r.neighbours.holder if isinstance(r.neighbours, ReplaceRecord) else None,
                "epsilon": str(r.epsilon),
                "delta": str(r.delta),
                "mechanism": r.mechanism,
                "accountant": r.accountant,
                "assumptions": list(r.assumptions),
            }
            for r in self.rows
        ]
        roles = {"parties": list(self.parties), "server": self.server, "dealer": self.dealer}
        return json.dumps({**roles, "rows": rows}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """The guarantee that `to_json` wrote; raises ValueError for anything else."""
        try:
            data = json.loads(text)
            rows = tuple(_row(item) for item in data["rows"])
            server, dealer = (role if role is None else _line(role) for role in (data["server"], data["dealer"]))
            return cls(tuple(map(_line, data["parties"])), server, dealer, rows)
        except (KeyError, TypeError, RecursionError, json.JSONDecodeError) as error:
            raise ValueError(f"guarantee={text[:40]!r} is not the JSON of a guarantee: {error!r}") from None


def _row(item: Mapping[str, Any]) -> Row:
    relation, holder = RELATIONS[str(item["unit"])], item["holder"]
    neighbours = ReplaceRecord(None if holder is None else _line(holder)) if relation is ReplaceRecord else relation()
    coalition = item["coalition"]
    return Row(
        Coalition(frozenset(coalition["members"]), coalition["parties"]),
        neighbours,
        INFINITE if item["epsilon"] == "inf" else _number(item["epsilon"]),
        _number(item["delta"]),
        _line(item["mechanism"]),
        _line(item["accountant"]),
        tuple(map(_line, item["assumptions"])),
    )


def _number(text: object) -> Fraction:
    number = validate.written(text)
    if number > MOST_FINITE:
        raise ValueError(f"{text!r:.60} is above 2^1000: say inf")
    return number


def _line(text: object) -> str:
    """Text that is fit for a terminal."""
    if not isinstance(text, str) or not text.isprintable():
        raise ValueError(f"{text!r:.60} is no line of printable characters")
    return text


def _decimal(value: Fraction | float) -> str:
    return "infinite" if value == INFINITE else f"{float(value):.4g}"
