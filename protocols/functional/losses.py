"""What a loss makes of the minimiser of squares: both losses need the same sums, with the label scaled to [-1, 1].

Linear: sum (y - w'x)^2. Logistic: log(1 + e^z) - y z, z = w'x, y in {0, 1}, with log(1 + e^z) replaced by a quadratic
c + z / 2 + a z^2 (by symmetry the slope is 1/2): sum a z^2 - y' z / 2 with y' = 2 y - 1, whose minimiser is that of
sum (y' - z)^2 divided by 4 a.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev

from protocols.functional.options import Options
from protocols.schema import Floats, Schema

TAYLOR_CURVATURE = 1 / 8  # half of the second derivative of log(1 + e^z) at 0
_POINTS = 2000


def curvature(options: Options) -> float:
    """The coefficient a of z^2: Taylor at 0, or least squares on [-margin, margin] under the Chebyshev weight."""
    if options.expansion == "taylor":
        return TAYLOR_CURVATURE
    x = np.cos(np.pi * (np.arange(_POINTS) + 0.5) / _POINTS)
    fitted = chebyshev.chebfit(x, np.logaddexp(0.0, options.margin * x), 2)
    return float(chebyshev.cheb2poly(fitted)[2]) / options.margin**2


def in_original_units(schema: Schema, options: Options, weights: Floats) -> Floats:
    """Intercept and weights for unscaled columns: of the label (linear), or of its log-odds (logistic)."""
    features = schema.all_features
    units = np.array([column.unit for column in features])
    origins = np.array([column.origin for column in features])
    unit, origin = (schema.label.half, schema.label.middle) if options.loss == "linear" else (1.0, 0.0)
    factor = unit if options.loss == "linear" else 1 / (4 * curvature(options))
    slopes = factor * weights[1:] / units
    return np.concatenate([[origin + factor * weights[0] - slopes @ origins], slopes])
