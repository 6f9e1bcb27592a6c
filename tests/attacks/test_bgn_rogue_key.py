"""A key made of others' keys: its maker knows no secret of it, but it cancels theirs. Proofs of knowledge refuse it."""

from __future__ import annotations

import numpy as np
import pytest

from smpc.bgn.curve import G1, G2, Elements
from smpc.bgn.keys import SecretKey, read_key
from smpc.bgn.scalars import random_exponents
from smpc.bgn.scheme import Encryptor, decrypt_level1
from smpc.bgn.threshold_keys import Dealing, ThresholdKeys, read_commitments
from smpc.errors import PeerError
from tests.bgn.support import RANDOM, SESSION


def cancelling(own: tuple[Elements, ...], others: list[tuple[Elements, ...]]) -> tuple[Elements, ...]:
    """Commitments with which the joint keys become `own`: own minus the others'."""
    return tuple(
        group.op(own[i], group.inverse(group.sums(np.stack([points[i] for points in others], axis=1))))
        for i, group in enumerate((G1, G2))
    )


def test_without_proofs_the_last_party_owns_the_joint_key() -> None:
    honest = [Dealing.make(2, 3, RANDOM).commitments for _ in range(2)]
    rogue = Dealing.make(2, 3, RANDOM)
    keys = ThresholdKeys.of([*honest, cancelling(rogue.commitments, honest)])
    column = np.array([[1, 2, 3]])
    ciphertexts = Encryptor(G1, keys.joint[0]).encrypt(column, RANDOM)
    alone = decrypt_level1(G1, ciphertexts, rogue.polynomials[0][0])
    assert G1.equal(alone[0], G1.power(G1.generator, [1, 2, 3]))


def test_the_cancelling_key_is_refused_whatever_proof_it_carries() -> None:
    honest = [Dealing.make(2, 3, RANDOM) for _ in range(2)]
    rogue = Dealing.make(2, 3, RANDOM)
    message = rogue.publish(SESSION, "eve", RANDOM)
    read_commitments(message, 2, SESSION, "eve")
    forged = cancelling(rogue.commitments, [dealing.commitments for dealing in honest])
    message = message.copy()
    message[: 2 * G1.size] = G1.encode(forged[0]).reshape(-1)
    with pytest.raises(PeerError, match="eve: its key of G1 comes without proof"):
        read_commitments(message, 2, SESSION, "eve")


@pytest.mark.parametrize("group", [G1, G2], ids=str)
def test_anothers_key_or_a_shift_of_it_is_refused(group) -> None:  # type: ignore[no-untyped-def]
    ann = SecretKey.make(group, RANDOM)
    published = ann.publish(SESSION, "ann", RANDOM)
    with pytest.raises(PeerError, match=r"eve: .*rogue key"):
        read_key(group, published, SESSION, "eve")
    (shift,) = random_exponents(RANDOM, 1)
    point = group.op(group.inverse(ann.public), group.power(group.generator, shift))
    with pytest.raises(PeerError, match=r"eve: .*rogue key"):
        read_key(group, np.concatenate([group.encode(point), published[-64:]]), SESSION, "eve")
