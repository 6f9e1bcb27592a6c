"""Time and memory of the functional mechanism from 1e5 to 1e7 rows, as `smpc profile` measures them.

python -m tests.bench.growth [--largest 1e7]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from launch.job import load_job
from launch.profile.cost import Cost
from launch.profile.measuring import measure
from tests.bench.text import aligned

SIZES = (100_000, 1_000_000, 10_000_000)
WIDTHS = {"p1": 3, "p2": 3}  # the label among p2's
REPEATS = 3
JOB = """
job = {name = "growth", protocol = "functional", epsilon = 1}
label = {party = "p2", column = "y"}
server = {name = "server"}
dealer = {name = "dealer"}
party = [
  {name = "p1", table = "1.csv", id = "i", columns = {a = [0, 1], b = [0, 1], c = [0, 1]}},
  {name = "p2", table = "2.csv", id = "i", columns = {d = [0, 1], e = [0, 1], y = [0, 1]}},
]
"""


def costs(largest: int) -> list[Cost]:
    """Of both parties and the server; above `largest` rows, extrapolated."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.toml"
        path.write_text(JOB)
        task = load_job(path).task
    return measure(task, {"rows": SIZES, "parties": (2,)}, ["crypten"], repeats=REPEATS, run_up_to=largest)


def report(found: list[Cost]) -> str:
    lines = [["", "rows", "ns a row: median", "least", "against 1e5", "bytes sent a row", "memory MB", "bytes a row"]]
    for cost in found:
        first = next(c for c in found if c.participant == cost.participant)
        lines.append(
            [
                cost.participant,
                f"{cost.rows:,}{' *' if cost.extrapolated else ''}",
                f"{1e9 * cost.seconds / cost.rows:.1f}",
                f"{1e9 * cost.least / cost.rows:.1f}",
                f"{(cost.least / cost.rows) / (first.least / first.rows):.2f}",
                f"{cost.bytes_sent / cost.rows:.2f}",
                f"{cost.memory / 1e6:.0f}",
                f"{cost.memory / cost.rows:.1f}",
            ]
        )
    return aligned(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=float, default=SIZES[-1])
    print(report(costs(int(parser.parse_args().largest))))


if __name__ == "__main__":
    main()
