"""How much noise there is in a result, in words: against the largest value that what it was added to can have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from protocols.data_release.mixing_rows import EXPLAINED

_Verdicts = tuple[tuple[float, str], ...]
TOO_MUCH = 0.03
_SPREAD = "common values and columns whose values spread over their bounds"
_CLOSE = "where values lie close together within wide bounds, coefficients shrink towards 0"
# What a share does to a model on the public tables of docs/protocols/functional.md; between them by ratio.
_OF_SUMS: _Verdicts = (
    (0.003, f"it hardly shows in {_SPREAD}; {_CLOSE}"),
    (TOO_MUCH, f"coefficients of {_SPREAD} may be off by a third, rare and weak ones are noise; {_CLOSE}"),
    (math.inf, "the model says next to nothing; take more rows, fewer columns or a larger epsilon"),
)
TOO_MUCH_IN_VOTES = 0.1
# The same for a classifier of two classes: docs/protocols/ensemble-measured.md, tables that come with scikit-learn.
_OF_VOTES: _Verdicts = (
    (0.01, "it hardly costs accuracy"),
    (TOO_MUCH_IN_VOTES, "it costs accuracy, near 0.1 about half of what votes without noise would teach"),
    (math.inf, "the classifier may be no better than a guess; take more voters, fewer columns or a larger epsilon"),
)
TOO_LITTLE = 0.1


def noise_line(deviation: float, rows: int) -> str:
    """One line: the noise's standard deviation `deviation` as a share of `rows`, the largest possible sum."""
    share = deviation / rows
    return f"noise: {share:.2g} of the largest possible sum of {rows:,} rows: {_verdict(_OF_SUMS, share)}"


def votes_line(share: float, classes: int) -> str:
    """One line: `share` as `StatisticPlan.noise_share` has it."""
    verdict = _verdict(_OF_VOTES, _in_two_classes(share, classes))
    return f"noise: {share:.2g} of the largest length that the votes' statistic can have: {verdict}"


def released_rows_line(explained: float) -> str:
    """One line: `explained` as `ReleasePlan.explained` has it."""
    verdict = ": next to nothing; take more rows, fewer columns or a larger epsilon" if explained < TOO_LITTLE else ""
    return (
        f"noise: where the features could explain {100 * float(EXPLAINED):.0f} % of the label, a model of the released "
        f"rows explains about {100 * explained:.0f} % (less where values do not spread over their bounds){verdict}"
    )


def noise_of(model: Mapping[str, Any]) -> tuple[str, bool] | None:
    """The line of what model.json says, and whether it is too much; None where it says nothing of noise."""
    deviation, rows = model.get("noise_standard_deviation"), model.get("rows")
    if isinstance(deviation, float) and isinstance(rows, int) and rows > 0:
        return noise_line(deviation, rows), deviation / rows > TOO_MUCH
    explained = model.get("expected_explained")
    if isinstance(explained, float):
        return released_rows_line(explained), explained < TOO_LITTLE
    share, classes = model.get("noise_share"), model.get("classes")
    if isinstance(share, float) and isinstance(classes, list) and classes:
        return votes_line(share, len(classes)), _in_two_classes(share, len(classes)) > TOO_MUCH_IN_VOTES
    return None


def _verdict(verdicts: _Verdicts, share: float) -> str:
    return next((words for most, words in verdicts if share < most), verdicts[-1][1])


def _in_two_classes(share: float, classes: int) -> float:
    """What does as much with two classes: of C equally frequent ones each has a statistic of length 1 / sqrt C."""
    return share * math.sqrt(classes / 2)
