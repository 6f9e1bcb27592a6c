"""What P_k of the mode `linear` takes logarithms of: P_l knows its own draw and sees how long they take."""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smpc.bgn
from mechanisms.discrete_laplace import DiscreteLaplace
from smpc import Cast
from smpc.bgn import linear_mode
from smpc.bgn.curve import G1, Elements
from smpc.bgn.dlog import OVERFLOW, DiscreteLog, OutOfWindow
from smpc.bgn.entries import BoundedNoise, Entries
from smpc.bgn.keys import SecretKey
from smpc.bgn.linear_mode import LinearMode
from smpc.bgn.mode import Part
from smpc.bgn.session import BgnSession
from smpc.products import ProductPlan
from smpc.ring import Integers
from smpc.values import Held
from tests.bgn.support import RANDOM, exact

CAST = Cast(("ann", "bob"), dealer=None)
X, Y = np.array([[3, -5, 16], [1, 0, 2]]), np.array([[7, 2, -1]])  # ann's columns, bob's
SUMS = exact(X, Y)
BOUND, TAIL = 3 * 16 * 16, 1000  # of the sums; of each party's draw


class Mailbox:
    """A network between two participants of one process, who take turns."""

    def __init__(self, me: str, messages: dict[tuple[str, str], deque[Any]]) -> None:
        self.me, self.round, self.rows = me, 0, (0, 0)
        self._messages = messages

    def send(self, peer: str, label: str, array: Any, **_: Any) -> None:
        self._messages[peer, label].append(array)

    def receive(self, peer: str, label: str, dtype: Any, shape: Any, **_: Any) -> Any:
        return self._messages[self.me, label].popleft()


class Searched(DiscreteLog):
    """A logarithm that takes note of what it is asked for."""

    asked: list[tuple[int, Elements]]

    def all_of(self, elements: Elements, *, to_the_end: bool) -> Integers:
        self.asked.append((self.bound, elements))
        return super().all_of(elements, to_the_end=to_the_end)


def opened(draws: dict[str, list[int]] | None, monkeypatch: pytest.MonkeyPatch) -> tuple[Integers, int, Elements]:
    """What ann, the first of the pair, opens; the window and the elements that she searched."""
    messages: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
    modes = {}
    for name in CAST.parties:
        network: Any = Mailbox(name, messages)
        modes[name] = LinearMode(Part(network, CAST, bytes(32), RANDOM))
        modes[name]._secret = SecretKey.make(G1, RANDOM)
    for name, other in (("ann", "bob"), ("bob", "ann")):
        modes[name]._public = {other: modes[other]._secret.public}
    plan = ProductPlan.gram(3, {"ann": 2, "bob": 1})
    modes["ann"].multiply(plan, X, 16)
    sums = modes["bob"].multiply(plan, Y, 16)
    arrays = {name: np.array((draws or {}).get(name, [0, 0])) for name in CAST.parties}
    masks = {name: np.ones(2, np.bool_) for name in CAST.parties}
    noise = None if draws is None else BoundedNoise(2, {}, masks, 2 * TAIL)
    monkeypatch.setattr(Searched, "asked", [], raising=False)
    monkeypatch.setattr(linear_mode, "DiscreteLog", Searched)
    values = {}
    for name, kept in (("bob", sums), ("ann", {})):
        entries = Entries.of_pair(CAST.parties, ("ann", "bob"), (2, 1), kept, BOUND).flat()
        entries = entries if noise is None else entries.with_noise(noise)
        values[name] = modes[name].open(entries, None if draws is None else arrays[name], "server", bytes(40))
    ((bound, elements),) = Searched.asked
    return values["ann"], bound, elements


def test_every_searched_sum_carries_both_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = {"ann": [41, -977], "bob": [-13, 600]}
    values, _, elements = opened(draws, monkeypatch)
    noisy = [sum(terms) for terms in zip(SUMS, draws["ann"], draws["bob"], strict=True)]
    assert values.tolist() == noisy
    assert G1.equal(elements, G1.power(G1.generator, noisy))
    without_anns = [m + draw for m, draw in zip(SUMS, draws["bob"], strict=True)]
    for known in (SUMS, without_anns):
        for element, value in zip(elements, known, strict=True):
            assert not G1.equal(element[None], G1.power(G1.generator, [value]))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_window_has_room_for_both_tails_and_ends_there(sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    far = [sign * (BOUND + 2 * TAIL) - m for m in SUMS]  # as if the sums were at their bound, both draws at their tails
    draws = {"ann": [value // 2 for value in far], "bob": [value - value // 2 for value in far]}
    values, bound, _ = opened(draws, monkeypatch)
    assert values.tolist() == [sign * bound] * 2 and bound == BOUND + 2 * TAIL
    draws["ann"][1] += sign
    with pytest.raises(OutOfWindow):
        opened(draws, monkeypatch)


def test_a_draw_that_brings_a_sum_back_into_the_window_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome depends on the opened value alone, not on the part of it that P_l could compute."""
    values, bound, _ = opened({"ann": [-9000, 0], "bob": [9000, 0]}, monkeypatch)
    assert values.tolist() == SUMS and bound < 9000


def test_without_noise_the_values_open(monkeypatch: pytest.MonkeyPatch) -> None:
    values, bound, _ = opened(None, monkeypatch)
    assert values.tolist() == SUMS and bound == BOUND


def test_the_tail_of_a_pairs_values_counts_the_draws_of_both() -> None:
    session = BgnSession.__new__(BgnSession)
    session._noises = session._tail = 0
    mechanism, everywhere = DiscreteLaplace(Fraction(9)), np.ones(4, np.bool_)
    drawn: Any = BoundedNoise(4, {name: Held(name) for name in CAST.parties})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BgnSession.__mro__[1], "draw_noise", lambda *_: drawn)
        noise = session.draw_noise(mechanism, dict.fromkeys(CAST.parties, everywhere))
    assert noise.tail == 2 * mechanism.tail(OVERFLOW / 2 / 8)


def test_no_mode_adds_anything_to_a_logarithm() -> None:
    """A draw added behind the search would protect the value and not the time: each search's result is final.

    Without noise, every search goes on to the end of its window.
    """
    searches = 0
    for path in Path(smpc.bgn.__file__).parent.glob("*_mode.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Call) and ast.unparse(child.func).endswith(".all_of"):
                    assert isinstance(node, ast.Assign | ast.Return), f"{path.name}:{child.lineno}"
                    assert ast.unparse(child.func).startswith("DiscreteLog(")
                    assert [ast.unparse(word) for word in child.keywords] == ["to_the_end=entries.noise is None"]
                    searches += 1
    assert searches == 3  # pair, threshold, linear
