"""What leaves an ensemble protocol: a linear classifier, who was counted, and who is protected against whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.guarantee import Guarantee
from protocols.ensemble import erm
from protocols.schema import Floats
from smpc.ballots.envelope import Reason

PUBLIC = "the auxiliary samples and who was counted are public; who is replaced is a counted voter"


@dataclass(frozen=True)
class EnsembleRelease:
    """Weights (width, d) of rows in the unit ball: two classes have one row, more have one each.

    `statistic` (width, d) is the noisy mean of vote (x) sample where that was released: it gives a model for any
    regularisation without further cost. Voters: counted, rejected with the reason, and those that nobody heard of.
    """

    weights: Floats
    statistic: Floats | None
    guarantee: Guarantee
    counted: tuple[str, ...]
    rejected: Mapping[str, Reason]
    missing: tuple[str, ...]

    def predict(self, x: Floats) -> npt.NDArray[np.int64]:
        """Class numbers of rows `x` (n, d)."""
        return erm.predict(self.weights, x)


def voters(count: int) -> str:
    """The guarantee's note on M."""
    return f"M = {count} voters were counted; what other voters know is their own ballots"
