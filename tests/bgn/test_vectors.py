"""Known answers, made by the independent implementation (tests/vectors/make_bgn.py)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from smpc.bgn.curve import G1, G2, GT, Group
from smpc.bgn.keys import read_key
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scheme import Encryptor, decrypt
from smpc.errors import PeerError
from tests.bgn.support import Words, is_power
from tests.vectors.make_bgn import PATH

VECTORS = json.loads(PATH.read_text())
GROUPS: dict[str, Group] = {"G1": G1, "G2": G2, "GT": GT}


def raw(text: str) -> Any:
    return np.frombuffer(bytes.fromhex(text), np.uint8)


def encrypted(name: str) -> Any:
    group, cases = GROUPS[name], [case for case in VECTORS["encryption"] if case["group"] == name]
    encryptor = Encryptor(group, group.power(group.generator, int(cases[0]["secret"], 16)))
    values = np.array([[case["value"] for case in cases]])
    return encryptor.encrypt(values, Words([int(case["r"], 16) for case in cases])), cases


@pytest.mark.parametrize("name", ["G1", "G2"])
def test_ciphertexts(name: str) -> None:
    ciphertexts, cases = encrypted(name)
    data = GROUPS[name].encode(ciphertexts)[0]
    assert len(cases) == 4
    assert [(s.tobytes().hex(), t.tobytes().hex()) for s, t in zip(*data, strict=True)] == [
        (case["S"], case["T"]) for case in cases
    ]


def test_sums() -> None:
    case = VECTORS["sums"]
    sums = InnerProducts(1, 1)
    sums.add(encrypted("G1")[0], encrypted("G2")[0])
    assert GT.encode(sums.result()).tobytes().hex() == case["ciphertext"]
    assert is_power(decrypt(sums.result(), int(case["x"], 16), int(case["y"], 16)), [case["value"]])


@pytest.mark.parametrize("case", VECTORS["keys"], ids=lambda case: f"{case['group']} {case['why']}")
def test_keys(case: dict[str, Any]) -> None:
    group, session = GROUPS[case["group"]], bytes.fromhex(VECTORS["session"])
    if case["valid"]:
        point = read_key(group, raw(case["message"]), session, case["party"])
        assert group.encode(point).tobytes().hex() == case["message"][: 2 * group.size]
        with pytest.raises(PeerError, match=r"ann: its key of .* rogue key"):
            read_key(group, raw(case["message"]), session[::-1], case["party"])
    else:
        with pytest.raises(PeerError, match=f"{case['party']}: its key of {group}"):
            read_key(group, raw(case["message"]), session, case["party"])


@pytest.mark.parametrize("case", VECTORS["malformed"], ids=lambda case: f"{case['group']} {case['why']}")
def test_malformed_elements(case: dict[str, Any]) -> None:
    with pytest.raises(PeerError, match=r"ann: .*no element of"):
        GROUPS[case["group"]].decode(raw(case["bytes"]), what="ann: columns")
