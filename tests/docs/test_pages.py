"""What the pages say can be done is done here, word for word; what they list is complete."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.cli import _parser
from launch.job import _KEYS as JOB_KEYS
from launch.job import _TABLES as TABLES
from launch.job import PROTOCOLS
from launch.jobfile import endpoints, parties

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNABLE = sorted(path for folder in ("tutorials", "how-to", "explanation") for path in (DOCS / folder).glob("*.md"))
WITHOUT_CODE = {"explanation/crypten.md"}
LONG = {"how-to/many-voters.md"}  # it waits for those who do not vote


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.mpc
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.long] if name(page) in LONG else [], id=name(page)) for page in RUNNABLE],
)
def test_every_block_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    assert bool(blocks) == (name(page) not in WITHOUT_CODE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for language, text in blocks:
        command = ["bash", "-euo", "pipefail", "-c", text] if language == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(
            command, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"


def test_links_lead_somewhere() -> None:
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page} links to {target}"


def test_every_block_is_one_that_runs() -> None:
    """Indented ones, or ones in another spelling, would be left out without a word."""
    for page in RUNNABLE:
        marks = re.findall(r"^ *```\w+", page.read_text(), re.MULTILINE)
        assert set(marks) <= {"```sh", "```python"}, name(page)


def test_files_of_the_tree_that_pages_name_are_there() -> None:
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        for path in re.findall(r"`((?:tests|smpc|launch|mechanisms|protocols)/[\w/.-]+)`", page.read_text()):
            assert (DOCS.parent / path).exists(), f"{page.name} names {path}"


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"(\S+\.md)$", (DOCS.parent / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(name(page) for page in DOCS.rglob("*.md"))


def test_every_key_of_a_job_file_is_listed() -> None:
    text = (DOCS / "reference" / "job-file.md").read_text()
    keys = {*JOB_KEYS, *endpoints.ENDPOINT_KEYS, *parties._KEYS, "deadline", "start_deadline"}
    for task in PROTOCOLS.values():
        keys |= set(task.KEYS)
    missing = [key for key in sorted(keys) if f"`{key}`" not in text]
    tables = {*TABLES, *(table for task in PROTOCOLS.values() for table in task.TABLES)}
    missing += [table for table in sorted(tables) if f"[{table}]" not in text]
    assert missing == []


def test_every_command_is_listed() -> None:
    text = (DOCS / "reference" / "cli.md").read_text()
    commands = next(action for action in _parser()._actions if action.choices)
    assert [name for name in commands.choices or () if f"`smpc {name}" not in text] == []


def test_every_option_of_a_command_is_listed_with_it() -> None:
    rows = re.findall(r"^\| (`smpc .*?) \| ", (DOCS / "reference" / "cli.md").read_text(), re.MULTILINE)
    usages = [usage for row in rows for usage in re.findall(r"`smpc (.*?)`", row)]
    missing = [
        f"smpc {command} {option}"
        for command, options in options_of(_parser())
        for option in options
        if not any(usage.startswith(f"{command} ") and re.search(rf"{option}\b", usage) for usage in usages)
    ]
    assert missing == []


def options_of(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, list[str]]]:
    """Every command with its options, but for internal ones."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from options_of(inner, f"{command} {name}".strip())
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    yield command, [action.option_strings[-1] for action in shown if action.option_strings]
