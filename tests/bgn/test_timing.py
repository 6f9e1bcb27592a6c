"""Which group operations are done does not depend on a draw or a plaintext: those who wait for a message see its time.

Counted are operations, not seconds. A neutral operand or two equal ones take another time than others, and so does a
power whose exponent is not of full size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smpc.bgn import dlog, linear
from smpc.bgn.curve import G1, G2, GT, Elements, Group
from smpc.bgn.dlog import DiscreteLog
from smpc.bgn.linear import PlainProducts
from smpc.bgn.mcl import ORDER
from smpc.bgn.scheme import PLAINTEXT_BITS
from smpc.ring import Integers
from tests.bgn.support import RANDOM, fixed, parties, target_key

DRAWS = (0, 1, 5, -5, 2**20, -(2**40), 2**61)
LARGEST = 2**PLAINTEXT_BITS - 1


class Work:
    """Counts what the groups do while it is open; `exponents` are those of powers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._neutral = {group: group.identity() for group in (G1, G2, GT)}
        self.done: Counter[Any] = Counter()
        self.exponents: list[int] = []

    def of(self, f: Callable[[], object]) -> Counter[Any]:
        f()  # keys and tables are made when they are first needed
        self.done, self.exponents = Counter(), []
        op, sums, power = Group.op, Group.sums, Group.power

        def counted_op(group: Group, a: Elements, b: Elements) -> Elements:
            for one, other in zip(*(x.reshape(-1, group.words) for x in np.broadcast_arrays(a, b)), strict=True):
                self._add(group, one, other)
            return op(group, a, b)

        def counted_sums(group: Group, points: Elements) -> Elements:
            *_, count, words = points.shape
            for terms in points.reshape(-1, count, words) if count else ():
                total = terms[-1]
                for term in terms[-2::-1]:
                    self._add(group, total, term)
                    total = op(group, total, term)
            return sums(group, points)

        def counted_power(group: Group, a: Elements, exponents: int | Sequence[int]) -> Elements:
            if isinstance(exponents, int):
                small = min(exponents % ORDER, -exponents % ORDER) < 2**200
                self.done[group.name, "power", exponents if small else "full size"] += a.size // group.words
                self.exponents.append(exponents % ORDER)
            return power(group, a, exponents)

        with self._patch.context() as patch:
            patch.setattr(Group, "op", counted_op)
            patch.setattr(Group, "sums", counted_sums)
            patch.setattr(Group, "power", counted_power)
            f()
        return self.done

    def _add(self, group: Group, a: Elements, b: Elements) -> None:
        self.done[group.name, "operation"] += 1
        self.done[group.name, "neutral operand"] += sum(group.equal(x, self._neutral[group]) for x in (a, b))
        self.done[group.name, "equal operands"] += group.equal(a, b)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


def linear_noise(draws: list[int]) -> object:
    k, _ = parties()
    return linear.add_noise(G1.generator * np.ones((len(draws), 2, 1), np.uint64), k.secret.public, draws, RANDOM)


def target_noise(draws: list[int]) -> object:
    key = target_key()
    return key.add(GT.generator * np.ones((len(draws), 4, 1), np.uint64), draws, RANDOM)


@pytest.mark.parametrize("add_noise", [linear_noise, target_noise], ids=["linear", "pair, threshold"])
def test_a_draw_changes_no_power_nor_its_size(add_noise: Callable[[list[int]], object], work: Work) -> None:
    expected = work.of(lambda: add_noise([3]))
    for draw in DRAWS:
        assert work.of(lambda draw=draw: add_noise([draw])) == expected
        assert {kind[2] for kind in expected if kind[1] == "power"} == {"full size"}
        for one, other in combinations(set(work.exponents), 2):  # two that differ by a small draw would be alike
            assert min((one - other) % ORDER, (other - one) % ORDER) > 2**200


@pytest.mark.parametrize("side", [0, 1])
def test_a_plaintext_changes_no_addition_of_its_encryption(side: int, work: Work) -> None:
    encryptor = parties()[side].encryptor

    def encrypted(value: int) -> object:
        return encryptor.encrypt(np.full((1, 3), value), fixed("plaintexts"), 1)

    expected = work.of(lambda: encrypted(12345))
    group = (G1, G2)[side].name
    assert expected == {
        (group, "operation"): 3 * (35 + 31),
        (group, "neutral operand"): 0,
        (group, "equal operands"): 0,
    }
    for value in (0, 1, -1, 255, 256, -256, 2**16, -(2**24), LARGEST, -LARGEST):
        assert work.of(lambda value=value: encrypted(value)) == expected


BOUND = 1 << 10
COLUMNS: dict[str, Any] = {
    "zeros": np.zeros(12),
    "ones": np.ones(12),
    "largest": np.full(12, BOUND),
    "lowest": np.full(12, -BOUND),
    "one person": np.eye(1, 12, 5)[0] * BOUND,
    "small": np.arange(12) - 6,
    "any": np.random.default_rng(1).integers(-BOUND, BOUND + 1, 12),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_changes_no_addition_of_its_products(name: str, work: Work) -> None:
    k, _ = parties()
    blocks = [k.encryptor.encrypt(np.ones((1, 12), np.int64), fixed(name)) for name in ("first", "second")]

    def multiplied(column: Integers) -> None:
        products = PlainProducts(1, 1, BOUND, k.secret.public, RANDOM)
        for ciphertexts in blocks:
            products.add(ciphertexts, column[None].astype(np.int64), 1)
        products.result()

    expected = work.of(lambda: multiplied(np.arange(12)))
    assert expected["G1", "equal operands"] == 0
    assert work.of(lambda: multiplied(COLUMNS[name])) == expected


@pytest.mark.parametrize("group", [G1, GT], ids=str)
def test_a_search_to_the_end_is_as_long_for_every_value(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logarithm, bound, steps = DiscreteLog(group, 2**24, tmp_path), 2**24, []
    walk = dlog._walk

    def counted(*arguments: Any) -> Elements:
        steps.append(arguments[3])
        return walk(*arguments)

    monkeypatch.setattr(dlog, "_walk", counted)
    monkeypatch.setattr(dlog, "_CHUNK", 16)

    def search(value: int, to_the_end: bool) -> int:
        steps.clear()
        found = logarithm(group.power(group.generator, [value]), to_the_end=to_the_end)
        assert found == [value if abs(value) <= bound else None]
        return sum(steps)

    values = (0, 1, -1, 2**20, -(2**20), bound, -bound, bound + 1)
    assert len({search(value, True) for value in values}) == 1
    assert len({search(value, False) for value in values}) > 3
