"""Figures of measured medians with their intervals, as PNG."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from launch.report.drawing import can_draw
from protocols.averages import Average
from protocols.evaluation import Summary
from smpc.errors import InputError

_WIDTH, _HEIGHT, _COLUMNS = 4.2, 3.4, 3  # inches a panel, panels a row
_MOST_TICKS = 8  # that are named each
_MARKERS = "osD^vPX*<>"


@dataclass(frozen=True)
class Line:
    """Results of one method at the numbers `x`, at least one."""

    label: str
    x: tuple[float, ...]
    results: tuple[Summary | Average, ...]


@dataclass(frozen=True)
class Points:
    """A cloud of points of one method."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Panel:
    """Lines and points in one frame, and `levels`: results that do not depend on x, like a predictor of zero."""

    title: str
    lines: tuple[Line, ...]
    levels: Mapping[str, float] = field(default_factory=dict)
    points: tuple[Points, ...] = ()


@dataclass(frozen=True)
class Figure:
    """Panels side by side, written as NAME.png. `log`: the axes ("x", "y", "xy" or "") with a logarithmic scale."""

    name: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    log: str = "x"


def check_can_draw() -> None:
    """Raises InputError where matplotlib is not installed."""
    if not can_draw():
        raise InputError("figures need matplotlib: pip install 'sharewise[reproduce]'")


def draw(figure: Figure) -> bytes:
    """The figure as a PNG file. A method has one colour and marker in all panels; intervals are vertical bars."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    columns = min(_COLUMNS, len(figure.panels))
    rows = math.ceil(len(figure.panels) / columns)
    beside = columns == 1  # below one panel the legend would take most of the room
    size = _WIDTH * columns + (1.8 if beside else 0), _HEIGHT * rows + (0 if beside else 0.8)
    canvas = Canvas(figsize=size, layout="constrained")
    axes = canvas.subplots(rows, columns, squeeze=False).ravel()
    names = ([*(line.label for line in p.lines), *(points.label for points in p.points)] for p in figure.panels)
    labels = list(dict.fromkeys(name for held in names for name in held))
    levels = list(dict.fromkeys(name for panel in figure.panels for name in panel.levels))
    for panel, frame in zip(figure.panels, axes, strict=False):
        for line in panel.lines:
            _add(frame, line, labels.index(line.label), len(labels) if "x" in figure.log else 0)
        for points in panel.points:
            number = labels.index(points.label)
            frame.scatter(points.x, points.y, s=6, alpha=0.5, label=points.label, **_style(number))
        for name, level in panel.levels.items():
            style = ("--", ":", "-.")[levels.index(name) % 3]
            frame.axhline(level, color=str(0.25 * (levels.index(name) % 3)), linestyle=style, linewidth=1, label=name)
        frame.set_title(panel.title, fontsize=10)
        frame.set_xlabel(figure.x_label)
        frame.set_ylabel(figure.y_label)
        if "x" in figure.log:
            frame.set_xscale("log")
            places = sorted({x for line in panel.lines for x in line.x})
            if 0 < len(places) <= _MOST_TICKS:
                frame.set_xticks(places, [f"{x:g}" for x in places])
                frame.set_xticks([], minor=True)
        if "y" in figure.log:
            frame.set_yscale("log")
        frame.grid(alpha=0.25)
    for frame in axes[len(figure.panels) :]:
        frame.set_visible(False)
    handles = {
        label: handle for frame in axes for handle, label in zip(*frame.get_legend_handles_labels(), strict=True)
    }
    place = "outside right center" if beside else "outside lower center"
    canvas.legend(handles.values(), handles.keys(), loc=place, ncols=columns, fontsize=8, frameon=False)
    file = BytesIO()
    FigureCanvasAgg(canvas).print_png(file, metadata={"Software": None})
    return file.getvalue()


def _add(frame: Any, line: Line, number: int, of: int) -> None:
    """A line with its intervals; beside `of` lines at the same places each has its own, so that none is hidden."""
    shift = 1 + 0.03 * (number - (of - 1) / 2) if of else 1.0
    centres = [result.centre for result in line.results]
    bars = [[r.centre - r.low for r in line.results], [r.high - r.centre for r in line.results]]
    style = {**_style(number), "markersize": 4, "linewidth": 1.2}
    frame.errorbar([x * shift for x in line.x], centres, bars, label=line.label, capsize=2, **style)


def _style(number: int) -> dict[str, str]:
    return {"color": f"C{number % 10}", "marker": _MARKERS[number % len(_MARKERS)]}
