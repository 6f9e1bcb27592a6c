"""Costs as CSV, as a picture and as a table for people."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import fields

from launch.profile.cost import Cost
from launch.reproduce.figure import Figure, Line, Panel
from protocols.evaluation import summarise

_COLUMNS = ("participant", "ms", "least", "most", "local", "idle", "TLS", "MB sent", "rounds", "memory MB")


def as_csv(costs: Sequence[Cost]) -> str:
    """A line a participant and size; the sizes are columns."""
    sizes, file = list(costs[0].sizes), io.StringIO()
    rest = [field.name for field in fields(Cost) if field.name not in ("backend", "sizes")]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["backend", *sizes, *rest])
    for cost in costs:
        own = [cost.sizes[name] for name in sizes]
        writer.writerow([cost.backend, *own, *(getattr(cost, name) for name in rest)])
    return file.getvalue()


def as_figure(costs: Sequence[Cost]) -> Figure:
    """Seconds of the slowest participant and bytes of all, against the rows."""
    panels = []
    for title, value in (("seconds", lambda group: max(c.seconds for c in group)), ("MB sent by all", _megabytes)):
        lines = []
        for backend, others in dict.fromkeys((c.backend, c.others) for c in costs):
            own = [c for c in costs if (c.backend, c.others) == (backend, others)]
            sizes = sorted({c.rows for c in own})
            results = tuple(summarise([value([c for c in own if c.rows == n])]) for n in sizes)
            name = ", ".join([backend, *(f"{count} {what}" for what, count in others)])
            lines.append(Line(name, tuple(map(float, sizes)), results))
        panels.append(Panel(title, tuple(lines)))
    return Figure("profile", "rows", "", tuple(panels), log="xy")


def _megabytes(group: Sequence[Cost]) -> float:
    return sum(c.bytes_sent for c in group) / 1e6 or 1e-6  # a logarithmic axis has no zero


def as_text(costs: Sequence[Cost]) -> str:
    """Aligned columns; extrapolated rows have a star."""
    others = [name for name in costs[0].sizes if name != "rows"]
    lines: list[tuple[str, ...]] = [("backend", *others, "rows", *_COLUMNS)]
    for c in costs:
        times = [f"{1000 * value:,.1f}" for value in (c.seconds, c.least, c.most, c.local, c.waited, c.sockets)]
        rows = f"{c.rows:,}{' *' if c.extrapolated else ''}"
        sizes = [f"{c.bytes_sent / 1e6:,.3f}", str(c.rounds), f"{c.memory / 1e6:,.0f}"]
        fixed = [f"{c.sizes[name]:,}" for name in others]
        lines.append((c.backend, *fixed, rows, c.participant, *times, *sizes))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)
    return text + ("\n* extrapolated" if any(c.extrapolated for c in costs) else "")
