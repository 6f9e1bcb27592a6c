"""A guarantee in words says what its rows say: all of it, and nothing better."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import pytest

from launch.report.words import against, exact_section, guarantee_section, listing, protected
from mechanisms.guarantee import DEALER_APART, DEALER_KNOWS_MASKS, OPENED_BEFORE_NOISE, Guarantee
from mechanisms.neighbours import FlipLabel, ReplaceParty, ReplaceRecord
from tests.launch.report.support import PARTIES, Page, guarantee


def sentences(promise: Guarantee) -> list[str]:
    """One for each row, without the numbers of its conditions."""
    found = re.findall(r"<li>(.*?)</li>", guarantee_section(promise))
    return [re.sub(r"(, given )?( ?\[\d+\])+", "", Page(text).text) for text in found]


def linked(promise: Guarantee) -> list[list[str]]:
    """The conditions that each row's sentence names, in words."""
    html = guarantee_section(promise)
    conditions = dict(re.findall(r'<li id="(condition-\d+)">(.*?)</li>', html))
    return [
        [conditions[name] for name in re.findall(r'href="#(.*?)"', row)] for row in re.findall("<li>(.*?)</li>", html)
    ]


def squeeze(text: str) -> str:
    return text.replace(" .", ".").replace(" :", ":").replace(" ,", ",")


def test_every_row_is_a_sentence() -> None:
    told = [squeeze(text) for text in sentences(guarantee())]
    assert told == [
        "Against the server, one person's row is protected: epsilon 0.3333.",
        "Against the server and any one party together, one person's row is protected: epsilon 0.3333.",
        "Against the server and any two parties together, one person's row is protected: epsilon 0.3333.",
        "Against the server and the dealer together, one person's row is protected: epsilon 0.3333.",
        f"Against the dealer and any one party together: not protected, because {DEALER_KNOWS_MASKS}.",
        "Against the server, one person's data at bob is protected: epsilon 0.25.",
        "Against the server and any one party together, one person's data at bob is protected: epsilon 0.25.",
        "Against the server and any two parties together, one person's data at bob is protected: epsilon 0.25.",
        "Against the server and the dealer together, one person's data at bob is protected: epsilon 0.25.",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"order": "paper"},
        {"order": "none", "epsilon": None, "per_party": None},
        {"order": "joint", "delta": Fraction(1, 10**9), "assumptions": ("noise has finite precision",)},
        {"dealer": None, "server": None},
        {"dealer": None, "quorum": 2},
        {"neighbours": ReplaceParty(), "per_party": None},
        {"neighbours": FlipLabel(), "per_party": None, "server": None, "dealer": None, "parties": ("a", "b")},
    ],
)
def test_each_row_tells_its_own_numbers_and_all_it_rests_on(changes: dict[str, Any]) -> None:
    promise = guarantee(**changes)
    told = sentences(promise)
    assert len(told) == len(promise.rows)
    for row, text, conditions in zip(promise.rows, told, linked(promise), strict=True):
        assert against(row.coalition, promise) in text
        if row.epsilon == math.inf:
            assert "not protected" in text and "epsilon" not in text and conditions == []
            assert all(reason in text for reason in row.assumptions)
        else:
            assert "not protected" not in text and protected(row.neighbours) in text
            assert f"epsilon {float(row.epsilon):.4g}" in text and ("delta" in text) == (row.delta > 0)
            assert tuple(conditions) == row.assumptions


def test_what_the_paper_order_gives_away_is_said() -> None:
    told = sentences(guarantee(order="paper"))
    assert f"Against any one party: not protected, because {OPENED_BEFORE_NOISE}." in map(squeeze, told)


def test_an_epsilon_that_protects_nobody_is_not_called_protection() -> None:
    promise = guarantee(epsilon=10**6, per_party=None)
    assert "not protected in practice" in sentences(promise)[0]
    page = Page(guarantee_section(promise))
    assert not any(attributes.get("class") == "yes" for _, attributes in page.tags)
    assert "more than 10^434,294 times" in page.text
    huge = guarantee(epsilon=Fraction(10) ** 400, per_party=None)
    assert "not protected in practice" in sentences(huge)[0]


def test_the_factor_is_that_of_the_largest_finite_epsilon() -> None:
    text = Page(guarantee_section(guarantee(epsilon=2))).text
    assert "largest finite one below is 2: whatever was seen is at most 7.39 times as likely" in text
    assert (
        "Nothing in this run is protected"
        in Page(guarantee_section(guarantee(order="none", epsilon=None, per_party=None))).text
    )


def test_conditions_stand_once_each() -> None:
    html = guarantee_section(guarantee())
    assert html.count(DEALER_APART) == 1


def test_the_exact_table_has_fractions() -> None:
    rows = re.findall("<tr>(.*?)</tr>", exact_section(guarantee()))[1:]
    assert len(rows) == len(guarantee().rows)
    assert ">1/3<" in rows[0] and ">infinite<" in rows[4] and ">1/4<" in rows[5]


def test_roles_are_named_where_their_name_does_not_say_it() -> None:
    promise = guarantee(server="hub")
    assert against(promise.rows[0].coalition, promise) == "the server (hub)"
    assert against(promise.rows[3].coalition, promise) == "the server (hub) and the dealer"


def test_units_in_words() -> None:
    assert protected(ReplaceRecord()) == "one person's row"
    assert protected(ReplaceRecord("ann")) == "one person's data at ann"
    assert protected(ReplaceParty()) == "all data of one party"
    assert protected(FlipLabel()) == "one person's label"
    assert [listing(PARTIES[:n]) for n in (1, 2, 3)] == ["ann", "ann and bob", "ann, bob and cid"]
