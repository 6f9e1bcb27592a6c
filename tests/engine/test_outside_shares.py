"""Shares dealt by outsiders: exact squares and first-of-equals on CrypTen's tensors, in real processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smpc.values import Held, value_of
from tests.conftest import Pools

pytestmark = pytest.mark.mpc


def dealt(s: Any, value: np.ndarray) -> Any:
    rng = np.random.default_rng(3)
    parts = [rng.integers(-(2**63), 2**63, value.shape, dtype=np.int64) for _ in s.cast.parties[1:]]
    every = dict(zip(s.cast.parties, [value - sum(parts), *parts], strict=True))
    return s.adopt({p: Held(p, part if p == s.me else None) for p, part in every.items()}, value.shape)


def squares(s: Any, value: np.ndarray) -> Any:
    opened = s.reveal(s.square(dealt(s, value)), to="server", message="squares", unprotected=True)
    return value_of(opened) if s.me == "server" else None


def places(s: Any, value: np.ndarray) -> Any:
    opened = s.reveal(s.argmax(dealt(s, value)), to="server", message="places", unprotected=True)
    return value_of(opened) if s.me == "server" else None


def mapped(s: Any, value: np.ndarray) -> Any:
    seed = s.toss()
    total = s.linear(dealt(s, value), lambda x, common: x.sum(axis=0) * common[0], value.shape[1:], seed)
    opened = s.reveal(total, to="server", message="sum", unprotected=True)
    if s.me == "server":
        return value_of(opened)
    return value_of(seed[s.me])[0] if s.me in s.cast.parties else None


@pytest.mark.parametrize("parties", [2, 3])
def test_squares_wrap_exactly(pools: Pools, parties: int) -> None:
    rng = np.random.default_rng(4)
    value = np.concatenate(
        [rng.integers(-(2**63), 2**63, 50, dtype=np.int64), [2**63 - 1, -(2**63), 2**62, 2**32, 1, 0]]
    )
    assert np.array_equal(pools.run(parties, squares, value=value)["server"], value * value)


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("rows", [2, 5])
def test_argmax_is_the_first_of_equals(pools: Pools, parties: int, rows: int) -> None:
    value = np.random.default_rng(rows).integers(0, 4, (rows, 200))
    assert np.array_equal(pools.run(parties, places, value=value)["server"], value.argmax(axis=0))


@pytest.mark.parametrize("parties", [2, 3])
def test_linear_maps_take_what_all_parties_hold(pools: Pools, parties: int) -> None:
    value = np.arange(12).reshape(3, 4)
    results = pools.run(parties, mapped, value=value)
    common = results["p0"]
    assert all(results[f"p{rank}"] == common for rank in range(parties))
    assert np.array_equal(results["server"], value.sum(axis=0) * common)
