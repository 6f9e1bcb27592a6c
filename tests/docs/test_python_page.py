"""The index of names to import: each exists and says what it is; nothing that belongs there is left out."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import smpc
from launch.job import PROTOCOLS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text()
ROWS = [
    (row[1], re.findall(r"`(\w+)`", row[2])) for row in re.finditer(r"^\| `([\w.]+)` \|([^|]*)\|", PAGE, re.MULTILINE)
]
IMPORTS = [
    (module, names) for module, names in ROWS if module.split(".")[0] in ("smpc", "protocols", "mechanisms", "launch")
]


def test_the_page_was_read() -> None:
    assert len(IMPORTS) > 40
    assert sum(not names for _, names in IMPORTS) == 1  # the baselines, one a module


@pytest.mark.parametrize(("module", "names"), IMPORTS, ids=[f"{module}-{i}" for i, (module, _) in enumerate(IMPORTS)])
def test_every_name_exists_and_has_a_docstring(module: str, names: list[str]) -> None:
    found = importlib.import_module(module)
    assert found.__doc__
    for name in names:
        value = getattr(found, name)
        assert inspect.getdoc(value), f"{module}.{name} has no docstring"


def test_all_that_smpc_exports_is_listed() -> None:
    listed = [name for module, names in IMPORTS if module == "smpc" for name in names]
    assert sorted(listed) == sorted(smpc.__all__)


def test_every_verb_of_a_session_is_listed_once() -> None:
    table = PAGE[PAGE.index("| verb |") : PAGE.index("## Protocols")]
    listed = [
        name
        for row in table.splitlines()[2:]
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    ]
    verbs = [name for name, _ in inspect.getmembers(smpc.Session, inspect.isfunction) if not name.startswith("_")]
    assert sorted(listed) == sorted(verbs)


def test_every_protocol_has_a_plan_and_a_text_here() -> None:
    for name in PROTOCOLS:
        assert sum(module.startswith(f"protocols.{name}.") for module, _ in IMPORTS) >= 2, name
