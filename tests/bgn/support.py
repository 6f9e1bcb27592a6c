"""Shared by the tests of smpc.bgn: keys, exact products, the roles of the pair mode in one process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from mechanisms.randomness import SecureRandom, Stream
from smpc.bgn import decrypt
from smpc.bgn.curve import G1, G2, GT, Elements
from smpc.bgn.keys import SecretKey, read_key
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scheme import Encryptor, TargetKey
from smpc.ring import Integers

SESSION = bytes(range(32))
RANDOM = SecureRandom()


class Words:
    """Randomness that a test sets: these scalars first, then zeros."""

    def __init__(self, scalars: Sequence[int]) -> None:
        self._words = np.frombuffer(b"".join(s.to_bytes(32, "little") for s in scalars), np.uint64)

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        taken, self._words = self._words[:count], self._words[count:]
        return np.concatenate([taken, np.zeros(count - len(taken), np.uint64)])


def fixed(name: str) -> Stream:
    return Stream(name.encode().ljust(32, b"."))


class PartyK:
    """Holds x: encrypts in G1, decrypts partly."""

    def __init__(self) -> None:
        self.secret = SecretKey.make(G1, RANDOM)
        self.published = self.secret.publish(SESSION, "k", RANDOM)
        self.encryptor = Encryptor(G1, self.secret.public)


class PartyL:
    """Holds y: encrypts in G2, finishes."""

    def __init__(self) -> None:
        self.secret = SecretKey.make(G2, RANDOM)
        self.published = self.secret.publish(SESSION, "l", RANDOM)
        self.encryptor = Encryptor(G2, self.secret.public)


@cache
def parties() -> tuple[PartyK, PartyL]:
    """Their tables take half a second: once."""
    return PartyK(), PartyL()


def target_key() -> TargetKey:
    k, l = parties()
    return TargetKey(read_key(G1, k.published, SESSION, "k"), read_key(G2, l.published, SESSION, "l"))


def server_sums(first: Integers, second: Integers, *, block: int = 1000) -> Elements:
    """The server's level-2 ciphertexts, from what both parties upload in row blocks."""
    k, l = parties()
    sums = InnerProducts(len(first), len(second))
    for start in range(0, first.shape[1], block):
        uploads = (
            G1.encode(k.encryptor.encrypt(first[:, start : start + block], RANDOM)),
            G2.encode(l.encryptor.encrypt(second[:, start : start + block], RANDOM)),
        )
        sums.add(G1.decode(uploads[0], what="k: columns"), G2.decode(uploads[1], what="l: columns"))
    return sums.result()


def released(sums: Elements, noise_k: Sequence[int], noise_l: Sequence[int]) -> Elements:
    """The pair mode from the server's sums to g^(m + noise), every message through its bytes."""
    k, l = parties()
    key, count = target_key(), len(sums)
    at_l = decrypt.read_ciphertexts(GT.encode(sums), count, what="server: sums")
    to_k = GT.encode(key.add(at_l, noise_l, RANDOM))
    at_k = decrypt.read_ciphertexts(to_k, count, what="l: noisy sums")
    fresh = key.add(at_k, noise_k, RANDOM)
    message = decrypt.decrypt_partly(fresh, k.secret, SESSION, "k", RANDOM).encode()
    partial = decrypt.Partial.decode(message, count, what="k: partial decryption")
    return decrypt.finish(partial, key.x_key, l.secret, SESSION, "k")


def exact(first: Integers, second: Integers) -> list[int]:
    return [int(value) for value in (first @ second.T).reshape(-1)]


def columns(seed: int, count: int, rows: int, bound: int) -> Integers:
    rng = np.random.default_rng(seed)
    return rng.integers(-bound, bound + 1, (count, rows))


def is_power(elements: Elements, values: Sequence[int]) -> bool:
    """Whether the elements are g to these values: exact, and no logarithm needed."""
    return GT.equal(elements, GT.power(GT.generator, list(values)))
