"""Joint operations on additive shares, round by round: what the dealer deals, what the parties open to each other.

Every round opens masked values between all parties, in one message each; the masks are a tuple of the dealer's. So a
list of openings states an operation's rounds (its length, and 2 before the first for the dealer), its bytes, and what
to ask of the dealer ahead. Sizes are public, and so are the rounds. The circuits are CrypTen's (`mpc.primitives`), but
for joint noise, which is `smpc.engine.joint_noise`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.joint_laplace import WORD, JointLaplace
from smpc.cost import message_bytes

Shape = tuple[int, ...]

_TREE = 6  # levels over the 64 bits of a word


@dataclass(frozen=True)
class Opening:
    """One round. `factors`: the shapes of the dealer's tuple of this `kind`; `opened`: of each party's message."""

    kind: str
    factors: tuple[Shape, ...]
    opened: Shape

    @property
    def correction(self) -> Shape:
        """What the dealer sends the first party."""
        return np.broadcast_shapes(*self.factors)

    @property
    def bytes(self) -> int:
        """What each party sends each other one."""
        return message_bytes("all_gather", self.opened)


def sent_bytes(openings: Sequence[Opening]) -> int:
    """What each party sends each other one for all of them."""
    return sum(opening.bytes for opening in openings)


def square(shape: Shape) -> list[Opening]:
    """1 round, 8 bytes an entry."""
    return [Opening("square", (shape,), shape)]


def comparison(shape: Shape, parties: int) -> list[Opening]:
    """One row of `argmax` against the best so far, n entries: is it larger, and two choices by that bit.

    With two parties 10 rounds and 8 (2 + 6 4 + 1 + 2 2) n = 248 n bytes.
    """
    choice = Opening("additive", (shape, shape), (2 * math.prod(shape),))
    return [*_sign(shape, parties), choice, choice]


def any_nonzero(count: int, parties: int) -> list[Opening]:
    """The bit of `check_zero` over n = `count` entries, its own opening apart: is any or its negative below zero?

    With two parties 16 rounds and 8 2 (2 + 6 4 + 1) n = 432 n bytes.
    """
    return [*_sign((2, count), parties), *_sign((), parties)]


def joint_noise(law: JointLaplace, count: int) -> list[Opening]:
    """One piece of `count` joint draws: 7 rounds."""
    planes, digits, words = law.shape(count)
    half = planes // 2
    openings = [_conjunction((half, digits, words), (half, digits, words))]
    while half > 1:
        half //= 2
        openings.append(_conjunction((1, half, digits, words), (2, half, digits, words)))
    return [*openings, Opening("B2A", ((digits, words * WORD),), (digits, words))]


def _sign(shape: Shape, parties: int) -> Iterator[Opening]:
    """Whether each number is below zero: the parties' shares as binary numbers, added pairwise, and the top bit."""
    summands = parties
    while summands > 1:
        pairs = summands // 2
        summands -= pairs
        yield _conjunction((pairs, *shape), (pairs, *shape))
        for _ in range(_TREE):  # set and propagate, over words twice as far apart each time
            yield _conjunction((2, pairs, *shape), (2, pairs, *shape))
    yield _to_arithmetic(shape)


def _conjunction(x: Shape, y: Shape) -> Opening:
    """x and y, bit by bit: both are opened under masks."""
    return Opening("binary", (x, y), (math.prod(x) + math.prod(y),))


def _to_arithmetic(shape: Shape) -> Opening:
    """One bit of each word, opened under a dealt one of which the parties have both kinds of shares."""
    return Opening("B2A", (shape,), shape)
