"""Commitments: who commits to what, hiding and binding."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from petlib.bn import Bn
from petlib.ec import EcGroup

from smpc import commitments
from smpc.commitments import POINT_BYTES, commit, opens

SESSION = bytes(range(40))
ORDER = int(str(commitments._generators()[0].order()))


def opening_of(value: bytes, blinding: int) -> bytes:
    return value + blinding.to_bytes(32, "big")


values = st.binary(min_size=32, max_size=32)
scalars = st.integers(0, ORDER - 1)


@given(values, scalars)
@settings(max_examples=30)
def test_a_commitment_opens_for_its_value_party_and_session_only(value: bytes, blinding: int) -> None:
    made = commit(value, blinding, session=SESSION, party="p0")
    opening = opening_of(value, blinding)
    assert len(made) == POINT_BYTES and opens(made, opening, session=SESSION, party="p0")
    assert not opens(made, opening, session=SESSION, party="p1")
    assert not opens(made, opening, session=SESSION + b"x", party="p0")
    for place in (0, 31, 32, 63):
        changed = bytearray(opening)
        changed[place] ^= 1
        assert not opens(made, bytes(changed), session=SESSION, party="p0")
    assert not opens(made, opening[:-1], session=SESSION, party="p0")
    assert not opens(made, b"", session=SESSION, party="p0")


def test_names_are_encoded_injectively() -> None:
    value = bytes(32)
    assert commit(value, 1, session=b"ab", party="c") != commit(value, 1, session=b"a", party="bc")


def test_perfectly_hiding_whoever_knew_the_generators_relation_could_open_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With H = t G and t known every commitment opens to every value: so it says nothing about the one inside."""
    group = EcGroup(415)
    trapdoor = 123456789
    monkeypatch.setattr(commitments, "_generators", lambda: (group, Bn.from_num(trapdoor) * group.generator()))

    def message(value: bytes) -> int:
        return int.from_bytes(commitments.digest(b"commitment", SESSION, b"p0", value), "big") % ORDER

    made = commit(b"a" * 32, 77, session=SESSION, party="p0")
    other = b"b" * 32
    blinding = (77 + (message(b"a" * 32) - message(other)) * pow(trapdoor, -1, ORDER)) % ORDER
    assert opens(made, opening_of(other, blinding), session=SESSION, party="p0")


def test_the_second_generator_is_a_fixed_point_of_unknown_logarithm() -> None:
    group, second = commitments._generators()
    assert group.check_point(second) and not second.is_infinite() and second != group.generator()
    assert second.export().hex() == commitments._generators()[1].export().hex()
