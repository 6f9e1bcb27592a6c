"""Sensitivity of second moments: the sums of products of columns that a quadratic objective is made of.

A record has m features x_1..x_m, perhaps a label y, and perhaps an intercept, the constant column S; all are integers
in [-S, S]. Released once each: x_a x_b for a <= b, x_a y, S x_a and S y, summed over records. Not released: y y, and
the public S S. The logistic objective (order-2 Taylor) is made of the same sums with y = S or -S instead of 1 or 0: the
maxima below have y there.

When a record is replaced some columns C change (all, or those of one party). For a column a in C put u = x - x',
v = x + x', p_a = |u_a|: then |u_a| + |v_a| <= 2S. A product of two changing columns moves by
|u_a v_b + v_a u_b| / 2 <= S (p_a + p_b) - p_a p_b, a square (b = a) by half of that twice, the same formula, and a
product with an unchanged column by p_a |x_b| <= S p_a.

L1, exact. Let k features change, P = sum p_a and Q = sum p_a^2 over them, n = the number of columns (m, label,
intercept). Adding up, every changing feature meets n others and itself twice:

    without a changing label    g(p; c) = c P - (P^2 + Q) / 2         with c = S (n + 1)
    with one                    g(p; c) + q (S (n - 1) - P),          q = p_y in [0, 2S]

which is linear in q: the maximum has q = 0, or q = 2S and thus 2 S^2 (n - 1) + g(p; c - 2S). For given P, g is
largest when the p_a differ by at most one, and raising one of the smallest, p_a, gains c - P - p_a - 1, which falls
with P: write c = (k + 1) a + r, 0 <= r <= k; the gain ends at P = k a + r, with g = k a c - k (k + 1) a^2 / 2 + r (r
- 1) / 2, or earlier at p_a = 2S. The bound is attained: x = S, x' = S - p, unchanged columns S, y = S, y' = S or -S.
All columns changing, label and intercept present, d = m + 1: S^2 d (d + 3) / 2.

Squared L2, exact: 4 S^4 j (n - j), j = min(number of changing columns, n // 2): j columns change their sign. Put
s = (x + x') / 2, t = (x - x') / 2, |s| + |t| <= S. In the pair (s_a, t_a) the squared norm is 4 (A t_a^2 + B s_a^2 +
2 C s_a t_a) + 16 s_a^2 t_a^2 (the last for its square only), with A = sum s_b^2, B = sum t_b^2, C = sum s_b t_b over
the other columns b. It grows along rays, so |s_a| + |t_a| = S. Without the last term it is convex, so an end (sign
change or no change) is best: that settles the label. For a feature, as soon as one other column is at an end, A + B -
2|C| >= sum (|s_b| - |t_b|)^2 >= S^2, and with t = S h, s = S (1 - h) the value is at most 4 S^2 (h A + (1 - h) B -
S^2 h (1 - h)(1 - 4 h (1 - h))) <= 4 S^2 max(A, B), the value at an end. The intercept, the label and unchanged
columns are at an end. With features only, m >= 2, and that sum under S^2 for every a, put e_a = 1 - 2 h_a and E = sum
e_a^2 < m / (m - 1): the squared norm is at most S^4 (sum over a <= b of (1 - e_a e_b)^2), thus at most S^4 (m (m + 1)
+ E^2 - E) / 2 because e^4 <= e^2, and that is below 4 S^4 (m^2 // 4). One single feature: S^4.
"""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms import validate
from mechanisms.sensitivity import Sensitivity
from mechanisms.weighted_moments import WeightedMoments, Weights


@dataclass(frozen=True)
class Moments:
    """Sums of products of `features` columns, the label and the intercept; entries are integers in [-bound, bound]."""

    features: int
    bound: int
    label: bool = True
    intercept: bool = True

    def __post_init__(self) -> None:
        validate.integer("features", self.features)
        validate.integer("bound", self.bound, low=1)

    @property
    def record(self) -> Sensitivity:
        """One whole record is replaced."""
        return self.part(self.features, label=self.label)

    @property
    def label_flip(self) -> Sensitivity:
        """One label changes to any other value in the bounds."""
        return self.part(0, label=True)

    def part(self, features: int, *, label: bool) -> Sensitivity:
        """One record changes in `features` of the columns, and in the label if `label`: what one party holds."""
        validate.integer("features", features)
        if features > self.features or (label and not self.label):
            raise ValueError(f"features={features}, label={label} exceed the columns of {self}: count only its columns")
        return Sensitivity(self._l1(features, label), self._l2_squared(features, label))

    @property
    def _columns(self) -> int:
        return self.features + self.label + self.intercept

    def _l1(self, features: int, label: bool) -> int:
        weights = Weights(constant=int(self.intercept), label=int(self.label), indicator=0)
        return WeightedMoments(self.features, 0, self.bound, weights).part(features, 0, label=label)

    def _l2_squared(self, features: int, label: bool) -> int:
        if self._columns == 1 and features == 1:
            return self.bound**4
        flips = min(features + label, self._columns // 2)
        return int(4 * self.bound**4 * flips * (self._columns - flips))


def cross_block(rows: int, columns: int, bound: int) -> Sensitivity:
    """The sums of x_a z_b, `rows` columns x_a of one party times `columns` columns z_b of another, once each.

    L1: S (columns P_x + rows P_z) - P_x P_z is bilinear, largest at a corner: 2 S^2 rows columns, one side changing its
    signs. That moves every product by 2 S^2, the most possible, so it is the largest L2 change as well.
    """
    count = validate.integer("rows", rows) * validate.integer("columns", columns)
    step = 2 * validate.integer("bound", bound, low=1) ** 2
    return Sensitivity(count * step, count * step * step)
