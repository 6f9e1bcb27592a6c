"""The bgn backend's shared values: entries that one party or one pair holds, never more.

An entry of party k alone is a plain integer in k's process. An entry of a pair (k, l) is a ciphertext, kept where it
was computed (`smpc.bgn.mode`). Which is which is public; each process has its own part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from smpc.bgn.curve import Elements, Group
from smpc.bgn.dlog import OVERFLOW
from smpc.errors import InputError
from smpc.ring import Integers
from smpc.session import Mechanism
from smpc.values import Noise

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Pair = tuple[str, str]


@dataclass(frozen=True)
class BoundedNoise(Noise):
    """Drawn noise that stays, with all its contributors, below `tail`, up to a probability that the session counts."""

    masks: Mapping[str, Mask] = field(default_factory=dict)
    tail: int = 0

    @classmethod
    def of(cls, noise: Noise, mechanism: Mechanism, masks: Mapping[str, Mask], number: int) -> BoundedNoise:
        """A session's noise with this number, from 1: it leaves its bound with probability 2^-number of `OVERFLOW`.

        Raises InputError for a mechanism without a tail bound of its own for each coordinate.
        """
        if not isinstance(mechanism, DiscreteLaplace | DiscreteGaussian):
            raise InputError(f"mechanism = {mechanism}: the bgn backend adds discrete Laplace or Gaussian noise only")
        counts = np.add.reduce([mask.astype(np.int64) for mask in masks.values()])
        tail = int(counts.max()) * mechanism.tail(OVERFLOW / 2**number / int(counts.sum()))
        return cls(noise.size, noise.draws, masks, tail)


@dataclass(frozen=True)
class Entries:
    """Integers by holder. All arrays have one shape; values are `times` what is stored.

    `first` and `second` are positions in `parties`, equal for an entry of one party, -1 for a public constant, which
    its noise contributor tells. `local` has a party's integers in its process, zeros elsewhere, constants everywhere;
    `place` is an entry's index among its pair's ciphertexts, which are in `sums` in the process that keeps them.
    """

    parties: tuple[str, ...]
    first: Indices
    second: Indices
    local: Integers
    place: Indices
    sums: Mapping[Pair, Elements] = field(repr=False)
    times: Integers
    bound: int  # on the stored values' magnitude
    noise: BoundedNoise | None = None

    @classmethod
    def of_party(cls, parties: tuple[str, ...], party: str, local: Integers) -> Entries:
        """Entries that one party holds alone."""
        holder = np.full(local.shape, parties.index(party))
        place, times = np.zeros(local.shape, np.intp), np.ones(local.shape, np.int64)
        return cls(parties, holder, holder, local, place, {}, times, 0)

    @classmethod
    def of_gram(
        cls,
        parties: tuple[str, ...],
        widths: Mapping[str, int],
        local: Integers,
        sums: Mapping[Pair, Elements],
        bound: int,
    ) -> Entries:
        """All entries of a Gram matrix whose first column is a constant, which everybody knows."""
        owner, column = [-1], [0]
        for party, width in widths.items():
            owner += [parties.index(party)] * width
            column += range(width)
        holders = np.array(np.meshgrid(owner, owner, indexing="ij"))
        columns = np.array(np.meshgrid(column, column, indexing="ij"))
        first, second = np.sort(holders, axis=0)
        first = np.where(first < 0, second, first)
        columns = np.where(holders[0] <= holders[1], columns, columns[::-1])  # the first holder's, the second's
        place = columns[0] * np.array([widths.get(party, 0) for party in parties])[second] + columns[1]
        return cls(parties, first, second, local, place, sums, np.ones_like(local), bound)

    @classmethod
    def of_pair(
        cls, parties: tuple[str, ...], pair: Pair, widths: tuple[int, int], sums: Mapping[Pair, Elements], bound: int
    ) -> Entries:
        """All inner products of two parties' columns."""
        first, second = (np.full(widths, parties.index(party)) for party in pair)
        place = np.arange(widths[0] * widths[1]).reshape(widths)
        return cls(parties, first, second, np.zeros(widths, np.int64), place, sums, np.ones(widths, np.int64), bound)

    def take(self, index: tuple[Indices, ...], times: Integers | int) -> Entries:
        """The entries at a public index as a vector, each `times` a public integer."""
        return replace(
            self,
            first=self.first[index],
            second=self.second[index],
            local=self.local[index],
            place=self.place[index],
            times=self.times[index] * times,
        )

    def flat(self) -> Entries:
        """The same as a vector; constants that nobody perturbs are with the first party."""
        parts = {name: getattr(self, name).reshape(-1) for name in ("first", "second", "local", "place", "times")}
        parts |= {name: np.maximum(parts[name], 0) for name in ("first", "second")}
        return replace(self, **parts)

    def with_noise(self, noise: BoundedNoise) -> Entries:
        """Raises InputError if a contributor does not hold its coordinates: here only holders can add noise."""
        first, second = self.first.copy(), self.second.copy()
        for name, mask in noise.masks.items():
            position = self.parties.index(name)
            free = mask & (first < 0)
            first[free] = second[free] = position
            if np.any(mask & (first != position) & (second != position)):
                raise InputError(
                    f"noise of {name} on values of others: the bgn backend takes noise from their holders only; "
                    "choose mechanism = 'laplace' or 'gaussian', or backend = 'crypten'"
                )
        return replace(self, first=first, second=second, noise=noise)

    @property
    def reach(self) -> int:
        """What the values with their noise stay below: the window of their logarithms."""
        largest = max((abs(int(factor)) for factor in self.times.reshape(-1)), default=1)
        return self.bound * largest + (self.noise.tail if self.noise else 0)

    def pairs(self) -> Iterator[tuple[str, str, Indices]]:
        """Every pair that holds entries, in a fixed order, with their positions in the vector."""
        size = len(self.parties)
        codes = self.first * size + self.second
        for code in np.unique(codes[self.first != self.second]).tolist():
            k, l = divmod(code, size)
            yield self.parties[k], self.parties[l], np.flatnonzero(codes == code)

    def own(self, party: str) -> Indices:
        """Positions in the vector of what `party` holds alone."""
        position = self.parties.index(party)
        return np.flatnonzero((self.first == position) & (self.second == position))

    def ciphertexts(self, pair: Pair, positions: Indices, group: Group) -> Elements:
        """A pair's stored sums at these positions times their public factors, (n, components, words)."""
        stored = self.sums[pair][self.place[positions]]
        factors = [int(factor) for factor in self.times[positions]]
        return np.stack([group.power(stored[:, i], factors) for i in range(stored.shape[1])], axis=1)

    def draws_of(self, party: str, draws: Integers | None, positions: Indices) -> list[int]:
        """A party's noise at these positions; zeros where it adds none."""
        if self.noise is None or draws is None:
            return [0] * len(positions)
        return [int(draw) for draw in draws[positions]]
