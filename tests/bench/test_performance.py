"""The page of measurements: every table has its place, what loses is listed, and nothing says where it was made."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from string import Template

from tests.bench.performance import BENCHES, HERE, PAGE, losses, machine, plaintext
from tests.bench.text import aligned, spread

TEMPLATE = (HERE / "performance.md").read_text()
PRODUCTS = """
task                        total ms  stock / ours  total / product
T1 inner product, n = 100  1 (1-2)             0.7              2.0
T2 X'Y, n = 100,000        2 (1-3)             4.0              2.5

stock / ours: what it means"""


def test_every_table_has_its_place() -> None:
    names = {match for match in Template.pattern.findall(TEMPLATE) for match in [match[1]] if match}
    others = {"machine", "ballot_sizes", "split_options", "losses", "plaintext"}
    assert names == set(BENCHES) | others
    for module, *_ in BENCHES.values():
        assert (HERE / f"{module}.py").is_file() and f"tests.bench.{module}" in TEMPLATE


def test_the_page_is_made_of_its_template() -> None:
    page = PAGE.read_text()
    prose = [part.strip("\n") for part in re.split(r"\$\w+", TEMPLATE)]
    place = 0
    for part in prose:
        place = page.find(part, place)
        assert place >= 0, f"not on the page, or not in this order: run make performance\n{part}"
        place += len(part)
    assert "$" not in page


def test_no_place_and_no_host_is_named() -> None:
    for text in (PAGE.read_text(), machine(0.0, 100.0)):
        assert socket.gethostname() not in text
        assert str(Path.home()) + "/" not in text and str(HERE.parents[1]) not in text


def test_what_loses_is_listed_with_its_numbers() -> None:
    tables = {
        "bgn": "ok    a   1\nMISS  encryption  70.00  <= 60",
        "joint_noise": "x\nmissed: scale 1 with 2 parties",
        "samplers": "sampler   scale  ratio\nLaplace       1   50.0\nLaplace       2    0.5\nGaussian  2  -",
        "products": PRODUCTS.strip(),
        "comparisons": "columns  ours ms  stock / ours\n100      1 (1-2)          1.04",
    }
    found = losses(tables).splitlines()[2:]
    assert found == [
        "- MISS  encryption  70.00  <= 60",
        "- `joint_noise` missed: scale 1 with 2 parties",
        "- `products`: T1 inner product, n = 100, 1 (1-2), 0.7: stock / ours = 0.7",
        "- `samplers`: Laplace, 2, 0.5: ratio = 0.5",
    ]
    assert plaintext(PRODUCTS.strip()) == "2.5"


def test_text() -> None:
    assert aligned([["a", "b"], ["long", "1"]]) == "a     b\nlong  1"
    assert spread([3.0, 1.0, 2.5], 1) == "2.5 (1.0-3.0)"
