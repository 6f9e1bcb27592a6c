"""Writes bgn.json: known answers for smpc.bgn, computed by the independent implementation wherever it can.

    python -m tests.vectors.make_bgn

Only the encoding of GT is the library's own (the basis of the field is a choice): those bytes are kept as they are, so
that a change of the library's basis is noticed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from py_ecc.optimized_bls12_381 import multiply

from smpc.bgn.curve import G1, G2, GT, Elements, miller_product
from smpc.bgn.mcl import ORDER
from smpc.bgn.multiply import InnerProducts
from tests.bgn.reference import IN_G1, IN_G2, encrypt, prove_key
from tests.bgn.support import SESSION

PATH = Path(__file__).with_name("bgn.json")
X, Y = 2**254 + 12345, ORDER - 987654321
COLUMNS = {"G1": ([3, -2, 0, 2**31 - 1], [2**200 + 1, 17, 1, ORDER - 1]), "G2": ([4, 5, -9, 1], [7, 2**250, 99, 2])}
SUM = 12 - 10 + 2**31 - 1


def main() -> None:
    groups = {"G1": (IN_G1, X), "G2": (IN_G2, Y)}
    vectors: dict[str, Any] = {"session": SESSION.hex(), "encryption": [], "keys": [], "malformed": []}
    encoded: dict[str, list[list[bytes]]] = {}
    for name, (codec, secret) in groups.items():
        key = multiply(codec.generator, secret)
        pairs = [encrypt(codec.generator, key, m, r) for m, r in zip(*COLUMNS[name], strict=True)]
        encoded[name] = [[codec.encode(point) for point in pair] for pair in pairs]
        vectors["encryption"] += [
            {"group": name, "secret": hex(secret), "value": m, "r": hex(r), "S": s.hex(), "T": t.hex()}
            for m, r, (s, t) in zip(*COLUMNS[name], encoded[name], strict=True)
        ]
        published = prove_key(codec, name, secret, 424242, SESSION, "ann")
        changed = published[:-1] + bytes([published[-1] ^ 1])
        negated = bytes([published[0] ^ 0x20]) + published[1:]
        neutral = bytes([0xC0]) + bytes(len(published) - 65)
        vectors["keys"] += [
            {"group": name, "party": "ann", "message": published.hex(), "valid": True, "why": "as published"},
            {"group": name, "party": "bob", "message": published.hex(), "valid": False, "why": "another's proof"},
            {"group": name, "party": "ann", "message": changed.hex(), "valid": False, "why": "response changed"},
            {"group": name, "party": "ann", "message": negated.hex(), "valid": False, "why": "point negated"},
            {
                "group": name,
                "party": "ann",
                "message": (neutral + published[-64:]).hex(),
                "valid": False,
                "why": "neutral",
            },
            {"group": name, "party": "ann", "message": published[:-1].hex(), "valid": False, "why": "truncated"},
        ]
        good = encoded[name][0][0]
        vectors["malformed"] += [
            {"group": name, "bytes": (bytes([good[0] & 0x7F]) + good[1:]).hex(), "why": "no compression mark"},
            {"group": name, "bytes": (bytes([0x9F]) + b"\xff" * (len(good) - 1)).hex(), "why": "not reduced"},
            {"group": name, "bytes": (neutral[:-1] + b"\1").hex(), "why": "neutral, and something"},
            {"group": name, "bytes": _small(name, on_curve=False).hex(), "why": "off the curve"},
            {"group": name, "bytes": _small(name, on_curve=True).hex(), "why": "on the curve, wrong order"},
        ]
    sums = InnerProducts(1, 1)
    sums.add(*(_ours(encoded[name], name) for name in groups))
    product = GT.encode(sums.result())
    vectors["sums"] = {"x": hex(X), "y": hex(Y), "value": SUM, "ciphertext": product.tobytes().hex()}
    miller = miller_product(G1.generator[None], G2.generator[None])
    vectors["malformed"] += [
        {"group": "GT", "bytes": bytes(576).hex(), "why": "zero"},
        {"group": "GT", "bytes": GT.encode(miller).tobytes().hex(), "why": "wrong order"},
    ]
    PATH.write_text(json.dumps(vectors, indent=1) + "\n")


def _ours(pairs: list[list[bytes]], name: str) -> Elements:
    group = {"G1": G1, "G2": G2}[name]
    data = np.frombuffer(b"".join(pair[part] for part in (0, 1) for pair in pairs), np.uint8)
    return group.decode(data.reshape(1, 2, len(pairs), group.size), what=name)


def _small(name: str, *, on_curve: bool) -> bytes:
    """The first small coordinate with, or without, a point over it; none of these points has the right order."""
    codec = {"G1": IN_G1, "G2": IN_G2}[name]
    size = {"G1": 48, "G2": 96}[name]
    for x in range(1, 100):
        data = bytes([0x80]) + x.to_bytes(size - 1, "big")
        try:
            codec.decode(data)
        except ValueError:
            if not on_curve:
                return data
        else:
            if on_curve:
                return data
    raise AssertionError("no such coordinate below 100")


if __name__ == "__main__":
    main()
