"""A finished job in words: model, who is protected against whom, what it cost."""

from __future__ import annotations

import json
from pathlib import Path

from mechanisms.guarantee import Guarantee


def summary(out: Path) -> str:
    """The text that `smpc run` prints, from the files in `out`."""
    model = json.loads((out / "model.json").read_text())
    guarantee = Guarantee.from_json((out / "guarantee.json").read_text())
    width = max(len(name) for name in model["coefficients"])
    lines = [f"{model['job']}: {model['loss']} model of {model['label']} from {model['rows']:,} rows, in {out}", ""]
    lines += [f"  {name:<{width}}  {value: .6g}" for name, value in model["coefficients"].items()]
    lines += ["", str(guarantee), "", costs(json.loads((out / "cost.json").read_text())["participants"])]
    return "\n".join(lines)


def costs(reports: dict[str, dict[str, object]]) -> str:
    """Bytes, messages, rounds and seconds of every participant."""
    header = ("participant", "sent", "handshake", "messages", "rounds", "waited", "seconds by phase")
    lines = [header]
    for name, report in reports.items():
        seconds = report["seconds"]
        assert isinstance(seconds, dict)  # noqa: S101  # our own file
        phases = ", ".join(f"{phase} {value:.3f}" for phase, value in seconds.items())
        lines.append(
            (
                name,
                _kilobytes(report["bytes_sent"]),
                _kilobytes(report["handshake_bytes"]),
                str(_sum(report["messages_sent"])),
                str(report["rounds"]),
                f"{report['waited']:.3f} s",
                phases,
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _sum(counts: object) -> int:
    return sum(counts.values()) if isinstance(counts, dict) else 0


def _kilobytes(counts: object) -> str:
    return f"{_sum(counts) / 1000:,.1f} kB"
