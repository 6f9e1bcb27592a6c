"""`functional` on real tables: the bgn session releases what the clear one does, noise equal, in every mode.

breast_cancer comes with scikit-learn, which nothing else here needs: its test is skipped without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from launch.pool import Pool
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.schema import Column, Floats, Schema
from smpc.bgn.dlog import WINDOW
from smpc.bgn.modes import Keys
from smpc.cast import Cast
from tests.bgn import tasks
from tests.support import clear_fit

pytestmark = [pytest.mark.mpc, pytest.mark.long]

RANDHIE = {
    "insurer": ("lncoins", "idp", "lpi", "fmde"),
    "clinic": ("physlm", "disea", "mdvis"),
    "survey": ("hlthg", "hlthf", "hlthp"),
}
MODES = [Keys("pair"), Keys("linear"), Keys("threshold"), Keys("threshold", 2)]


def same_release(
    data: Mapping[str, Floats], split: Mapping[str, Sequence[str]], label: str, options: Options, keys: Keys
) -> None:
    """Columns with bounds from the data: nothing here is private."""
    bounds = {name: Column(name, float(values.min()), float(values.max())) for name, values in data.items()}
    features = {p: tuple(bounds[name] for name in names if name != label) for p, names in split.items()}
    holder = next(party for party, names in split.items() if label in names)
    rows = len(data[label])
    of = Schema(rows, features, holder, bounds[label])
    values = {p: np.array([data[column.name] for column in of.columns(p)], dtype=np.float64) for p in split}
    expected, _ = clear_fit(of, values, Plan.make(of, epsilon=Fraction(1), options=options, room=WINDOW))
    with Pool(Cast(tuple(split), dealer=None)) as pool:
        results: dict[str, Any] = pool.run(
            tasks.fit_on_bgn, of=of, values=values, epsilon="1", noise="shares", options=options, keys=keys
        )
    for release, _, report, warnings in results.values():
        assert np.array_equal(release.values, expected.values)
        assert warnings == []
        seconds = {name: round(spent, 2) for name, spent in report.seconds.items()}
        print(rows, keys.mode, keys.threshold, report.party, seconds, sum(report.bytes_sent.values()))


@pytest.mark.parametrize("keys", MODES, ids=str)
def test_breast_cancer(keys: Keys) -> None:
    table = pytest.importorskip("sklearn.datasets").load_breast_cancer()
    names = [str(name) for name in table.feature_names[:10]]
    data = {name: np.asarray(table.data[:, i], dtype=np.float64) for i, name in enumerate(names)}
    data["target"] = np.asarray(table.target, dtype=np.float64)
    split = {"lab": names[:4], "clinic": [*names[4:7], "target"], "imaging": names[7:]}
    same_release(data, split, "target", Options(loss="logistic"), keys)


@pytest.mark.parametrize("keys", MODES, ids=str)
def test_randhie(keys: Keys) -> None:
    table = pytest.importorskip("statsmodels.datasets").randhie.load_pandas().data[:2000]
    data = {str(name): np.asarray(table[name], dtype=np.float64) for name in table.columns}
    same_release(data, RANDHIE, "mdvis", Options(), keys)
