"""Text that is put into elements comes out of a parser as it was."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from launch.report.markup import Markup, element, join, table
from smpc.errors import printable
from tests.launch.report.support import Page

NASTY = '<script>alert("1")</script>&amp; \' --> ]]>'


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    page = Page(element("p", text, aria_label=text))
    assert "".join(page.words) == printable(text)
    assert page.tags == [("p", {"aria-label": printable(text)})]


@given(st.text())
def test_what_is_plain_can_be_shown(text: str) -> None:
    assert len(printable(text)) == len(text) and printable(text).isprintable()
    assert printable(text) == text or not text.isprintable()


def test_characters_that_turn_the_direction_or_end_a_file_are_gone() -> None:
    assert printable("a\u202eb\x00c\nd\ud800") == "a?b?c?d?"


def test_markup_is_not_escaped_twice_and_text_never_left_as_it_is() -> None:
    inner = element("b", NASTY)
    assert element("p", inner) == Markup(f"<p>{inner}</p>")
    assert isinstance(join(["a", inner]), Markup)
    assert "<script" not in inner and Page(inner).text == NASTY


def test_formatting_a_text_with_markup_makes_it_text_again() -> None:
    assert not isinstance(f"{element('b', 'x')}", Markup)
    assert "&lt;b&gt;" in element("p", f"{element('b', 'x')}")


def test_a_table_names_its_rows_and_columns() -> None:
    page = Page(table("What", ("a", "b", "c"), [("1", "2", "3"), ("4", "5", "6")], words=(2,)))
    assert [attributes for tag, attributes in page.tags if tag == "th"] == [
        {"scope": "col", "class": "words"},
        {"scope": "col", "class": "number"},
        {"scope": "col", "class": "words"},
        {"scope": "row", "class": "words"},
        {"scope": "row", "class": "words"},
    ]
    assert re.sub(r"\s+", " ", page.text) == "What a b c 1 2 3 4 5 6"
