"""Published keys and their proofs at the edges: the neutral key, other encodings of a proof, other statements."""

from __future__ import annotations

import numpy as np
import pytest

from smpc.bgn.curve import G1, G2, GT, Group
from smpc.bgn.keys import SecretKey, read_key
from smpc.bgn.mcl import ORDER
from smpc.bgn.proofs import Context, Powers, prove, verify
from smpc.errors import PeerError
from tests.bgn.support import RANDOM, SESSION

CONTEXT = Context(SESSION, "ann", "test")


@pytest.mark.parametrize("group", [G1, G2], ids=str)
def test_the_neutral_key_is_refused_although_its_proof_is_right(group: Group) -> None:
    neutral = SecretKey(group, group.identity(), 0).publish(SESSION, "eve", RANDOM)
    with pytest.raises(PeerError, match=r"eve: its key of .* is the neutral element"):
        read_key(group, neutral, SESSION, "eve")


def statement(secret: int) -> list[Powers]:
    """One secret in all three groups."""
    bases = [group.power(group.generator, [2, 3]) for group in (G1, G2, GT)]
    return [Powers(g, base, g.power(base, secret)) for g, base in zip((G1, G2, GT), bases, strict=True)]


def test_a_proof_holds_for_its_statement_and_context_only() -> None:
    proof = prove(77, statement(77), CONTEXT, RANDOM)
    assert verify(proof, statement(77), CONTEXT)
    mixed = [*statement(77)[:2], statement(78)[2]]
    for other in (statement(78), mixed, statement(77)[:2], statement(77)[::-1], [*statement(77), statement(77)[0]]):
        assert not verify(proof, other, CONTEXT)
    for context in (
        Context(SESSION[::-1], "ann", "test"),
        Context(SESSION, "bob", "test"),
        Context(SESSION, "ann", "tes"),
        Context(SESSION + b"a", "nn", "test"),
    ):
        assert not verify(proof, statement(77), context)
    assert not verify(prove(78, statement(77), CONTEXT, RANDOM), statement(77), CONTEXT)


def test_a_proof_has_one_encoding() -> None:
    """A half that is a whole order too large stands for the same number: it is no proof."""
    proof = prove(5, statement(5), CONTEXT, RANDOM).tobytes()
    halves = [int.from_bytes(proof[i : i + 32], "big") for i in (0, 32)]
    for place in (0, 1):
        larger = list(halves)
        larger[place] += ORDER
        data = np.frombuffer(b"".join(half.to_bytes(32, "big") for half in larger), np.uint8)
        assert not verify(data, statement(5), CONTEXT)


def test_two_proofs_of_one_statement_share_nothing() -> None:
    first, second = (prove(5, statement(5), CONTEXT, RANDOM) for _ in range(2))
    assert first[:32].tobytes() != second[:32].tobytes()
    assert first[32:].tobytes() != second[32:].tobytes()


def test_contexts_are_encoded_one_to_one() -> None:
    cases = [Context(s, p, q) for s in (b"", b"a", b"ab") for p in ("", "b", "bc") for q in ("", "c", "cd")]
    assert len({case.to_bytes() for case in cases}) == len(cases)
