"""A finished job in words: model, who is protected against whom, what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launch.noise_share import noise_of
from launch.outputs import BALLOTS
from mechanisms.guarantee import Guarantee


def summary(out: Path) -> str:
    """The text that `smpc run` prints, from the files in `out`."""
    model = json.loads((out / "model.json").read_text())
    guarantee = Guarantee.from_json((out / "guarantee.json").read_text())
    coefficients = model.get("coefficients", {})  # a network's weights are in files of their own
    width = max((len(name) for name in coefficients), default=0)
    lines = [f"{model['job']}: {model['loss']} model of {model['label']} from {model['rows']:,} rows, in {out}", ""]
    lines += [f"  {name:<{width}}  {value: .6g}" for name, value in coefficients.items()]
    if coefficients:
        lines.append("")
    if noise := noise_of(model):
        lines += [noise[0], ""]
    if (out / BALLOTS).exists():
        lines += [_votes(json.loads((out / BALLOTS).read_text())), ""]
    lines += [str(guarantee), "", costs(json.loads((out / "cost.json").read_text())["participants"])]
    return "\n".join(lines)


def _votes(ballots: Mapping[str, Any]) -> str:
    counted, rejected, missing = (len(ballots[key]) for key in ("counted", "rejected", "missing"))
    told = f"{counted} of {counted + rejected + missing} voters counted"
    return told if counted and not rejected + missing else f"{told}; rejected {rejected}, missing {missing}: {BALLOTS}"


def costs(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Bytes, messages, rounds and seconds of every participant."""
    header = ("participant", "sent", "handshake", "messages", "rounds", "waited", "seconds by phase")
    lines = [header]
    for name, report in reports.items():
        lines.append(
            (
                name,
                _kilobytes(report["bytes_sent"]),
                _kilobytes(report["handshake_bytes"]),
                str(sum(report["messages_sent"].values())),
                str(report["rounds"]),
                f"{report['waited']:.3f} s",
                ", ".join(f"{phase} {value:.3f}" for phase, value in report["seconds"].items()),
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def _kilobytes(counts: Mapping[str, int]) -> str:
    return f"{sum(counts.values()) / 1000:,.1f} kB"
