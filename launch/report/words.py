"""A guarantee in words: what is protected, against whom, how well, and what that rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from launch.report.markup import Markup, element, join, table
from mechanisms.coalition import Coalition
from mechanisms.guarantee import INFINITE, Guarantee, Row
from mechanisms.neighbours import FlipLabel, Neighbours, ReplaceParty
from mechanisms.validate import WEAK_EPSILON

_FEW = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LARGEST = 10**300  # still a float
_LONGEST = 16  # characters of a fraction in a table
_MUCH = 10  # above, epsilon says little about anybody's protection


def guarantee_section(guarantee: Guarantee) -> Markup:
    """Every row as a sentence, grouped by what is protected; what each rests on."""
    relations = list(dict.fromkeys(row.neighbours for row in guarantee.rows))
    conditions = list(dict.fromkeys(text for row in guarantee.rows if _holds(row) for text in row.assumptions))
    parts = [element("p", _meaning(guarantee))]
    for relation in relations:
        subject = protected(relation)
        rows = [row for row in guarantee.rows if row.neighbours == relation]
        parts.append(element("h3", subject[0].upper() + subject[1:]))
        parts.append(element("ul", *(_sentence(row, guarantee, subject, conditions) for row in rows)))
    if conditions:
        listed = (element("li", text, id=_anchor(number)) for number, text in enumerate(conditions, 1))
        parts += [element("h3", "Protection holds only if"), element("ol", *listed)]
    return join(parts)


def protected(neighbours: Neighbours) -> str:
    """What may differ without being noticed, for a reader."""
    if isinstance(neighbours, ReplaceParty):
        return "all data of one voter"
    if isinstance(neighbours, FlipLabel):
        return "one person's label"
    return "one person's row" if neighbours.holder is None else f"one person's data at {neighbours.holder}"


def against(coalition: Coalition, guarantee: Guarantee, holder: str | None = None) -> str:
    """Who puts their views together, for a reader; `holder` of what is protected is none of them."""
    names = [_role(name, guarantee) for name in sorted(coalition.members, key=lambda name: name != guarantee.server)]
    if coalition.parties:
        other = "other " if holder or coalition.members & set(guarantee.parties) else ""
        names.append(f"any {_count(coalition.parties)} {other}part{'y' if coalition.parties == 1 else 'ies'}")
    return listing(names)


def listing(names: Iterable[str]) -> str:
    """a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _role(name: str, guarantee: Guarantee) -> str:
    for role, holder in (("the server", guarantee.server), ("the dealer", guarantee.dealer)):
        if name == holder:
            return role if role.endswith(f" {name}") else f"{role} ({name})"
    return name


def _count(number: int) -> str:
    return _FEW[number] if number < len(_FEW) else str(number)


def _holds(row: Row) -> bool:
    return row.epsilon != INFINITE


def _sentence(row: Row, guarantee: Guarantee, subject: str, conditions: list[str]) -> Markup:
    who = against(row.coalition, guarantee, getattr(row.neighbours, "holder", None))
    together = " together" if row.coalition.parties + len(row.coalition.members) > 1 else ""
    if not _holds(row):
        because = f", because {listing(row.assumptions)}" if row.assumptions else ""
        return element(
            "li", f"Against {who}{together}: ", element("strong", "not protected", class_="no"), because, "."
        )
    delta = f" and delta {rounded_up(row.delta, 4)}" if row.delta else ""
    weak = row.epsilon > WEAK_EPSILON
    little = (
        ", which is too weak to protect anybody" if weak else ", which promises little" if row.epsilon > _MUCH else ""
    )
    links: list[str] = []
    for text in row.assumptions:
        number = conditions.index(text) + 1
        links += [" " if links else "", element("a", f"[{number}]", href=f"#{_anchor(number)}")]
    given = join([", given ", *links]) if links else ""
    return element(
        "li",
        f"Against {who}{together}, {subject} is ",
        element("strong", "not protected in practice" if weak else "protected", class_="no" if weak else "yes"),
        f": epsilon {rounded_up(row.epsilon, 4)} (factor {factor(row.epsilon)}){delta}{little}",
        given,
        ".",
    )


def _anchor(number: int) -> str:
    return f"condition-{number}"


def _meaning(guarantee: Guarantee) -> str:
    finite = [row for row in guarantee.rows if _holds(row)]
    if not finite:
        return "Nothing in this run is protected by noise: whoever is named below can learn exact data."
    text = (
        "Epsilon bounds what can be told from all that somebody has seen: it was at most so many times as likely (the "
        "factor) with the protected data as with any other in its place. Small is good; a factor of 1 (epsilon 0) "
        "would tell nothing."
    )
    if any(row.delta for row in finite):
        text += " Delta is added to the probability: it is the room for exceptions."
    return f"{text} Who is not listed with an epsilon is not covered."


def exact_section(guarantee: Guarantee) -> Markup:
    """All rows of guarantee.json, mechanisms and accountants among them."""
    columns = ("against", "neighbours", "epsilon", "delta", "mechanism", "accountant")
    rows = [
        (
            str(row.coalition),
            str(row.neighbours),
            _exactly(row.epsilon),
            _exactly(row.delta),
            row.mechanism,
            row.accountant,
        )
        for row in guarantee.rows
    ]
    return table("Rows of guarantee.json", columns, rows, words=(1, 4, 5))


def _exactly(value: Fraction | float) -> str:
    """As in guarantee.json; of a fraction with very many digits the first ones, rounded up."""
    exact = "infinite" if value == INFINITE else str(value)
    return exact if len(exact) <= _LONGEST else f"{rounded_up(value, 12)} (rounded up)"


def factor(epsilon: Fraction | float) -> str:
    """e^epsilon, rounded up."""
    if epsilon <= WEAK_EPSILON:
        return rounded_up(math.exp(epsilon), 3)
    return f"10^{math.ceil(float(min(epsilon, _LARGEST)) / math.log(10))}"


def rounded_up(value: Fraction | float, digits: int) -> str:
    """A decimal that is not below `value`: a guarantee must not look better than it is."""
    fraction = Fraction(min(value, _LARGEST))
    exact = Context(prec=digits, rounding=ROUND_CEILING)
    return f"{float(exact.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))):.{digits}g}"
