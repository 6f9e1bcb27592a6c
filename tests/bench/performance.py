"""Measures all benchmarks and writes docs/performance.md: `make performance`.

The page is performance.md beside this file with the measured tables in it. Each benchmark is a process of its own.
"""

from __future__ import annotations

import os
import platform
import re
import ssl
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from string import Template

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "performance.md"
BALLOTS = ("300", "1000", "10")  # voters, samples, classes
SPLIT = ("--rows", "5120", "--repeats", "3")
BENCHES = {
    "limits": ("limits",),
    "products": ("products", "--repetitions", "5"),
    "growth": ("growth",),
    "comparisons": ("comparisons",),
    "joint_noise": ("bench_joint_noise", "--repetitions", "3"),
    "samplers": ("bench_samplers",),
    "bgn": ("bench_bgn",),
    "ballots": ("bench_ballots", *BALLOTS),
    "split": ("bench_split", *SPLIT),
    "data_release": ("bench_data_release",),
}
PACKAGES = ("numpy", "torch", "crypten", "cryptography", "pymcl", "opendp")


def measured(name: str, *options: str) -> str:
    """What a benchmark prints; one that misses a bar says so and ends with 1."""
    command = [sys.executable, "-m", f"tests.bench.{name}", *options]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"{' '.join(command[1:])} failed:\n{done.stderr}")
    return done.stdout.rstrip()


def machine(load: float, seconds: float) -> str:
    """Processor, memory, versions, how busy it was and how long it took."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = f"Python {platform.python_version()}, {ssl.OPENSSL_VERSION.rsplit(' ', 3)[0]}"
    versions = ", ".join([python, *(f"{name} {found}" for name in PACKAGES if (found := installed(name)))])
    system = f"{processor()}, {cores} cores, {memory:.0f} GiB, {platform.system()} {platform.release().split('-')[0]}"
    day = time.strftime("%d %B %Y", time.gmtime())
    return (
        f"Measured on {day}: {system}; {versions}. Load before the start: {load:.1f} "
        f"processes, at the end {os.getloadavg()[0]:.1f}. It took {seconds / 60:.0f} minutes."
    )


def processor() -> str:
    """Its model, as far as the system tells."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.machine()


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def losses(tables: dict[str, str]) -> str:
    """Every line that misses its bar, or its peer's speed, as measured."""
    lines = [f"- {line.strip()}" for line in tables["bgn"].splitlines() if line.startswith("MISS")]
    lines += [f"- `{name}` {line}" for name in ("joint_noise", "samplers") for line in missed(tables[name])]
    for name, column in (("products", "stock / ours"), ("comparisons", "stock / ours"), ("samplers", "ratio")):
        head, *rows = (re.split(r"\s{2,}", line.strip()) for line in tables[name].split("\n\n")[0].splitlines())
        for row in rows:
            if len(row) == len(head) and re.fullmatch(r"[\d.]+", value := row[head.index(column)]) and float(value) < 1:
                lines.append(f"- `{name}`: {', '.join(row[:3])}: {column} = {value}")
    return "As measured above:\n\n" + "\n".join(lines or ["- nothing"])


def missed(table: str) -> list[str]:
    return re.findall(r"^missed: .+$", table, re.MULTILINE)


def plaintext(products: str) -> str:
    """T2's total in integer products of that size, from the table's columns."""
    head, *rows = (re.split(r"\s{2,}", line.strip()) for line in products.split("\n\n")[0].splitlines())
    row = next(row for row in rows if row[0].startswith("T2"))
    return row[head.index("total / product")]


def main() -> None:
    load, start = os.getloadavg()[0], time.monotonic()
    tables = {key: measured(*command) for key, command in BENCHES.items()}
    page = Template((HERE / "performance.md").read_text()).substitute(
        tables,
        machine=machine(load, time.monotonic() - start),
        ballot_sizes=" ".join(BALLOTS),
        split_options=" ".join(SPLIT),
        losses=losses(tables),
        plaintext=plaintext(tables["products"]),
    )
    PAGE.write_text(page)
    print(f"{PAGE.name}: written", file=sys.stderr)


if __name__ == "__main__":
    main()
