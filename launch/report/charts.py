"""Bars: a model's coefficients, and what every participant sent and did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launch.report.drawing import canvas, colour, picture, shortened
from launch.report.markup import Markup
from launch.report.style import MUTED

MOST_BARS = 40
_LONGEST_NAME = 20
_BAR = 0.24  # inches, with the space around it


def coefficients(values: Mapping[str, float]) -> Markup:
    """Bars to the left and right of zero; of many, the largest."""
    kept = sorted(values, key=lambda name: -abs(values[name]))[:MOST_BARS]
    names = [name for name in values if name in kept]
    heights = [values[name] for name in names]
    largest = "; ".join(f"{name} {values[name]:.4g}" for name in kept[:3])
    which = "all" if len(names) == len(values) else f"the {len(names)} largest of"
    alt = f"Bars of {which} {len(values)} coefficients. Largest in size: {largest}."
    with canvas(0.7 + _BAR * len(names)) as figure:
        frame = figure.subplots()
        colours = [colour(0) if height >= 0 else colour(1) for height in heights]
        frame.barh(range(len(names)), heights, color=colours, height=0.7)
        _name_rows(frame, names)
        frame.axvline(0, color=MUTED, linewidth=0.8)
        frame.set_xlabel("coefficient")
        return picture(figure, "coefficients", alt)


def stacked(name: str, unit: str, rows: Mapping[str, Mapping[str, float]], alt: str) -> Markup:
    """For every row a bar in pieces, in `unit`; pieces of a kind have one colour, told below."""
    kinds = list(dict.fromkeys(kind for pieces in rows.values() for kind in pieces))
    kept = list(rows)[:MOST_BARS]
    with canvas(0.9 + _BAR * len(kept) + 0.19 * ((len(kinds) + 1) // 2) + 0.1) as figure:
        frame = figure.subplots()
        start = [0.0] * len(kept)
        for number, kind in enumerate(kinds):
            widths = [rows[row].get(kind, 0.0) for row in kept]
            frame.barh(range(len(kept)), widths, left=start, color=colour(number), height=0.7, edgecolor="white")
            start = [a + b for a, b in zip(start, widths, strict=True)]
        _name_rows(frame, kept)
        frame.set_xlabel(unit)
        figure.legend(
            frame.containers,
            [shortened(kind, 24) for kind in kinds],
            loc="outside lower left",
            ncols=2,
            frameon=False,
        )
        return picture(figure, name, alt)


def _name_rows(frame: Any, names: Sequence[str]) -> None:
    frame.set_yticks(range(len(names)), [shortened(name, _LONGEST_NAME) for name in names])
    frame.invert_yaxis()
