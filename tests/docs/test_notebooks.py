"""The notebooks as they are kept: run from top to bottom, with pictures, without a trace of the machine. `make
test-long` runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 150_000
HOST = re.compile(r"/(home|root|tmp|Users|mnt|opt|usr|var)/|\w+@\w+")


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def test_every_protocol_has_one_and_the_page_lists_them() -> None:
    assert {notebook.stem for notebook in NOTEBOOKS} == {"functional", "data_release", "ensemble", "split"}
    page = (FOLDER / "index.md").read_text()
    assert [notebook.name for notebook in NOTEBOOKS if f"]({notebook.name})" not in page] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_it_was_run_in_order_and_ended_well(notebook: Path) -> None:
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
    assert [o for o in outputs if "image/png" in o.get("data", {})]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_it_is_small_and_names_no_machine(notebook: Path) -> None:
    assert notebook.stat().st_size < MOST_BYTES
    text = re.sub(r'"image/png": "[^"]*"', "", notebook.read_text())
    assert not HOST.search(text), HOST.search(text)
