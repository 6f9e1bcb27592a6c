"""The secure session: this process's part of a job, over the network, on CrypTen's shared tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mechanisms.joint_laplace import JointLaplace
from mechanisms.randomness import RandomWords
from smpc import openings
from smpc.cast import Cast
from smpc.cost import product_bytes
from smpc.engine.crossproduct import Correlation, multiply
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.network_session import NetworkSession
from smpc.engine.requests import Requests
from smpc.engine.sharing import Sharing
from smpc.openings import Opening
from smpc.products import ProductPlan, own_gram, places
from smpc.ring import Integers
from smpc.values import Held, Noise, Shared, value_of

T = TypeVar("T")


class CryptenSession(NetworkSession):
    """One participant's session: a party holds shares, the server none."""

    def __init__(
        self, cast: Cast, network: Network, agreement: Agreement, *, random: RandomWords | None = None
    ) -> None:
        super().__init__(cast, network, agreement, random=random)
        if self.is_party and cast.dealer is not None:
            self._sharing = Sharing(self.me, cast.parties, agreement)
            self._seed = agreement.key(cast.dealer, "dealer")
            self._requests = Requests(network, cast.parties, cast.dealer)
            self._install(cast.dealer)

    def _install(self, dealer: str) -> None:
        from smpc.engine.communicator import LinkCommunicator
        from smpc.engine.install import install
        from smpc.engine.provider import DealerProvider

        communicator = LinkCommunicator(self.network, self.cast.parties)
        self._provider = DealerProvider(self.network, dealer, self._seed, self._requests)
        install(communicator, self._provider, self._sharing)

    # shares as CrypTen's tensors

    def _tensor(self, share: Integers, bits: int = 0) -> Any:
        import torch
        from crypten.mpc.primitives import ArithmeticSharedTensor

        return ArithmeticSharedTensor.from_shares(torch.from_numpy(np.asarray(share, order="C")), precision=bits)

    def _integers(self, share: Any) -> Integers:
        return np.asarray(share.share.numpy(), dtype=np.int64)

    # the verbs

    def correlate(self, plan: ProductPlan) -> Correlation:
        """Ask the dealer for one product's corrections: no data needed, so it can be done ahead."""
        number = self._requests.send(
            "product", rows=plan.rows, widths=dict(plan.widths), blocks=[list(block) for block in plan.blocks]
        )
        return Correlation(number, plan)

    def multiply(self, correlation: Correlation, columns: Integers) -> dict[tuple[str, str], Integers]:
        """The online half of a product: this party's shares of the blocks it takes part in."""
        plan = correlation.plan
        with self.counted("product", product_bytes(plan, self.me), plan.partners(self.me)):
            return multiply(self.network, str(self.cast.dealer), self._seed, correlation, columns)

    @contextmanager
    def _opening(self, operation: str, rounds: Sequence[Opening]) -> Iterator[None]:
        """Set what this party sends the others inside the block beside what these rounds say."""
        peers = [name for name in self.cast.parties if name != self.me]
        with self.counted(operation, len(peers) * openings.sent_bytes(rounds), peers):
            yield

    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Any:
        if not self.is_party:
            return None
        correlation = self.correlate(ProductPlan.gram(rows, widths))
        own = value_of(columns[self.me]) if self.me in widths else None
        blocks = {} if own is None else self.multiply(correlation, own)
        share = own_gram(widths, self.me, own, one)
        place = places(widths)
        for (k, l), part in blocks.items():
            share[place[k], place[l]] = part
            share[place[l], place[k]] = part.T
        if self.me == self.cast.parties[0]:
            share[0, 0] = rows * one * one
        return self._tensor(share)

    def _inner(self, x: Held[Integers], y: Held[Integers], rows: int, widths: tuple[int, int], one: int) -> Any:
        if not self.is_party:
            return None
        block = (x.holder, y.holder)
        correlation = self.correlate(ProductPlan(rows, dict(zip(block, widths, strict=True)), (block,)))
        share = np.zeros(widths, dtype=np.int64)
        if self.me in block:
            share = self.multiply(correlation, value_of(x if self.me == x.holder else y))[block]
        return self._tensor(share)

    def _share(self, held: Held[Integers], shape: tuple[int, ...]) -> Any:
        if not self.is_party:
            return None
        share = self._sharing.zero(shape)
        if held.holder == self.me:
            share = share + value_of(held).reshape(shape)
        return self._tensor(share)

    def _total(self, shares: Sequence[Any]) -> Any:
        if not self.is_party:
            return None
        return self._tensor(np.add.reduce([self._integers(share) for share in shares]))

    def _take(self, share: Any, index: tuple[npt.NDArray[np.intp], ...], times: Integers | int) -> Any:
        return self._tensor(self._integers(share)[index] * times) if self.is_party else None

    def _adopt(self, shares: Mapping[str, Held[Integers]]) -> Any:
        return self._tensor(value_of(shares[self.me])) if self.is_party else None

    def _linear(self, share: Any, f: Callable[..., Integers], common: Sequence[Mapping[str, Held[Any]]]) -> Any:
        if not self.is_party:
            return None
        return self._tensor(f(self._integers(share), *(value_of(values[self.me]) for values in common)))

    def _square(self, shared: Shared) -> Any:
        """x - r is opened between the parties, r uniform: x^2 = r^2 + 2 r (x - r) + (x - r)^2. No truncation."""
        if not self.is_party:
            return None
        x = self._integers(shared.share)
        with self._opening("square", openings.square(x.shape)):
            r, squared = (self._integers(mask) for mask in self._provider.square(x.shape))
            opened = np.asarray(self._tensor(x - r).reveal().numpy(), dtype=np.int64)
        result = squared + 2 * r * opened
        return self._tensor(result + opened * opened if self.me == self.cast.parties[0] else result)

    def _argmax(self, shared: Shared) -> Any:
        """The best row so far against the next one; it stays in a tie. CrypTen compares on shares."""
        if not self.is_party:
            return None
        from crypten.mpc import MPCTensor

        best, *rest = (MPCTensor.from_shares(row, precision=0) for row in shared.share.share)
        place = best * 0
        rounds = openings.comparison(shared.shape[1:], len(self.cast.parties))
        for number, row in enumerate(rest, 1):
            with self._opening("argmax", rounds):
                self._provider.ask_ahead(rounds)
                stays = best >= row
                best = row + stays * (best - row)
                place = number + stays * (place - number)
        return self._tensor(place.share.numpy())

    def _add_noise(self, share: Any, noise: Noise) -> Any:
        if not self.is_party:
            return None
        own = noise.draws.get(self.me)
        return share if own is None else self._tensor(self._integers(share) + value_of(own))

    def _add_joint_noise(self, shared: Shared, mechanism: JointLaplace) -> Any:
        if not self.is_party:
            return None
        from smpc.engine.joint_noise import joint_draws

        share = self._integers(shared.share)
        first = self.me == self.cast.parties[0]
        rounds = [o for size in mechanism.pieces(share.size) for o in openings.joint_noise(mechanism, size)]
        with self._opening("joint noise", rounds):
            noise = joint_draws(mechanism, share.size, self._own_random, self._provider, first)
        return self._tensor(share + noise.reshape(share.shape))

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        label = self.network.step  # names the message, so that parties that open different values both show theirs
        total = np.zeros(shared.shape, dtype=np.int64)
        if self.is_party:  # re-shared first: the receiver sees no single share and no single party's noise
            total = np.asarray(self._integers(shared.share) + self._sharing.zero(shared.shape))
        if to != self.me:
            if self.is_party:
                self.network.send(to, label, total)
            return Held(to)
        for name in self.cast.parties:
            if name != self.me:
                total += self.network.receive(name, label, np.int64, shared.shape).view(np.int64)
        return Held(to, total.view(np.int64))

    def _check_zero(self, shared: Shared) -> bool:
        """A party's CrypTen compares on shares and opens the one bit; the first party tells the server."""
        if not self.is_party:
            return bool(self.network.receive(self.cast.parties[0], "bit", np.int64, (1,))[0])
        from crypten.mpc import MPCTensor

        tensor = MPCTensor.from_shares(shared.share.share.reshape(-1), precision=0)
        rounds = openings.any_nonzero(tensor.nelement(), len(self.cast.parties))
        with self._opening("check_zero", rounds):
            self._provider.ask_ahead(rounds)
            different = (tensor != 0).sum() > 0
        zero = int(different.reveal()) == 0
        if self.me == self.cast.parties[0]:
            self.network.send(self.cast.server, "bit", np.array([zero], dtype=np.int64))
        return zero
