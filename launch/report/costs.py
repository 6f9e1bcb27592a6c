"""What a run cost: by participant, by phase, from whom to whom, and formula against socket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launch.report.charts import MOST_BARS, stacked
from launch.report.markup import Markup, element, figure, join, table
from smpc.cost import CostReport

WHOLE = "total"  # a phase that contains the others
_MOST_PAIRS = 8  # participants in a table of who sent to whom
_TERMS = (
    "Rounds: the longest chain of messages, each sent only after another came in, that ends here. Idle: waiting for "
    "others. Sockets: in TLS and the system's network code. Memory: the largest that the process had."
)

Costs = Mapping[str, CostReport]


def cost_section(costs: Costs) -> Markup:
    """Pictures and tables of bytes, messages, rounds and seconds."""
    return join(_parts(costs))


def formula_section(costs: Costs) -> Markup:
    """What the formulas say beside what the sockets counted."""
    rows = [
        (name, operation, f"{expected:,}", f"{report.counted[operation]:,}", _difference(expected, report, operation))
        for name, report in costs.items()
        for operation, expected in report.predicted.items()
    ]
    if not rows:
        return element("p", "No step of this run has a cost formula.")
    warnings = [line for report in costs.values() for line in report.warnings()]
    verdict = [element("p", line, class_="warning") for line in warnings]
    if not warnings:
        verdict = [element("p", "Every formula agrees with the sockets within 1 %.")]
    columns = ("participant", "operation", "formula", "counted", "difference")
    return join([*verdict, table("Bytes sent: formula and socket counter", columns, rows, words=(1,))])


def _difference(expected: int, report: CostReport, operation: str) -> str:
    counted = report.counted[operation]
    return f"{(counted - expected) / expected:+.2%}" if expected else "0" if not counted else "no formula bytes"


def _parts(costs: Costs) -> Iterator[Markup]:
    sent = {name: {"handshake": _kb(r.handshake_bytes), "job": _kb(r.bytes_sent)} for name, r in costs.items()}
    told = "; ".join(f"{name} {sum(pieces.values()):,.1f} kB" for name, pieces in list(sent.items())[:6])
    yield figure(
        stacked("sent", "kB sent", sent, f"Bars of bytes sent: {told}."),
        f"Bytes written to the sockets{_first(costs)}.",
    )
    yield table(
        "By participant",
        ("participant", "job, kB", "handshake, kB", "messages", "rounds", "idle, s", "sockets, s", "memory, MB"),
        [
            (
                name,
                f"{_kb(report.bytes_sent):,.1f}",
                f"{_kb(report.handshake_bytes):,.1f}",
                f"{sum(report.messages_sent.values()):,}",
                f"{report.rounds:,}",
                f"{report.waited:.3f}",
                f"{report.sockets:.3f}",
                f"{report.peak_memory / 1e6:,.0f}" if report.peak_memory else "",
            )
            for name, report in costs.items()
        ],
    )
    yield element("p", _TERMS)
    yield from _seconds(costs)
    yield from _pairs(costs)


def _seconds(costs: Costs) -> Iterator[Markup]:
    phases = {name: {p: s for p, s in r.seconds.items() if p != WHOLE} for name, r in costs.items()}
    slowest = max(phases, key=lambda name: sum(phases[name].values()))
    names = list(dict.fromkeys(phase for report in costs.values() for phase in report.seconds))
    if not names:
        return
    alt = f"Bars of seconds by phase; the longest is that of {slowest}, {sum(phases[slowest].values()):.3f} s."
    yield figure(
        stacked("seconds", "seconds", phases, alt),
        f"Seconds in each phase, waiting for others included{_first(costs)}.",
    )
    rows = [
        (name, *(f"{r.seconds[phase]:.3f}" if phase in r.seconds else "" for phase in names))
        for name, r in costs.items()
    ]
    yield table("Seconds by phase", ("participant", *names), rows)


def _pairs(costs: Costs) -> Iterator[Markup]:
    names = list(dict.fromkeys([*costs, *(to for report in costs.values() for to in report.bytes_sent)]))
    if len(names) > _MOST_PAIRS:
        return
    rows = [
        (name, *(f"{report.bytes_sent[to] / 1000:,.1f}" if to in report.bytes_sent else "" for to in names))
        for name, report in costs.items()
    ]
    yield table("kB from whom (rows) to whom (columns), handshake apart", ("from", *names), rows)


def _first(costs: Costs) -> str:
    return f": the first {MOST_BARS} of {len(costs)} participants" if len(costs) > MOST_BARS else ""


def _kb(counts: Mapping[str, int]) -> float:
    return sum(counts.values()) / 1000
