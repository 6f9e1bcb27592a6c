"""HTML that is escaped by construction: text becomes markup only by way of `element`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from smpc.errors import printable


class Markup(str):
    """Text that is HTML already. All other text is escaped wherever it is put into an element."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str) -> Markup:
    """<name ...>children</name>. An attribute's underscores are hyphens, one at its end is dropped (`class_`)."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(printable(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{told}>{join(children)}</{name}>")


def join(parts: Iterable[str]) -> Markup:
    """The parts in a row."""
    return Markup("".join(part if isinstance(part, Markup) else escape(printable(part)) for part in parts))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int] = ()) -> Markup:
    """A table that scrolls by itself where it is too wide. The first cell names its row; columns `words` are text, the
    others numbers."""
    kinds = ["words" if number == 0 or number in words else "number" for number in range(len(columns))]
    head = join(element("th", name, scope="col", class_=kind) for name, kind in zip(columns, kinds, strict=True))
    body = []
    for first, *rest in rows:
        cells = [element("td", cell, class_=kind) for cell, kind in zip(rest, kinds[1:], strict=True)]
        body.append(element("tr", element("th", first, scope="row", class_="words"), *cells))
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", head)),
        element("tbody", *body),
    )
    return element("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """A list of names with what they are."""
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs))


def figure(picture: Markup, caption: str) -> Markup:
    """A picture with the words under it."""
    return element("figure", picture, element("figcaption", caption))
