"""Yuan and Yu (2014) read literally: each pair holds two halves of one master key. Then any pair reads everybody.

With a key of each party's own (ours), what two parties hold together opens nothing of a third.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smpc.bgn.curve import G1
from smpc.bgn.dlog import DiscreteLog
from smpc.bgn.mcl import ORDER
from smpc.bgn.scalars import random_exponents
from smpc.bgn.scheme import Encryptor, decrypt_level1
from tests.bgn.support import RANDOM

COLUMN = np.array([[3, -1, 4, 1, -5]])


@pytest.fixture(scope="module")
def logarithm(tmp_path_factory: pytest.TempPathFactory) -> DiscreteLog:
    folder: Path = tmp_path_factory.mktemp("tables")
    return DiscreteLog(G1, 1000, folder)


def test_a_pair_with_two_halves_of_the_master_key_reads_a_third_party(logarithm: DiscreteLog) -> None:
    master, half = random_exponents(RANDOM, 2)
    ann, bob = half, (master - half) % ORDER  # the halves of this pair; every other pair has two of its own
    cid = Encryptor(G1, G1.power(G1.generator, master)).encrypt(COLUMN, RANDOM)
    assert logarithm(decrypt_level1(G1, cid, ann + bob)[0]) == COLUMN[0].tolist()


def test_two_parties_with_keys_of_their_own_read_nothing_of_a_third(logarithm: DiscreteLog) -> None:
    ann, bob, own = random_exponents(RANDOM, 3)
    cid = Encryptor(G1, G1.power(G1.generator, own)).encrypt(COLUMN, RANDOM)
    assert logarithm(decrypt_level1(G1, cid, own)[0]) == COLUMN[0].tolist()
    for secret in (ann, bob, ann + bob, ann - bob, ann * bob):
        assert logarithm(decrypt_level1(G1, cid, secret)[0]) == [None] * 5
