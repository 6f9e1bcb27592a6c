"""What a product costs in the mode `pair`: seconds and bytes from public sizes and a machine's unit costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smpc.bgn.curve import G1, GT, Group
from smpc.bgn.decrypt import COMPONENTS
from smpc.bgn.mode import sent_by
from smpc.bgn.pair_mode import opening_traffic
from smpc.bgn.server_products import groups_of
from smpc.bgn.upload import upload_bytes
from smpc.products import ProductPlan


@dataclass(frozen=True)
class UnitCosts:
    """Seconds on one core: of a value; `product` of a row in two columns, all four components of it.

    `start_product` is what a pair of columns costs once (final exponentiations); `first` and `second` are the two
    parties' work to open one sum, the logarithm apart.
    """

    encrypt_g1: float
    encrypt_g2: float
    decode_g1: float
    decode_g2: float
    product: float
    start_product: float
    first: float
    second: float
    logarithm: float


@dataclass(frozen=True)
class Estimate:
    """A product of `plan` and the opening of all its sums, at `units`; core seconds, bytes at the socket."""

    plan: ProductPlan
    units: UnitCosts

    def encryption(self, party: str) -> float:
        """n d_k (E1 if k is the first of a pair, + E2 if it is the second of one): independent of K."""
        unit = {group: self.units.encrypt_g1 if group is G1 else self.units.encrypt_g2 for group in self._groups(party)}
        return self.plan.rows * self.plan.widths[party] * sum(unit.values())

    def server(self) -> float:
        """Checks of all that is uploaded, then n d_k d_l products a pair."""
        decode = sum(
            self.plan.widths[party] * (self.units.decode_g1 if group is G1 else self.units.decode_g2)
            for party in self.plan.widths
            for group in self._groups(party)
        )
        sums = sum(count for _, count in self._counts())
        return self.plan.rows * (decode + sums * self.units.product) + sums * self.units.start_product

    def opening(self, party: str) -> float:
        """Its coefficients times one partial decryption: independent of n."""
        return sum(
            count * (self.units.first if party == k else self.units.second + self.units.logarithm)
            for (k, l), count in self._counts()
            if party in (k, l)
        )

    def upload_bytes(self, party: str) -> int:
        """To the server: 96 n d_k, 192 n d_k or both, and framing."""
        return upload_bytes(self.plan, party, self._groups(party))

    def opening_bytes(self, party: str) -> int:
        """To other parties."""
        return sum(sent_by(party, opening_traffic("the server", *pair, count)) for pair, count in self._counts())

    def server_bytes(self) -> int:
        """The server's encrypted sums, without framing."""
        return sum(count * COMPONENTS * GT.size for _, count in self._counts())

    def _groups(self, party: str) -> list[Group]:
        return groups_of(self.plan, party)

    def _counts(self) -> Iterator[tuple[tuple[str, str], int]]:
        for k, l in self.plan.blocks:
            yield (k, l), self.plan.widths[k] * self.plan.widths[l]
