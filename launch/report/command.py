"""`smpc report`: report.html beside a run's result files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from launch.report.drawing import can_draw, check_can_draw
from smpc.errors import InputError

NAME = "report.html"
PRIVATE_NAME = "report-with-table.html"  # shows rows of a table: not to be passed on with the results


def report(folder: Path, table: Path | None = None) -> Path:
    """Write the report of the run in `folder` and return its path; with `table`, a complete one, a second that uses it.

    Raises InputError without matplotlib, for a folder that is no run's, and for a table that does not fit the model.
    """
    check_can_draw()
    from launch.report.page import page
    from launch.report.results import Results

    results = Results.load(folder)
    if table is None:
        return _write(folder / NAME, page(results))
    from launch.report.local_table import table_section

    return _write(folder / PRIVATE_NAME, page(results, table_section(folder, table)))


def report_line(folder: Path) -> str:
    """Write the report if it can be drawn; one line that says where it is, why it is not, or how to get one."""
    if not can_draw():
        return f"no report: pip install 'sharewise[report]', then smpc report {folder}"
    try:
        return f"report: {report(folder)}"
    except InputError as error:  # the run itself has succeeded
        return f"no report: {error}"


def _write(path: Path, text: str) -> Path:
    """All of the file or none, under its name only when complete."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    return path
