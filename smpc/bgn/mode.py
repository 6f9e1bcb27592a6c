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
from smpc.bgn.curve import Elements, Encoded
from smpc.bgn.entries import Entries, Indices, Pair
from smpc.cast import Cast
from smpc.cost import frame_bytes
from smpc.engine.frames import MAX_PAYLOAD
from smpc.engine.network import Network
from smpc.errors import InputError
from smpc.products import ProductPlan
from smpc.ring import Integers

Traffic = list[tuple[str, str, int]]  # sender, receiver, bytes at the socket
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

    The STEPS are the messages of each part, for the transcript; the traffic is what they cost, of public sizes alone.
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
    def multiply(self, plan: ProductPlan, columns: Integers | None, bound: int) -> Mapping[Pair, Elements]:
        """The encrypted sums of the pairs that this participant keeps.

        `columns` (width, rows) are its own, if any, within +-bound: the caller has checked them.
        """

    @abstractmethod
    def open(self, entries: Entries, draws: Integers | None, to: str, session: bytes) -> Integers:
        """The values of the pairs' entries that this participant learns and tells, zeros elsewhere.

        `draws` is its own noise. `session` is used for this opening only. Raises OutOfWindow; PeerError that names who
        sent something malformed or a false partial decryption.
        """

    @staticmethod
    @abstractmethod
    def teller(k: str, l: str, to: str) -> str:
        """Who has the values of a pair's entries then, to tell `to`."""

    @classmethod
    def told_by(cls, name: str, entries: Entries, to: str) -> Indices:
        """Positions of what `name` tells `to`: its own entries, and those of pairs that it has."""
        pairs = [places for k, l, places in entries.pairs() if cls.teller(k, l, to) == name]
        return np.concatenate([entries.own(name), *pairs])

    @staticmethod
    @abstractmethod
    def key_traffic(cast: Cast) -> Traffic:
        """All messages of `exchange_keys`."""

    @staticmethod
    @abstractmethod
    def product_traffic(cast: Cast, plan: ProductPlan) -> Traffic:
        """All messages of `multiply`."""

    @staticmethod
    @abstractmethod
    def opening_traffic(cast: Cast, entries: Entries, to: str) -> Traffic:
        """All messages of `open`."""


def one_message(label: str, dimensions: int, body: int) -> int:
    """Its bytes at the socket. Raises InputError if no frame holds it: all traffic is known before a run."""
    if body > MAX_PAYLOAD:
        raise InputError(f"'{label}' takes {body} bytes, at most {MAX_PAYLOAD}: use fewer columns")
    return frame_bytes(label, dimensions, body)


def sent_by(name: str, traffic: Traffic) -> int:
    """The bytes that one participant sends."""
    return sum(count for sender, _, count in traffic if sender == name)


def to_each_other(names: Sequence[str], count: int) -> Traffic:
    """A message of so many bytes from everybody to everybody else."""
    return [(sender, receiver, count) for sender in names for receiver in names if sender != receiver]
