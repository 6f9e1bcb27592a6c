"""A guarantee in words says what its rows say: all of it, and nothing better."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.report.words import against, exact_section, factor, guarantee_section, listing, protected, rounded_up
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
    coalitions = (
        "the server",
        "the server and any one party together",
        "the server and any two parties together",
        "the server and the dealer together",
    )
    assert [squeeze(text) for text in sentences(guarantee())] == [
        *(f"Against {who}, one person's row is protected: epsilon 0.3334 (factor 1.4)." for who in coalitions),
        f"Against the dealer and any one party together: not protected, because {DEALER_KNOWS_MASKS}.",
        *(
            f"Against {who.replace('one party', 'one other party').replace('two parties', 'two other parties')}, "
            "one person's data at bob is protected: epsilon 0.25 (factor 1.29)."
            for who in coalitions
        ),
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
        assert against(row.coalition, promise, getattr(row.neighbours, "holder", None)) in text
        if row.epsilon == math.inf:
            assert "not protected" in text and "epsilon" not in text and conditions == []
            assert all(reason in text for reason in row.assumptions)
        else:
            assert "not protected" not in text and protected(row.neighbours) in text
            assert f"epsilon {rounded_up(row.epsilon, 4)} (factor {factor(row.epsilon)})" in text and (
                "delta" in text
            ) == (row.delta > 0)
            assert tuple(conditions) == row.assumptions


def test_what_the_paper_order_gives_away_is_said() -> None:
    told = sentences(guarantee(order="paper"))
    assert f"Against any one party: not protected, because {OPENED_BEFORE_NOISE}." in map(squeeze, told)


def test_an_epsilon_that_protects_nobody_is_not_called_protection() -> None:
    promise = guarantee(epsilon=10**6, per_party=None)
    assert "not protected in practice" in sentences(promise)[0]
    page = Page(guarantee_section(promise))
    assert not any(attributes.get("class") == "yes" for _, attributes in page.tags)
    assert "epsilon 1e+06 (factor 10^434295), which is too weak to protect anybody" in page.text
    huge = guarantee(epsilon=Fraction(10) ** 400, per_party=None)
    assert "not protected in practice" in sentences(huge)[0]


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**6), st.integers(1, 12))
def test_numbers_of_a_guarantee_are_never_too_small(value: Fraction, digits: int) -> None:
    shown = Fraction(rounded_up(value, digits))
    assert value <= shown < value * (1 + Fraction(10, 10**digits))


def test_factors() -> None:
    assert [factor(Fraction(e)) for e in ("0.001", "1", "2", "50")] == ["1.01", "2.72", "7.39", "5.19e+21"]
    assert factor(Fraction(51)) == "10^23"  # e^51 = 1.41e22
    assert factor(Fraction(10) ** 400).startswith("10^434294481903251")


def test_without_noise_nothing_is_said_to_be_protected() -> None:
    page = Page(guarantee_section(guarantee(order="none", epsilon=None, per_party=None)))
    assert "Nothing in this run is protected" in page.text and not any(a.get("class") == "yes" for _, a in page.tags)


def test_it_is_the_factor_of_1_that_tells_nothing() -> None:
    """Said without the word it would be read as epsilon 1, which stands right below."""
    text = guarantee_section(guarantee(epsilon=1))
    assert "a factor of 1 (epsilon 0) would tell nothing" in text and ", 1 would tell" not in text


def test_conditions_stand_once_each() -> None:
    html = guarantee_section(guarantee())
    assert html.count(DEALER_APART) == 1


def test_the_exact_table_has_fractions() -> None:
    rows = re.findall("<tr>(.*?)</tr>", exact_section(guarantee()))[1:]
    assert len(rows) == len(guarantee().rows)
    assert ">1/3<" in rows[0] and ">infinite<" in rows[4] and ">1/4<" in rows[5]
    long = guarantee(epsilon=Fraction(10**30 + 1, 3 * 10**30), per_party=None)
    assert ">0.333333333334 (rounded up)<" in exact_section(long)


def test_roles_are_named_where_their_name_does_not_say_it() -> None:
    promise = guarantee(server="hub")
    assert against(promise.rows[0].coalition, promise) == "the server (hub)"
    assert against(promise.rows[3].coalition, promise) == "the server (hub) and the dealer"


def test_units_in_words() -> None:
    assert protected(ReplaceRecord()) == "one person's row"
    assert protected(ReplaceRecord("ann")) == "one person's data at ann"
    assert protected(ReplaceParty()) == "all data of one voter"
    assert protected(FlipLabel()) == "one person's label"
    assert [listing(PARTIES[:n]) for n in (1, 2, 3)] == ["ann", "ann and bob", "ann, bob and cid"]
