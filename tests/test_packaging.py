"""What is installed: four packages, whole, and nothing beside them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
TOP = ("launch", "mechanisms", "protocols", "smpc")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def packages_in_tree() -> set[str]:
    """Every folder under the four that holds code, as a dotted name."""
    return {".".join(path.parent.relative_to(ROOT).parts) for top in TOP for path in sorted((ROOT / top).rglob("*.py"))}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from a copy, so that no earlier build's leftovers get in and none are left behind."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in (*TOP, "tests", "docs"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.iterdir()
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


@pytest.mark.mpc
def test_the_wheel_holds_the_four_packages_and_nothing_else(wheel: set[str]) -> None:
    top = {name.split("/")[0] for name in wheel}
    assert top == {*TOP, f"sharewise-{PROJECT['project']['version']}.dist-info"}


@pytest.mark.mpc
def test_the_wheel_holds_every_module_and_data_file(wheel: set[str]) -> None:
    wanted = {
        str(path.relative_to(ROOT))
        for top in TOP
        for pattern in ("*.py", "*.toml", "py.typed")
        for path in (ROOT / top).rglob(pattern)
    }
    assert {f"{top}/py.typed" for top in TOP} | {"launch/demo.toml", "launch/cli.py"} <= wanted
    assert {name for name in wheel if ".dist-info/" not in name} == wanted


def test_every_package_of_the_tree_is_listed() -> None:
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    assert set(listed) == packages_in_tree()


def test_every_package_has_an_init() -> None:
    """Without one, a folder is a namespace that any other distribution can add to."""
    bare = [name for name in packages_in_tree() if not (ROOT / name.replace(".", "/") / "__init__.py").exists()]
    assert bare == []


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12"])
def test_constraints_fix_one_version_of_each_dependency(version: str) -> None:
    """And the exact pins of the project and of the file agree."""
    fixed: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        requirement, _, marker = line.partition(";")
        if not requirement.strip() or line.startswith("#") or not holds(marker.strip(), version):
            continue
        name, number = requirement.strip().split("==")
        assert normal(name) not in fixed, f"{name} is fixed twice for Python {version}"
        assert "+" not in number, f"{name}=={number}: a local version is on no index"
        fixed[normal(name)] = number
    for requirement in [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["dev"]]:
        specifier, _, marker = requirement.partition(";")
        name, operator, number = re.split(r"\s*(>=|==)\s*", specifier.strip())
        if holds(marker.strip(), version):
            assert normal(name) in fixed, f"{name} has no line in constraints.txt for Python {version}"
            assert operator == ">=" or fixed[normal(name)] == number


def holds(marker: str, version: str) -> bool:
    """Whether a marker on the Python version, the only kind used here, holds for `version`."""
    if not marker:
        return True
    match = re.fullmatch(r"python_version (<|>=) ['\"]([0-9.]+)['\"]", marker)
    assert match, f"marker {marker!r}: only python_version < or >= is used here"
    this, that = (tuple(map(int, text.split("."))) for text in (version, match[2]))
    return this < that if match[1] == "<" else this >= that


def normal(name: str) -> str:
    return name.lower().replace("_", "-")
