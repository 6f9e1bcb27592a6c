"""The pair mode end to end as roles in one process; a cheating or broken party is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smpc.bgn import decrypt
from smpc.bgn.curve import G1, G2, GT, miller_product
from smpc.bgn.decrypt import Partial, decrypt_partly, finish
from smpc.bgn.keys import SecretKey
from smpc.errors import PeerError
from tests.bgn.support import (
    RANDOM,
    SESSION,
    columns,
    exact,
    is_power,
    parties,
    released,
    server_sums,
    target_key,
)


@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(1, 9)),
    bound=st.sampled_from([1, 100, 2**20, 2**31 - 1]),
    noise=st.integers(-(2**62), 2**62),
)
@settings(max_examples=8)
def test_released_is_the_exact_sum_plus_both_noises(
    seed: int, shape: tuple[int, int, int], bound: int, noise: int
) -> None:
    a, b, n = shape
    first, second = columns(seed, a, n, bound), columns(seed + 1, b, n, bound)
    wide = [int(x) for x in (first.astype(object) @ second.T.astype(object)).reshape(-1)]
    noise_k, noise_l = [noise + i for i in range(a * b)], [-3 * i for i in range(a * b)]
    opened = released(server_sums(first, second), noise_k, noise_l)
    assert is_power(opened, [m + x + y for m, x, y in zip(wide, noise_k, noise_l, strict=True)])


def partial_for(count: int = 2) -> Partial:
    k, _ = parties()
    return decrypt_partly(target_key().encrypt(list(range(count)), RANDOM), k.secret, SESSION, "k", RANDOM)


def finished(partial: Partial, session: bytes = SESSION, party: str = "k") -> Any:
    k, l = parties()
    return finish(partial, k.secret.public, l.secret, session, party)


def test_an_honest_partial_decryption_survives_its_bytes() -> None:
    partial = partial_for()
    message = partial.encode()
    assert len(message) == decrypt.partial_bytes(2)
    assert is_power(finished(Partial.decode(message, 2, what="k")), [0, 1])


def test_neither_party_opens_alone() -> None:
    """With one secret key right and the other one any, what comes out is not the value."""
    k, l = parties()
    other_x, other_y = SecretKey.make(G1, RANDOM), SecretKey.make(G2, RANDOM)
    ciphertexts = target_key().encrypt([5], RANDOM)
    by_l_alone = decrypt_partly(ciphertexts, other_x, SESSION, "k", RANDOM)
    assert not is_power(finish(by_l_alone, other_x.public, l.secret, SESSION, "k"), [5])
    assert not is_power(finish(partial_for(1), k.secret.public, other_y, SESSION, "k"), [0])


@pytest.mark.parametrize("field", ["u", "v"])
def test_a_wrong_power_is_named(field: str) -> None:
    partial = partial_for()
    shifted = GT.op(getattr(partial, field), GT.power(GT.generator, [0, 1]))
    with pytest.raises(PeerError, match="k: its partial decryption is not by its published key"):
        finished(replace(partial, **{field: shifted}))


@pytest.mark.parametrize("component", [2, 3])
def test_ciphertexts_other_than_the_decrypted_ones_are_named(component: int) -> None:
    partial = partial_for()
    changed = partial.ciphertexts.copy()
    changed[0, component] = GT.op(changed[0, component], GT.generator)
    with pytest.raises(PeerError, match="k: its partial decryption"):
        finished(replace(partial, ciphertexts=changed))


def test_swapped_answers_are_named() -> None:
    partial = partial_for()
    with pytest.raises(PeerError, match="k: its partial decryption"):
        finished(replace(partial, u=partial.u[::-1], v=partial.v[::-1]))
    with pytest.raises(PeerError, match="k: its partial decryption"):
        finished(replace(partial, ciphertexts=partial.ciphertexts[::-1]))


def test_another_key_session_or_party_is_named() -> None:
    impostor = SecretKey.make(G1, RANDOM)
    partial = decrypt_partly(target_key().encrypt([1], RANDOM), impostor, SESSION, "k", RANDOM)
    for case in (
        lambda: finished(partial),
        lambda: finished(partial_for(), session=SESSION[::-1]),
        lambda: finished(partial_for(), party="m"),
        lambda: finished(replace(partial_for(), proof=np.zeros(64, np.uint8))),
        lambda: finished(replace(partial_for(), proof=np.full(64, 255, np.uint8))),
        lambda: finished(replace(partial_for(), proof=partial_for().proof[:-1])),
    ):
        with pytest.raises(PeerError, match="its partial decryption is not by its published key"):
            case()


def test_truncated_extended_and_wrong_counts_are_named() -> None:
    message = partial_for().encode()
    for bad, count in ((message[:-1], 2), (np.append(message, np.uint8(1)), 2), (message, 1), (message[:0], 2)):
        with pytest.raises(PeerError, match="k: partial decryption"):
            Partial.decode(bad, count, what="k: partial decryption")
    with pytest.raises(PeerError, match="k: partial decryption"):
        Partial.decode(message.astype(np.int64), 2, what="k: partial decryption")


def test_an_element_of_wrong_order_is_named_wherever_it_stands() -> None:
    bad = GT.encode(miller_product(G1.generator[None], G2.generator[None]))
    message = partial_for().encode()
    for place in range(12):
        changed = message.copy()
        changed[place * GT.size : (place + 1) * GT.size] = bad
        with pytest.raises(PeerError, match=f"k: partial decryption: entry {place} is no element of GT"):
            Partial.decode(changed, 2, what="k: partial decryption")
    ciphertexts = GT.encode(target_key().encrypt([1], RANDOM))
    for bad_message in (ciphertexts[:, :3], ciphertexts[:0], np.concatenate([ciphertexts, ciphertexts])):
        with pytest.raises(PeerError, match="server: sums"):
            decrypt.read_ciphertexts(bad_message, 1, what="server: sums")
    ciphertexts[0, 1] = bad
    with pytest.raises(PeerError, match="server: sums: entry 1"):
        decrypt.read_ciphertexts(ciphertexts, 1, what="server: sums")


def test_secrets_are_not_in_representations() -> None:
    k, _ = parties()
    assert str(k.secret.exponent) not in repr(k.secret)


def test_sums_of_the_wrong_pair_do_not_open() -> None:
    first, second = columns(7, 1, 4, 9), columns(8, 1, 4, 9)
    sums = server_sums(first, second)
    sums[:, [1, 2]] = sums[:, [2, 1]]
    assert not is_power(released(sums, [0], [0]), exact(first, second))
