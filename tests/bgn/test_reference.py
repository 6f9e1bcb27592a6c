"""The suite once more on the independent implementation: what passes on the library passes there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent.parent
FILES = ("curve", "keys", "decrypt", "linear", "linear_mode", "timing", "vectors")
LEFT_OUT = {
    "test_a_library_that_errs": "of the library itself",
    "test_target_elements_of_wrong_order": "made with the library's field",
    "test_sums and not test_sums_": "bytes in the library's basis of GT",
    "test_a_long_column": "minutes",
    "test_threads_change_nothing": "minutes",
}


@pytest.mark.parametrize("name", FILES)
def test_the_suite_on_the_reference(name: str) -> None:
    unsuited = " or ".join(f"({expression})" for expression in LEFT_OUT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.bgn.reference_library", f"tests/bgn/test_{name}.py"]
    done = subprocess.run([*command, "-k", f"not ({unsuited})"], cwd=ROOT, capture_output=True, text=True)
    print(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout
