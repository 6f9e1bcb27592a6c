"""The session on pairing-based encryption: no dealer, and others compute on a party's ciphertexts.

The functional mechanism's text runs on it unchanged, in one of three modes (`smpc.bgn.mode`), each with its table of
messages.
Noise is added before anything is decrypted. The cast's assumptions say what a release rests on; a participant that
hands on a multiple of a ciphertext instead of the agreed sum is outside the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.joint_laplace import JointLaplace
from mechanisms.randomness import RandomWords, SecureRandom
from smpc.bgn.curve import Elements
from smpc.bgn.dlog import WINDOW
from smpc.bgn.entries import BoundedNoise, Entries, Pair
from smpc.bgn.mode import RECEIVER, Part, Steps, sent_by
from smpc.bgn.modes import Keys
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.network_session import NetworkSession
from smpc.errors import InputError
from smpc.fixedpoint import check_sum
from smpc.products import MASKED, ProductPlan, own_gram
from smpc.ring import Integers
from smpc.session import Mechanism
from smpc.transcript import DEALER, OTHER_PARTY, PARTY, SERVER
from smpc.values import Held, Noise, Shared, value_of

VALUES = "values"


class BgnSession(NetworkSession):
    """One participant's session: values stay with their holders, products are made and opened as the mode says.

    `random` is the source of noise (for tests); keys and encryption always use the operating system's.
    """

    def __init__(
        self,
        cast: Cast,
        network: Network,
        agreement: Agreement,
        keys: Keys,
        *,
        random: RandomWords | None = None,
    ) -> None:
        super().__init__(keys.cast(cast), network, agreement, random=random)
        self._mode = keys.type(Part(network, self.cast, agreement.nonce, SecureRandom()))
        self._noises = self._openings = self._tail = 0
        self._has_keys = False

    # noise that is known to stay in a window

    def draw_noise(self, mechanism: Mechanism, contributors: Mapping[str, npt.NDArray[np.bool_]]) -> BoundedNoise:
        """As in every session, for mechanisms that `BoundedNoise` can bound."""
        self._noises += 1
        noise = BoundedNoise.of(super().draw_noise(mechanism, contributors), mechanism, contributors, self._noises)
        self._tail = max(self._tail, noise.tail)
        return noise

    # products

    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Entries:
        sums = self._multiply(ProductPlan.gram(rows, widths), columns, one)
        local = own_gram(widths, self.me, value_of(columns[self.me]) if self.me in widths else None, one)
        local[0, 0] = rows * one * one
        return Entries.of_gram(self.cast.parties, widths, local, sums, rows * one * one)

    def _inner(self, x: Held[Integers], y: Held[Integers], rows: int, widths: tuple[int, int], one: int) -> Entries:
        pair = (x.holder, y.holder)
        plan = ProductPlan(rows, dict(zip(pair, widths, strict=True)), (pair,))
        sums = self._multiply(plan, {x.holder: x, y.holder: y}, one)
        return Entries.of_pair(self.cast.parties, pair, widths, sums, rows * one * one)

    def _multiply(self, plan: ProductPlan, columns: Mapping[str, Held[Integers]], one: int) -> Mapping[Pair, Elements]:
        """The encrypted sums that this participant keeps. What could not be decrypted is refused before encryption."""
        check_sum(plan.rows, Fraction(1), one.bit_length() - 1, self._tail, WINDOW)
        own = value_of(columns[self.me]) if self.me in plan.widths else None
        if own is not None and (own.shape != (plan.widths[self.me], plan.rows) or np.any((own > one) | (own < -one))):
            raise InputError(f"{self.me}: columns must be {plan.widths[self.me]} x {plan.rows} within +-{one}")
        if not self._has_keys:
            predicted = sent_by(self.me, self._mode.key_traffic(self.cast))
            with self.phase("keys"), self.counted("keys", predicted, self.network.peers):
                self._mode.exchange_keys()
            self._has_keys = True
        predicted = sent_by(self.me, self._mode.product_traffic(self.cast, plan))
        with (
            self.phase("multiply" if own is None else "upload"),
            self.counted("product", predicted, self.network.peers),
        ):
            return self._mode.multiply(plan, own, one)

    # values by holder

    def _share(self, held: Held[Integers], shape: tuple[int, ...]) -> Entries:
        local = value_of(held).reshape(shape) if held.holder == self.me else np.zeros(shape, np.int64)
        return Entries.of_party(self.cast.parties, held.holder, local)

    def _take(self, share: Entries, index: tuple[npt.NDArray[np.intp], ...], times: Integers | int) -> Entries:
        return share.take(index, times)

    def _add_noise(self, share: Entries, noise: Noise) -> Entries:
        if not isinstance(noise, BoundedNoise):
            raise InputError("noise of another session: draw it with this one")
        return share.with_noise(noise)

    def _total(self, shares: Sequence[Entries]) -> Entries:
        raise _unsupported("total")

    def _adopt(self, shares: Mapping[str, Held[Integers]]) -> Entries:
        raise _unsupported("adopt")

    def _square(self, shared: Shared) -> Entries:
        raise _unsupported("square")

    def _argmax(self, shared: Shared) -> Entries:
        raise _unsupported("argmax")

    def _linear(self, share: Entries, f: Callable[..., Integers], common: Sequence[Mapping[str, Held[Any]]]) -> Entries:
        raise _unsupported("linear")

    def _add_joint_noise(self, shared: Shared, mechanism: JointLaplace) -> Entries:
        raise _unsupported("add_joint_noise")

    def _check_zero(self, shared: Shared) -> bool:
        raise _unsupported("check_zero")

    # opening

    def reveal(self, shared: Shared, *, to: str, message: str, unprotected: bool = False) -> Held[Integers]:
        """Open to one receiver. What is a pair's is decrypted as the mode says; the time is independent of the rows.

        In `pair` and `linear` one of the two sees it first. Cost: see the mode.
        """
        if (shared.noise or unprotected) and any(True for _ in shared.share.pairs()):
            self._show(self._mode.OPENING_STEPS, "reveal", shared.noise, to)
        return super().reveal(shared, to=to, message=message, unprotected=unprotected)

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        entries: Entries = shared.share
        shape, entries = shared.shape, entries.flat()
        self._openings += 1
        session = self._agreement.nonce + self._openings.to_bytes(8, "big")
        own = entries.noise.draws.get(self.me) if entries.noise else None
        draws = None if own is None or not self.is_party else value_of(own)
        predicted = sent_by(self.me, self._mode.opening_traffic(self.cast, entries, to))
        with self.counted("opening", predicted, self.network.peers):
            values = self._mode.open(entries, draws, to, session)
        if self.is_party:
            places = entries.own(self.me)
            noise = np.array(entries.draws_of(self.me, draws, places), dtype=np.int64)
            values[places] = entries.local[places] * entries.times[places] + noise
        for name in self.cast.parties:
            places = self._mode.told_by(name, entries, to)
            if not places.size or name == to:
                continue
            if name == self.me:
                self.network.send(to, VALUES, values[places])
            elif to == self.me:
                values[places] = self.network.receive(name, VALUES, np.int64, places.shape)
        return Held(to, values.reshape(shape) if to == self.me else None)

    # what is recorded

    def _record(
        self, sender: str, receiver: str, message: str, shape: tuple[int, ...], verb: str, noise: tuple[str, ...] = ()
    ) -> None:
        """There is no dealer, and columns go encrypted where other sessions mask them."""
        if sender == DEALER:
            return
        if message != MASKED:
            super()._record(sender, receiver, message, shape, verb, noise)
            return
        if not self._has_keys:
            self._show(self._mode.KEY_STEPS, verb)
        self._show(self._mode.PRODUCT_STEPS, verb, shape=shape)

    def _show(
        self, steps: Steps, verb: str, noise: tuple[str, ...] = (), to: str = "", shape: tuple[int, ...] = ()
    ) -> None:
        party_opens = to in self.cast.parties
        for sender, receiver, message in steps:
            if RECEIVER in (sender, receiver):
                names = {RECEIVER: PARTY, PARTY: OTHER_PARTY} if party_opens else {RECEIVER: SERVER, PARTY: PARTY}
                sender, receiver = names[sender], names[receiver]
            super()._record(sender, receiver, message, shape, verb, noise)


def _unsupported(verb: str) -> InputError:
    return InputError(
        f"{verb}: the bgn backend opens each party's and each pair's values, with noise of their holders, and computes "
        "nothing else on them; choose backend = 'crypten'"
    )
