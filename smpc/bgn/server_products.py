"""Products by the untrusted server: parties upload under keys of both groups, the server multiplies as rows come.

step  from -> to      message            the receiver learns
1     P_k -> server   encrypted columns  nothing: the number of rows and columns, which is public

A party encrypts in G1 if it is the first of a pair, in G2 if it is the second of one, in both if it is between: once,
whatever the number of pairs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from smpc.bgn.curve import G1, G2, Elements, Group
from smpc.bgn.entries import Pair
from smpc.bgn.mode import Mode, Part, Traffic
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scheme import Encryptor
from smpc.bgn.upload import ENCRYPTED, Upload, ask_on, message_rows, receive, upload_traffic
from smpc.cast import Cast
from smpc.products import ProductPlan
from smpc.ring import Integers
from smpc.transcript import PARTY, SERVER


def groups_of(plan: ProductPlan, party: str) -> list[Group]:
    """In which groups a party encrypts."""
    return [group for place, group in enumerate((G1, G2)) if any(block[place] == party for block in plan.blocks)]


class ServerMode(Mode):
    """A mode whose products the server makes."""

    PRODUCT_STEPS = ((PARTY, SERVER, ENCRYPTED),)

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self._encryptors: dict[Group, Encryptor] = {}

    @abstractmethod
    def public_key(self, group: Group) -> Elements:
        """What this party's columns are encrypted under; after `exchange_keys`."""

    def multiply(self, plan: ProductPlan, columns: Integers | None, bound: int) -> Mapping[Pair, Elements]:
        if self.part.is_server:
            return multiply(self.part, plan)
        if columns is not None:
            groups = groups_of(plan, self.part.me)
            for group in groups:
                if group not in self._encryptors:
                    self._encryptors[group] = Encryptor(group, self.public_key(group))
            upload(self.part, plan, columns, {group: self._encryptors[group] for group in groups})
        return {}

    @staticmethod
    def product_traffic(cast: Cast, plan: ProductPlan) -> Traffic:
        return [
            message
            for party in plan.widths
            for message in upload_traffic(plan, party, [cast.server], groups_of(plan, party))
        ]


def upload(part: Part, plan: ProductPlan, columns: Integers, encryptors: Mapping[Group, Encryptor]) -> None:
    """A party's part: its columns (width, rows), to the server. It learns nothing."""
    stream = Upload(part, [part.cast.server], encryptors)
    for rows in message_rows(plan):
        stream.send(columns[:, rows])
        part.network.rows = (rows.stop, plan.rows)


def multiply(part: Part, plan: ProductPlan) -> dict[Pair, Elements]:
    """The server's part: each pair's sums as level-2 ciphertexts (d_k d_l, 4, words). It opens nothing.

    Its memory: two messages of each party and 4 d_k d_l elements a pair, whatever the number of rows.
    """
    sums = {(k, l): InnerProducts(plan.widths[k], plan.widths[l]) for k, l in plan.blocks}
    for rows in message_rows(plan):
        received = {
            (party, group): receive(part, plan, party, group, rows)
            for party in plan.widths
            for group in groups_of(plan, party)
        }
        for (k, l), total in sums.items():
            total.add(received[k, G1], received[l, G2])
        ask_on(part, plan, list(plan.widths), rows)
    return {pair: total.result() for pair, total in sums.items()}
