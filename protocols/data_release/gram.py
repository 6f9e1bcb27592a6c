"""Secure second moments as a release: least squares needs nothing else of the data, and gets far less noise.

The Gram matrix of (1, columns) is computed on secret shares, exact discrete Gaussian noise goes onto the shares, and
only the noisy sums are opened, as in the functional mechanism with a linear loss. One vector of noise covers the whole
record: epsilon is that of all its columns together, where `rmgm` and `dgm` guarantee each party's columns apart.

The noise: every party draws the full noise for each sum that depends on its columns. A sum across two parties so
carries two draws, and one of them is unknown to whoever does not hold both. One draw in all, made on shares and known
to nobody, exists for Laplace noise (`smpc.engine.joint_noise`): the digits of a discrete Gaussian number are not
independent, so that it has no such circuit. The price of the second draw is a factor sqrt(2) in deviation across
parties, none within one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mechanisms.guarantee import Guarantee
from protocols.data_release.released_data import ReleasedColumn, ReleasedData
from protocols.functional.plan import Plan
from protocols.functional.protocol import open_noisy_sums
from protocols.schema import Floats
from smpc.errors import InputError
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held


def noisy_gram(
    s: Session, tables: Mapping[str, Held[Floats]], plan: Plan, name: str, guarantee: Guarantee
) -> dict[str, Held[ReleasedData]]:
    """The noisy Gram matrix at the server.

    step  from -> to      message             the receiver learns
    1     dealer -> P_k   corrections         nothing: uniform
    2     P_k -> P_l      masked columns      nothing: uniform without the dealer's seeds
    3     P_k -> server   noisy coefficients  their sum, (epsilon, delta)-DP for a whole record
    4     server -> all   model               post-processing of step 3
    """
    options = plan.options
    if (plan.noise, options.loss, options.mechanism) != ("shares", "linear", "gaussian"):
        raise InputError(
            f"noise = {plan.noise!r}, loss = {options.loss!r}, mechanism = {options.mechanism!r}: a gram release has "
            "'shares', 'linear' and 'gaussian'"
        )
    opened = open_noisy_sums(s, tables, plan)  # 1, 2, 3
    return {s.cast.server: s.at(s.cast.server, released, plan, name, guarantee, opened)}


def released(plan: Plan, name: str, guarantee: Guarantee, opened: list[Integers]) -> ReleasedData:
    """The opened sums with what is public about them; a column's noise is the mean of its sums with the features."""
    schema = plan.schema
    columns = [column for party in schema.widths for column in schema.columns(party)]
    features = np.delete(np.arange(1, 1 + len(columns)), plan.coefficients.label - 1)
    variances = np.mean(plan.deviations[features, 1:] ** 2, axis=0)
    return ReleasedData(
        release=name,
        method="gram",
        records=schema.rows,
        label=schema.label.name,
        columns=tuple(
            ReleasedColumn(c, (c.low - c.origin) / c.unit, (c.high - c.origin) / c.unit, float(v))
            for c, v in zip(columns, variances, strict=True)
        ),
        values=plan.matrix(opened),
        guarantee=guarantee,
    )
