"""What a protocol's text will send on the bgn backend, before anything runs: `smpc.forecast` with a mode's traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from smpc.bgn.dlog import search_seconds
from smpc.bgn.entries import BoundedNoise, Entries
from smpc.bgn.mode import Traffic
from smpc.bgn.modes import Keys
from smpc.bgn.session import VALUES
from smpc.cast import Cast
from smpc.cost import message_bytes
from smpc.engine.start import PATIENCE
from smpc.errors import InputError
from smpc.forecast import Forecast
from smpc.products import ProductPlan
from smpc.ring import Integers
from smpc.session import Mechanism
from smpc.values import Held, Noise, Shared

LONGEST_SEARCH = PATIENCE / 2  # seconds of one participant: others' machines are slower than the one that was measured


class BgnForecast(Forecast):
    """Counts the bytes of every two participants; entries are placed as in a run, and all zero."""

    def __init__(self, cast: Cast, keys: Keys, published: Iterable[npt.NDArray[np.float64]] = ()) -> None:
        super().__init__(keys.cast(cast), published)
        self._mode = keys.type
        self._has_keys = False
        self._noises = 0

    def draw_noise(self, mechanism: Mechanism, contributors: Mapping[str, npt.NDArray[np.bool_]]) -> BoundedNoise:
        self._noises += 1
        return BoundedNoise.of(super().draw_noise(mechanism, contributors), mechanism, contributors, self._noises)

    def _all(self, traffic: Traffic) -> None:
        for sender, receiver, count in traffic:
            self._count(sender, receiver, count)

    def _product(self, plan: ProductPlan) -> None:
        if not self._has_keys:
            self._all(self._mode.key_traffic(self.cast))
            self._has_keys = True
        self._all(self._mode.product_traffic(self.cast, plan))

    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Entries:
        super()._gram(columns, rows, widths, one)
        size = 1 + sum(widths.values())
        return Entries.of_gram(self.cast.parties, widths, np.zeros((size, size), np.int64), {}, rows * one * one)

    def _inner(self, x: Held[Integers], y: Held[Integers], rows: int, widths: tuple[int, int], one: int) -> Entries:
        super()._inner(x, y, rows, widths, one)
        return Entries.of_pair(self.cast.parties, (x.holder, y.holder), widths, {}, rows * one * one)

    def _share(self, held: Held[Integers], shape: tuple[int, ...]) -> Entries:
        return Entries.of_party(self.cast.parties, held.holder, np.zeros(shape, np.int64))

    def _take(self, share: Entries, index: tuple[npt.NDArray[np.intp], ...], times: Integers | int) -> Entries:
        return share.take(index, times)

    def _add_noise(self, share: Entries, noise: Noise) -> Entries:
        return share.with_noise(noise) if isinstance(noise, BoundedNoise) else share

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        entries: Entries = shared.share.flat()
        self._all(self._mode.opening_traffic(self.cast, entries, to))
        self._check_time(entries, to)
        for name in self.cast.parties:
            told = self._mode.told_by(name, entries, to)
            if told.size and name != to:
                self._count(name, to, message_bytes(VALUES, told.shape))
        return Held(to)

    def _check_time(self, entries: Entries, to: str) -> None:
        """Raises InputError where others could lose patience with whoever searches for the logarithms of an opening."""
        sums: Counter[str] = Counter()
        for k, l, places in entries.pairs():
            sums[self._mode.teller(k, l, to)] += len(places)
        each = search_seconds(entries.reach)
        for name, count in sums.items():
            if count * each > LONGEST_SEARCH:
                raise InputError(
                    f"{name} would search for {count} sums, up to {each:.2g} s each, and the others wait an hour: use "
                    f"fewer columns (at most {int(LONGEST_SEARCH / each)} sums), fewer fraction_bits or "
                    "backend = 'crypten'"
                )
