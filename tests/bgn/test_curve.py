"""Groups and pairing against an independent implementation; every malformed element refused by name."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py_ecc.optimized_bls12_381 import multiply

from smpc.bgn import mcl as library_file
from smpc.bgn.curve import G1, G2, GT, Group, final_exponentiation, miller_product, pairing
from smpc.bgn.mcl import ORDER, CurveUnavailable, library
from smpc.errors import PeerError
from tests.bgn.reference import IN_G1, IN_G2

FIELD = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
SCALARS = st.integers(-(2**40), 2**40) | st.integers(0, ORDER - 1)
REFERENCE = {"G1": IN_G1, "G2": IN_G2}


def raw(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)


@pytest.mark.parametrize("group", [G1, G2], ids=str)
@pytest.mark.parametrize("scalar", [1, 2, 12345, ORDER - 1, 2**200 + 7])
def test_multiples_are_those_of_the_reference(group: Group, scalar: int) -> None:
    codec = REFERENCE[group.name]
    expected = codec.encode(multiply(codec.generator, scalar))
    assert group.encode(group.power(group.generator, scalar)).tobytes() == expected


@given(a=SCALARS, b=SCALARS)
@settings(max_examples=15)
def test_all_groups_are_cyclic_of_the_order_and_the_pairing_bilinear(a: int, b: int) -> None:
    for group in (G1, G2, GT):
        powers = group.op(group.power(group.generator, a), group.power(group.generator, b))
        assert group.equal(powers, group.power(group.generator, a + b))
        assert group.equal(group.inverse(group.power(group.generator, a)), group.power(group.generator, -a))
        assert group.equal(group.power(group.generator, ORDER), group.identity())
        assert not group.equal(powers, group.power(group.generator, a + b + 1))
    product = pairing(G1.power(G1.generator, a), G2.power(G2.generator, b))
    assert GT.equal(product, GT.power(GT.generator, a * b))


@given(pairs=st.lists(st.tuples(SCALARS, SCALARS), min_size=1, max_size=6))
@settings(max_examples=10)
def test_a_vector_of_pairings_is_their_product(pairs: list[tuple[int, int]]) -> None:
    a, b = (group.power(group.generator, list(s)) for group, s in zip((G1, G2), zip(*pairs, strict=True), strict=True))
    expected = GT.power(GT.generator, sum(x * y for x, y in pairs))
    assert GT.equal(final_exponentiation(miller_product(a, b)), expected)


@pytest.mark.parametrize("group", [G1, G2], ids=str)
def test_sums_with_repeats_opposites_and_the_neutral_element(group: Group) -> None:
    scalars = [[5, 5, 5], [3, -3, 0], [0, 0, 0], [1, 2, ORDER - 3]]
    points = np.stack([group.power(group.generator, row) for row in scalars])
    expected = group.power(group.generator, [sum(row) for row in scalars])
    assert group.equal(group.sums(points), expected)
    assert group.sums(points[:, :0]).shape == (4, group.words)
    assert group.equal(group.sums(points[:, :0]), group.identity(4))


@pytest.mark.parametrize("group", [G1, G2, GT], ids=str)
def test_encoding_round_trips_and_is_unique(group: Group) -> None:
    elements = group.power(group.generator, [0, 1, -1, 17]).reshape(2, 2, group.words)
    data = group.encode(elements)
    assert data.shape == (2, 2, group.size)
    assert np.array_equal(group.encode(group.decode(data, what="test")), data)
    other_coordinates = group.op(group.op(elements, elements), group.inverse(elements))
    assert np.array_equal(group.encode(other_coordinates), data)


def _bad_points() -> list[Any]:
    good = G1.encode(G1.generator).tobytes()
    x = int.from_bytes(bytes([good[0] & 0x1F]) + good[1:], "big")
    return [
        pytest.param(raw((0).to_bytes(48, "big")), id="no compression bit"),
        pytest.param(raw(bytes([0xC0]) + bytes(46) + b"\1"), id="neutral with a coordinate"),
        pytest.param(raw(bytes([0xE0]) + bytes(47)), id="neutral with a sign"),
        pytest.param(raw(((x + FIELD) | (4 << 381)).to_bytes(48, "big")), id="coordinate not reduced"),
    ]


@pytest.mark.parametrize("data", _bad_points())
def test_non_canonical_points_are_refused(data: Any) -> None:
    with pytest.raises(PeerError, match=r"bob: columns: .* is no element of G1"):
        G1.decode(data, what="bob: columns")


@pytest.mark.parametrize("group", [G1, G2], ids=str)
def test_points_off_the_curve_or_of_wrong_order_are_refused(group: Group) -> None:
    lib, off, wrong_order = library(), 0, 0
    for x in range(1, 40):
        data = bytearray(x.to_bytes(group.size, "big"))
        data[0] |= 0x80
        getattr(lib, f"mclBn_verifyOrder{group}")(0)
        try:
            on_curve = group._call("deserialize")(np.zeros(36, np.uint64).ctypes.data, bytes(data), group.size)
        finally:
            getattr(lib, f"mclBn_verifyOrder{group}")(1)
        off, wrong_order = off + (not on_curve), wrong_order + bool(on_curve)
        with pytest.raises(PeerError, match=f"entry 0 is no element of {group}"):
            group.decode(raw(bytes(data)), what="bob")
    assert off > 5 and wrong_order > 5


def _bad_target(kind: str) -> Any:
    """Elements of the field around GT: zero, -1 (order 2), a Miller value, one of order dividing p^6 + 1."""
    lib = library()
    lib.mclBnFp_neg.argtypes = [ctypes.c_void_p] * 2
    lib.mclBnGT_invGeneric.argtypes = [ctypes.c_void_p] * 2
    element = {"zero": np.zeros(GT.words, np.uint64), "minus one": GT.identity()}.get(kind)
    if element is None:
        element = miller_product(G1.generator[None], G2.generator[None])
    if kind == "minus one":
        lib.mclBnFp_neg(element.ctypes.data, element.ctypes.data)
    if kind == "unitary":
        conjugate, inverse = element.copy(), np.zeros(GT.words, np.uint64)
        for i in range(6, 12):
            lib.mclBnFp_neg(conjugate.ctypes.data + 48 * i, conjugate.ctypes.data + 48 * i)
        lib.mclBnGT_invGeneric(inverse.ctypes.data, element.ctypes.data)
        element = GT.op(conjugate, inverse)
    return GT.encode(element)


@pytest.mark.parametrize("kind", ["zero", "minus one", "miller value", "unitary"])
def test_target_elements_of_wrong_order_are_refused(kind: str) -> None:
    good = GT.encode(GT.generator)
    GT.decode(good, what="bob")
    with pytest.raises(PeerError, match="bob: sums: entry 1 is no element of GT"):
        GT.decode(np.stack([good, _bad_target(kind)]), what="bob: sums")


@pytest.mark.parametrize("group", [G1, G2, GT], ids=str)
def test_truncated_and_mistyped_encodings_are_refused(group: Group) -> None:
    data = group.encode(group.generator)
    for bad in (data[:-1], np.append(data, np.uint8(0)), data.astype(np.int64), data[:0], np.array(data[0])):
        with pytest.raises(PeerError, match="bob"):
            group.decode(bad, what="bob")


def test_a_library_that_errs_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    for constant, wrong in (
        ("GENERATORS", {**library_file.GENERATORS, "G2": library_file.GENERATORS["G1"] * 2}),
        ("_SIGNATURES", {**library_file._SIGNATURES, "mclBn_notThere": (None,)}),
        ("_BLS12_381", 77),
        ("scalar", lambda lib, value: library_file.__dict__["_kept"](lib, value + 1)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(library_file, "_kept", library_file.scalar, raising=False)
            patch.setattr(library_file, constant, wrong)
            with pytest.raises(CurveUnavailable, match=r"the pairing library .*: install pymcl") as error:
                library.__wrapped__()
            assert "\n" not in str(error.value)
    library.__wrapped__()  # whole again
