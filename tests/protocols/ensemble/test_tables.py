"""The experiments' tables: complete, in the unit ball, both classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from protocols.ensemble import tables
from protocols.ensemble.tables import Labelled
from protocols.raw_tables import data_directory
from smpc.errors import InputError

pytestmark = pytest.mark.data


@pytest.mark.parametrize(
    ("load", "rows", "columns", "classes"),
    [
        pytest.param(tables.kdd99, 494_021, 51, 2, marks=pytest.mark.long),
        (tables.nsl_kdd, 125_973, 51, 2),
        (tables.phishing_urls, 10_000, 17, 2),
        (tables.malicious_url, 1_200, 51, 2),
        (tables.har, 1_554, 51, 12),
    ],
)
def test_tables_are_complete_and_in_the_unit_ball(
    load: Callable[[Path], Labelled], rows: int, columns: int, classes: int
) -> None:
    try:
        folder = data_directory()
    except InputError as error:
        pytest.skip(str(error))
    table = load(folder)
    assert table.x.shape == (rows, columns) and table.classes == classes
    assert np.isfinite(table.x).all() and np.linalg.norm(table.x, axis=1).max() <= 1 + 1e-12
    assert (table.x[:, -1] == table.x[0, -1]).all()
    assert set(np.unique(table.y)) == set(range(classes))
