"""Each primitive broken in one way: the check that passes on the real code must fail on the mutant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mechanisms.randomness import Stream
from smpc import fixedpoint
from smpc.engine import crossproduct
from smpc.engine.network import Network
from smpc.engine.session import CryptenSession
from smpc.engine.sharing import Sharing
from smpc.values import Held, Noise, Shared, value_of
from tests.harness import ArraySession, Sessions
from tests.sharing import views
from tests.sharing.checks import assert_hidden, subset_sums
from tests.sharing.test_exact_values import Words
from tests.support import held, words_of

Patch = pytest.MonkeyPatch
SIZE = 3
SECRET = np.array([5, -7, 2**62])


def check_opening_is_exact() -> None:
    with Sessions(3) as running:
        results = running.run(
            lambda s: s.reveal(
                s.share(held(s, {"p0": SECRET})["p0"], (SIZE,)), to="server", message="x", unprotected=True
            )
        )
    assert results["server"]._value.tolist() == SECRET.tolist()


def check_noise_comes_before_opening() -> None:
    """All that the server gets, in any sum: the noisy value, and neither the value nor anybody's noise."""

    def task(s: ArraySession) -> Any:
        s._own_random = words_of(s.me)
        noise = s.draw_noise(Words(), dict.fromkeys(s.cast.parties, np.ones(SIZE, bool)))
        shared = s.share(held(s, {"p0": SECRET})["p0"], (SIZE,))
        return s.reveal(s.add_noise(shared, noise), to="server", message="x")

    with Sessions(3, record=True) as running:
        opened = running.run(task)["server"]._value
        got = [
            share for party in running.cast.parties for share in views.received(running, "server", party, "reveal: x")
        ]
    draws = [words_of(party).words(SIZE).view(np.int64) for party in running.cast.parties]
    assert np.array_equal(opened, SECRET + sum(draws))
    sums = subset_sums(got)
    assert any(np.array_equal(total, opened) for total in sums)
    for hidden in (SECRET, *draws):
        assert not any(np.array_equal(total, hidden) for total in sums)


def check_encoding_rounds_to_nearest() -> None:
    values = np.array([0.5, 0.25, -0.5, -0.75, 1.4999, -1.4999, 3.0])
    assert fixedpoint.encode(values, 0).tolist() == [1, 0, -1, -1, 1, -1, 3]


def check_decoding_of_both_signs() -> None:
    numbers = np.arange(-(2**10), 2**10)
    assert np.array_equal(fixedpoint.decode(numbers, 4) * 16, numbers)


def check_zero_sharing_among_colluders() -> None:
    assert_hidden(views.opening(5, ("p2", "p4")))


def check_opening_hides_shares() -> None:
    assert_hidden(views.opening(3, ("p0", "p1")))


def check_input_shares() -> None:
    assert_hidden(views.input_shares(3, "p0"))


def check_products() -> None:
    assert_hidden(views.two_products(3, "p0"))


def ring_neighbours_only(patch: Patch) -> None:
    real = Sharing.__init__

    def init(self: Sharing, me: str, parties: Any, agreement: Any) -> None:
        real(self, me, parties, agreement)
        others = [rank for rank in range(len(parties)) if rank != self.rank]
        near = {(self.rank - 1) % len(parties), (self.rank + 1) % len(parties)}
        self._signed = [pair for rank, pair in zip(others, self._signed, strict=True) if rank in near]

    patch.setattr(Sharing, "__init__", init)


def opened_without_resharing(patch: Patch) -> None:
    real = CryptenSession._reveal

    def reveal(self: CryptenSession, shared: Shared, to: str) -> Any:
        with Patch.context() as inside:
            if self.is_party:
                inside.setattr(self._sharing, "zero", lambda shape: np.zeros(shape, dtype=np.int64))
            return real(self, shared, to)

    patch.setattr(CryptenSession, "_reveal", reveal)


def noise_after_opening(patch: Patch) -> None:
    late: dict[str, Noise] = {}
    real = CryptenSession._reveal

    def add_noise(self: CryptenSession, share: Any, noise: Noise) -> Any:
        late[self.me] = noise
        return share

    def reveal(self: CryptenSession, shared: Shared, to: str) -> Any:
        opened = real(self, shared, to)
        if self.is_party:
            self.network.send(to, "reveal: x", value_of(late[self.me].draws[self.me]))
            return opened
        own = [self.network.receive(party, "reveal: x", np.int64, shared.shape) for party in self.cast.parties]
        return Held(to, np.add.reduce([value_of(opened), *own]))

    patch.setattr(CryptenSession, "_add_noise", add_noise)
    patch.setattr(CryptenSession, "_reveal", reveal)


def one_share_dropped(patch: Patch) -> None:
    real = Network.receive

    def receive(self: Network, peer: str, label: str, *args: Any, **kwargs: Any) -> Any:
        array = real(self, peer, label, *args, **kwargs)
        return np.zeros_like(array) if (peer, label) == ("p2", "reveal: x") else array

    patch.setattr(Network, "receive", receive)


def same_mask_for_every_product(patch: Patch) -> None:
    real = crossproduct.mask
    patch.setattr(crossproduct, "mask", lambda seed, number, rows, width: real(seed, 0, rows, width))


def no_mask(patch: Patch) -> None:
    patch.setattr(
        crossproduct, "mask", lambda seed, number, rows, width: np.zeros((width, rows.stop - rows.start), int)
    )


def no_pad(patch: Patch) -> None:
    patch.setattr(
        crossproduct, "pad", lambda seed, number, block, plan: np.zeros([plan.widths[name] for name in block], int)
    )


def masks_from_a_constant_seed(patch: Patch) -> None:
    patch.setattr(crossproduct, "keyed", lambda seed, *purpose: Stream(bytes(32)))


def no_zero_sharing_of_inputs(patch: Patch) -> None:
    patch.setattr(Sharing, "zero", lambda self, shape: np.zeros(shape, dtype=np.int64))


def encoded_toward_zero(patch: Patch) -> None:
    patch.setattr(fixedpoint, "encode", lambda values, bits: np.trunc(np.asarray(values) * 2.0**bits).astype(np.int64))


def decoded_one_too_low(patch: Patch) -> None:
    patch.setattr(fixedpoint, "decode", lambda integers, bits: np.ldexp(integers - (integers < 0), -bits))


MUTANTS: list[tuple[Callable[[Patch], None], Callable[[], None]]] = [
    (ring_neighbours_only, check_zero_sharing_among_colluders),
    (opened_without_resharing, check_opening_hides_shares),
    (no_zero_sharing_of_inputs, check_input_shares),
    (one_share_dropped, check_opening_is_exact),
    (noise_after_opening, check_noise_comes_before_opening),
    (same_mask_for_every_product, check_products),
    (no_mask, check_products),
    (no_pad, check_products),
    (masks_from_a_constant_seed, check_products),
    (encoded_toward_zero, check_encoding_rounds_to_nearest),
    (decoded_one_too_low, check_decoding_of_both_signs),
]


@pytest.mark.parametrize("check", dict.fromkeys(check for _, check in MUTANTS), ids=lambda check: check.__name__)
def test_the_real_code_passes(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=lambda item: item.__name__)
def test_the_mutant_is_caught(mutant: Callable[[Patch], None], check: Callable[[], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        check()
