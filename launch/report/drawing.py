"""Drawings as SVG inside a page: text stays text, colours of the page, no id that another drawing has."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from launch.report.markup import Markup
from launch.report.style import MUTED, SERIES, SHADES, TEXT
from smpc.errors import InputError, printable

WIDTH = 4.4  # inches: so narrow that 10 points are readable on a phone
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_SETTINGS = {
    "text.parse_math": False,  # a column may be named $x$
    "svg.fonttype": "none",
    "svg.hashsalt": "report",  # the same files, the same page
    "font.size": 10,
    "font.family": "sans-serif",
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": MUTED,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib  # noqa: F401  # only whether it is there
    except ImportError:
        return False
    return True


def check_can_draw() -> None:
    """Raises InputError where matplotlib is not installed."""
    if not can_draw():
        raise InputError("a report needs matplotlib: pip install 'sharewise[report]'")


@contextmanager
def canvas(height: float) -> Iterator[Any]:
    """An empty matplotlib figure, `height` inches high; draw on it and call `picture` inside the block."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's fonts lack: the reader's browser has its own
        yield Figure(figsize=(WIDTH, height), layout="constrained")


def picture(figure: Any, name: str, alt: str) -> Markup:
    """The figure as an <svg> whose ids start with `name`, and `alt` for who cannot see it."""
    file = BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    root = ElementTree.fromstring(file.getvalue())  # noqa: S314  # our own drawing
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style"):  # its style would be the whole page's
                parent.remove(child)
    for node in root.iter():
        node.tag = node.tag.removeprefix(_SVG)
        node.attrib = {_plain(key): _prefixed(_plain(key), value, name) for key, value in node.attrib.items()}
    title = ElementTree.Element("title", id=f"{name}-alt")
    title.text = printable(alt)
    root.insert(0, title)
    for size in ("width", "height"):  # the page's style says it
        del root.attrib[size]
    root.attrib |= {"role": "img", "aria-labelledby": f"{name}-alt", "stroke-linejoin": "round"}
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _plain(attribute: str) -> str:
    return "href" if attribute == _LINK else attribute.rpartition("}")[2]


def _prefixed(attribute: str, value: str, name: str) -> str:
    if attribute == "id":
        return f"{name}-{value}"
    return value.replace("url(#", f"url(#{name}-") if attribute != "href" else value.replace("#", f"#{name}-", 1)


def colour(number: int) -> str:
    """The colour of the series with this number."""
    return SERIES[number % len(SERIES)]


def shades() -> Any:
    """A colour map for counts, from what stands out on paper by 3 : 1 to nearly black."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("counts", SHADES)


def shortened(text: str, longest: int) -> str:
    """Text for a drawing; the whole stands in a table."""
    text = printable(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
