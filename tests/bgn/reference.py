"""The same scheme once more, slow and plain, on py_ecc: what an independent implementation makes of our bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from py_ecc.bls.point_compression import compress_G1, compress_G2, decompress_G1, decompress_G2
from py_ecc.optimized_bls12_381 import FQ12, G1, G2, Z1, Z2, add, curve_order, multiply, pairing

Source = tuple[Any, Any]  # (S, T)
Target = tuple[Any, Any, Any, Any]  # (s, t, u, v)


def encrypt(generator: Any, key: Any, value: int, r: int) -> Source:
    return add(multiply(generator, value % curve_order), multiply(key, r)), multiply(generator, r)


def product(first: Source, second: Source) -> Target:
    (s, t), (s2, t2) = first, second
    return pairing(s2, s), pairing(t2, s), pairing(s2, t), pairing(t2, t)


def total(parts: list[Target]) -> Target:
    result = [FQ12.one()] * 4
    for part in parts:
        result = [a * b for a, b in zip(result, part, strict=True)]
    return result[0], result[1], result[2], result[3]


def decrypt(ciphertext: Target, x: int, y: int, reach: int) -> int | None:
    s, t, u, v = ciphertext
    element = s * v ** (x * y % curve_order) / (t**y * u**x)
    g, power = pairing(G2, G1), FQ12.one()
    for m in range(reach + 1):
        if power == element:
            return m
        if power * element == FQ12.one():
            return -m
        power = power * g
    return None


@dataclass(frozen=True)
class Codec:
    """Standard compressed bytes of one group."""

    generator: Any
    zero: Any

    def encode(self, point: Any) -> bytes:
        if self.generator is G1:
            return int(compress_G1(point)).to_bytes(48, "big")
        return b"".join(int(part).to_bytes(48, "big") for part in compress_G2(point))

    def decode(self, data: bytes) -> Any:
        if self.generator is G1:
            return decompress_G1(int.from_bytes(data, "big"))
        return decompress_G2((int.from_bytes(data[:48], "big"), int.from_bytes(data[48:], "big")))


IN_G1, IN_G2 = Codec(G1, Z1), Codec(G2, Z2)


def prove_key(codec: Codec, name: str, secret: int, nonce: int, session: bytes, party: str) -> bytes:
    """A published key with its Schnorr proof, as `smpc.bgn.keys` defines it."""
    base, image, commitment = (
        codec.encode(point)
        for point in (codec.generator, multiply(codec.generator, secret), multiply(codec.generator, nonce))
    )
    context = (b"sharewise BGN proof 1", session, party.encode(), f"key of {name}".encode())
    text = b"".join(len(part).to_bytes(8, "big") + part for part in context)
    text += name.encode() + (1).to_bytes(8, "big") + base + image + commitment
    challenge = int.from_bytes(hashlib.sha512(text).digest(), "big") % curve_order
    response = (nonce + challenge * secret) % curve_order
    return image + challenge.to_bytes(32, "big") + response.to_bytes(32, "big")
