"""`smpc report`: report.html beside a run's result files."""

from __future__ import annotations

import shlex
from pathlib import Path

from launch.outputs import write_file
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
        write_file(folder / NAME, page(results))
        return folder / NAME
    from launch.report.local_table import table_section

    write_file(folder / PRIVATE_NAME, page(results, table_section(folder, table)), private=True)
    return folder / PRIVATE_NAME


def report_line(folder: Path) -> str:
    """Write the report if it can be drawn; one line that says where it is, why it is not, or how to get one."""
    if not can_draw():
        return f"no report: pip install 'sharewise[report]', then smpc report {shlex.quote(str(folder))}"
    try:
        return f"report: {report(folder)}"
    except InputError as error:  # the run itself has succeeded
        return f"no report: {error}"
