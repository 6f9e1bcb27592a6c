"""Joint keys of 2, 3 and 5 parties: t open, t - 1 do not, whoever cheats is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from smpc.bgn import threshold
from smpc.bgn.curve import G1, G2, GT, Elements
from smpc.bgn.multiply import InnerProducts
from smpc.bgn.scheme import Encryptor, TargetKey
from smpc.bgn.threshold import first_round, second_round
from smpc.bgn.threshold_keys import Dealing, KeyShare, ThresholdKeys, read_commitments
from smpc.errors import InputError, PeerError
from tests.bgn.support import RANDOM, SESSION, columns, exact, is_power


@dataclass(frozen=True)
class Joint:
    keys: ThresholdKeys
    shares: dict[str, KeyShare]


@cache
def joint(parties: int, needed: int) -> Joint:
    names = [f"p{i + 1}" for i in range(parties)]
    dealings = {name: Dealing.make(needed, parties, RANDOM) for name in names}
    commitments = {
        name: read_commitments(dealing.publish(SESSION, name, RANDOM), needed, SESSION, name)
        for name, dealing in dealings.items()
    }
    shares = {
        name: KeyShare.collect(i + 1, {dealer: dealings[dealer].share(i + 1) for dealer in names}, commitments)
        for i, name in enumerate(names)
    }
    return Joint(ThresholdKeys.of(list(commitments.values())), shares)


def opened(of: Joint, ciphertexts: Elements, quorum: Sequence[str]) -> Elements:
    first = first_round(ciphertexts, of.keys, SESSION)
    answers = {}
    for name in quorum:
        images, proof = first.answer(of.shares[name], name, RANDOM)
        first.check(images, proof, of.shares[name].index, name)
        answers[of.shares[name].index] = images
    second, u = second_round(ciphertexts, answers, of.keys, SESSION)
    answers = {}
    for name in quorum:
        images, proof = second.answer(of.shares[name], name, RANDOM)
        second.check(images, proof, of.shares[name].index, name)
        answers[of.shares[name].index] = images
    return threshold.finish(ciphertexts, u, answers, of.keys)


@pytest.mark.parametrize(("parties", "needed"), [(2, 2), (3, 2), (3, 3), (5, 3), (5, 5)])
def test_any_quorum_opens_the_exact_sums(parties: int, needed: int) -> None:
    of = joint(parties, needed)
    first, second = columns(parties, 2, 5, 2**20), columns(needed, 1, 5, 2**20)
    sums = InnerProducts(2, 1)
    sums.add(
        Encryptor(G1, of.keys.joint[0]).encrypt(first, RANDOM), Encryptor(G2, of.keys.joint[1]).encrypt(second, RANDOM)
    )
    ciphertexts, key = sums.result(), TargetKey(*of.keys.joint)
    for noise in range(parties):  # every party makes it fresh, with noise of its own
        ciphertexts = key.add(ciphertexts, [noise, -noise], RANDOM)
    total = sum(range(parties))
    expected = [exact(first, second)[0] + total, exact(first, second)[1] - total]
    for quorum in list(combinations(of.shares, needed))[:4]:
        assert is_power(opened(of, ciphertexts, quorum), expected)


def test_fewer_than_the_threshold_are_refused_and_open_nothing() -> None:
    of = joint(5, 3)
    ciphertexts = TargetKey(*of.keys.joint).encrypt([1], RANDOM)
    with pytest.raises(InputError, match="2 partial decryptions: needs those of exactly 3"):
        opened(of, ciphertexts, ["p1", "p2"])
    weaker = Joint(replace(of.keys, threshold=2), of.shares)
    assert not is_power(opened(weaker, ciphertexts, ["p1", "p2"]), [1])


@pytest.mark.parametrize("number", [1, 2])
def test_a_wrong_answer_is_named_in_each_round(number: int) -> None:
    of = joint(3, 2)
    ciphertexts = TargetKey(*of.keys.joint).encrypt([1, 2], RANDOM)
    round_ = first_round(ciphertexts, of.keys, SESSION)
    if number == 2:
        answers = {of.shares[name].index: round_.answer(of.shares[name], name, RANDOM)[0] for name in ("p1", "p3")}
        round_, _ = second_round(ciphertexts, answers, of.keys, SESSION)
    images, proof = round_.answer(of.shares["p3"], "p3", RANDOM)
    round_.check(images, proof, 3, "p3")
    wrong = GT.op(images, GT.generator)
    other = replace(round_, session=SESSION[::-1])
    for case in (
        lambda: round_.check(wrong, proof, 3, "p3"),
        lambda: round_.check(images[::-1], proof, 3, "p3"),
        lambda: round_.check(images[:1], proof, 3, "p3"),
        lambda: round_.check(images, proof, 2, "p3"),
        lambda: round_.check(*round_.answer(of.shares["p2"], "p2", RANDOM), 3, "p3"),
        lambda: round_.check(images, proof[:-1], 3, "p3"),
        lambda: other.check(images, proof, 3, "p3"),
    ):
        with pytest.raises(PeerError, match="p3: its partial decryption is not by its key share"):
            case()


def test_an_honest_answer_to_other_sums_does_not_accuse_the_party_alone() -> None:
    """The last party has sent it other final sums than the one that checks."""
    of = joint(2, 2)
    key = TargetKey(*of.keys.joint)
    here, there = (first_round(key.encrypt([1], RANDOM), of.keys, SESSION) for _ in range(2))
    images, proof = there.answer(of.shares["p1"], "p1", RANDOM)
    with pytest.raises(PeerError, match=r"p1: .*or whoever sent it the sums, if they are not the same everywhere"):
        here.check(images, proof, 1, "p1")


def test_an_answer_of_one_round_is_none_of_the_other() -> None:
    of = joint(2, 2)
    round_ = first_round(TargetKey(*of.keys.joint).encrypt([1], RANDOM), of.keys, SESSION)
    images, proof = round_.answer(of.shares["p1"], "p1", RANDOM)
    with pytest.raises(PeerError, match="p1"):
        replace(round_, number=2).check(images, proof, 1, "p1")


@pytest.mark.parametrize(("needed", "parties"), [(1, 3), (4, 3), (0, 2), (2, 1)])
def test_thresholds_out_of_range_are_refused(needed: int, parties: int) -> None:
    with pytest.raises(InputError, match=f"threshold = {needed}"):
        Dealing.make(needed, parties, RANDOM)


def test_a_dealer_of_wrong_shares_is_named() -> None:
    dealings = {name: Dealing.make(2, 2, RANDOM) for name in ("p1", "p2")}
    commitments = {name: dealing.commitments for name, dealing in dealings.items()}
    good = {name: dealing.share(1) for name, dealing in dealings.items()}
    KeyShare.collect(1, good, commitments)
    changed = good["p2"].copy()
    changed[63] ^= 1
    for bad in (changed, dealings["p2"].share(2), good["p2"][:-1], np.full(64, 255, np.uint8)):
        with pytest.raises(PeerError, match="p2: its key share"):
            KeyShare.collect(1, {**good, "p2": bad}, commitments)


def test_key_material_of_another_length_session_or_party_is_refused() -> None:
    message = Dealing.make(2, 2, RANDOM).publish(SESSION, "p1", RANDOM)
    read_commitments(message, 2, SESSION, "p1")
    for bad, session, party in (
        (message[:-1], SESSION, "p1"),
        (message, SESSION[::-1], "p1"),
        (message, SESSION, "p2"),
        (np.zeros_like(message), SESSION, "p1"),
    ):
        with pytest.raises(PeerError, match=f"{party}: its key"):
            read_commitments(bad, 2, session, party)


def test_parties_that_received_other_commitments_notice() -> None:
    dealings = [Dealing.make(2, 3, RANDOM).commitments for _ in range(4)]
    agreed = ThresholdKeys.of(dealings[:3]).agreement()
    assert agreed == ThresholdKeys.of(dealings[:3]).agreement()
    assert agreed != ThresholdKeys.of([*dealings[:2], dealings[3]]).agreement()


def test_secrets_are_not_in_representations() -> None:
    of, dealing = joint(2, 2), Dealing.make(2, 2, RANDOM)
    assert str(of.shares["p1"].exponents[0]) not in repr(of.shares["p1"])
    assert str(dealing.polynomials[0][0]) not in repr(dealing)
