"""What the modes of the bgn backend have in common: who encrypts under which key, who multiplies, who opens.

Between parties k and l, k first in their order:

mode       columns are encrypted            multiplied by   opened by                who can open everything
pair       k's in G1, l's in G2, own keys   the server      k and l together         nobody but each pair its sums
threshold  under one joint key pair         the server      t of the K parties       any t parties
linear     k's in G1, under k's own key     l, in plain     k, l's noise in it       nobody but k what l sent it
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import Elements, Encoded, Group
from smpc.bgn.entries import Entries, Pair
from smpc.engine.network import Network
from smpc.products import ProductPlan
from smpc.ring import Integers
from smpc.session import Cast

Steps = tuple[tuple[str, str, str], ...]  # sender, receiver, message, as a transcript shows them
RECEIVER = "receiver"  # in Steps: whoever an opening is for


@dataclass(frozen=True)
class Part:
    """This process's part in a run. `random` serves keys and encryption, never noise."""

    network: Network
    cast: Cast
    nonce: bytes
    random: RandomWords

    @property
    def me(self) -> str:
        return self.network.me

    @property
    def is_party(self) -> bool:
        return self.me in self.cast.parties

    @property
    def is_server(self) -> bool:
        return self.me == self.cast.server

    @property
    def peers(self) -> list[str]:
        """The parties but this one."""
        return [name for name in self.cast.parties if name != self.me]

    def receive(self, sender: str, label: str, shape: Sequence[int]) -> Encoded:
        """Bytes of this shape. PeerError that names the sender for anything else."""
        return self.network.receive(sender, label, np.uint8, shape).view(np.uint8)


class Mode(ABC):
    """One way from columns to opened sums. All participants call each method, in step.

    The STEPS are the messages of each part, for the transcript.
    """

    KEY_STEPS: ClassVar[Steps]
    PRODUCT_STEPS: ClassVar[Steps]
    OPENING_STEPS: ClassVar[Steps]

    def __init__(self, part: Part) -> None:
        self.part = part

    @abstractmethod
    def exchange_keys(self) -> None:
        """Make and publish keys, with proofs. PeerError names whoever publishes one that is not proven."""

    @abstractmethod
    def multiply(self, plan: ProductPlan, columns: Integers | None) -> Mapping[Pair, Elements]:
        """The encrypted sums of the pairs that this participant keeps; `columns` (width, rows) are its own, if any."""

    @abstractmethod
    def receivers(self, plan: ProductPlan) -> list[str]:
        """To whom this participant uploads its encrypted columns."""

    @abstractmethod
    def groups(self, plan: ProductPlan) -> list[Group]:
        """In which groups it encrypts them."""

    @abstractmethod
    def open(self, entries: Entries, draws: Integers | None, to: str, session: bytes) -> Integers:
        """The values of the pairs' entries that this participant learns and tells, zeros elsewhere.

        `draws` is its own noise. `session` is used for this opening only. Raises OutOfWindow; PeerError that names who
        sent something malformed or a false partial decryption.
        """

    @abstractmethod
    def opening_bytes(self, entries: Entries, to: str) -> int:
        """What this participant sends for that, framing included."""

    @abstractmethod
    def teller(self, k: str, l: str, to: str) -> str:
        """Who has the values of a pair's entries then, to tell `to`."""
