"""`functional` on the RAND health insurance table: the bgn session releases what the clear one does, noise equal."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from launch.pool import Pool
from protocols.options import Options
from protocols.plan import Plan
from protocols.schema import Column, Schema
from smpc.session import Cast
from tests.bgn import tasks
from tests.support import clear_fit

HELD = {
    "insurer": ("lncoins", "idp", "lpi", "fmde"),
    "clinic": ("physlm", "disea", "mdvis"),
    "survey": ("hlthg", "hlthf", "hlthp"),
}


@pytest.mark.mpc
@pytest.mark.long
@pytest.mark.parametrize("rows", [569, 2000])
def test_the_released_model_is_the_clear_sessions(rows: int) -> None:
    statsmodels = pytest.importorskip("statsmodels.datasets")
    data = statsmodels.randhie.load_pandas().data[:rows]
    bounds = {name: Column(name, float(data[name].min()), float(data[name].max())) for name in data.columns}
    features = {p: tuple(bounds[name] for name in names if name != "mdvis") for p, names in HELD.items()}
    of = Schema(rows, features, "clinic", bounds["mdvis"])
    values = {p: np.array([data[column.name] for column in of.columns(p)], dtype=np.float64) for p in HELD}
    expected, _ = clear_fit(of, values, Plan.make(of, epsilon=Fraction(1)))
    with Pool(Cast(tuple(HELD), dealer=None)) as pool:
        results = pool.run(tasks.fit_on_bgn, of=of, values=values, epsilon="1", noise="shares", options=Options())
    for released, _, report, warnings in results.values():
        assert np.array_equal(released, expected.values)
        assert warnings == []
        print(report.party, report.seconds, sum(report.bytes_sent.values()))
