"""CrypTen's own primitives over our communicator, dealer, randomness and encoding, in real processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import Pools
from tests.engine import crypten_tasks as tasks
from tests.engine.crypten_tasks import PRIMITIVES

pytestmark = pytest.mark.mpc

each_size = pytest.mark.parametrize("parties", [2, 3, 4], ids="K={}".format)


@each_size
@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitive_is_right_and_uses_no_global_generator(pools: Pools, parties: int, name: str) -> None:
    primitive = PRIMITIVES[name]
    wanted = np.asarray(primitive.plain(*primitive.operands()), dtype=np.float64)
    results = pools.run(parties, tasks.opened, name=name)
    for rank in range(parties):
        result, untouched = results[f"p{rank}"]
        assert untouched, "a global generator was used"
        assert result.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(result, dtype=np.float64), wanted, rtol=0, atol=primitive.tolerance)


@each_size
def test_zeros_are_shared_among_all_pairs(pools: Pools, parties: int) -> None:
    results = [result for result in pools.run(parties, tasks.zero_sharings).values() if result is not None]
    arithmetic, binary = (np.stack([shares[kind] for shares, _ in results]) for kind in (0, 1))
    assert not np.add.reduce(arithmetic).any()
    assert not np.bitwise_xor.reduce(binary).any()
    assert all(len(np.unique(shares)) == 30 for shares, _ in results)
    assert all(drawn == [30] * (parties - 1) for _, drawn in results)


@each_size
@pytest.mark.parametrize("to", [0, 1])
def test_an_opening_to_one_leaves_nothing_at_the_others(pools: Pools, parties: int, to: int) -> None:
    results = pools.run(parties, tasks.open_to, record=True, to=to)
    for rank in range(parties):
        value, arrived = results[f"p{rank}"]
        if rank == to:
            assert value == [1.25, -2.0]
            assert len(arrived) == parties - 1
        else:
            assert (value, arrived) == (None, [])


@pytest.mark.parametrize("as_numpy", [False, True])
@pytest.mark.parametrize(
    ("values", "precision"),
    [
        ([0.5, 1.7, -2.25, 3.0], None),  # stock loses NumPy's fractions, and rounds toward zero
        ([20_000_001.0, -131071 / 65536], None),  # stock decodes in float32, and negatives one too low
        ([2.0**-17, -(2.0**-17), 3 * 2.0**-17], None),
        ([16_777_217, -16_777_217], None),  # stock takes integers through float32
        ([2**46 - 1, -(2**46)], None),
        ([2**62, -(2**62) - 1, 2**53 + 1], 0),
        ([True, False], None),
    ],
)
def test_values_come_out_as_they_went_in(pools: Pools, values: Any, precision: int | None, as_numpy: bool) -> None:
    bits = 16 if precision is None else precision
    array = np.array(values)
    wanted: Any = array
    if array.dtype.kind == "f":
        wanted = np.copysign(np.floor(np.abs(array) * 2.0**bits + 0.5), array) / 2.0**bits
    results = pools.run(3, tasks.encoded, values=array, precision=precision, as_numpy=as_numpy)
    for rank in range(3):
        assert results[f"p{rank}"].tolist() == wanted.tolist()


@pytest.mark.parametrize("as_numpy", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e15, -1e15, 2e14, 10**15])
def test_values_outside_the_ring_are_refused(pools: Pools, bad: Any, as_numpy: bool) -> None:
    results = pools.run(3, tasks.encoded, values=np.array([0, bad]), precision=None, as_numpy=as_numpy)
    for rank in range(3):
        assert isinstance(results[f"p{rank}"], str)
        assert "not finite" in results[f"p{rank}"] or "outside" in results[f"p{rank}"]


def test_unsafe_settings_are_refused(pools: Pools) -> None:
    results = pools.run(3, tasks.refusals)
    for rank in range(3):
        said = results[f"p{rank}"]
        assert all(said[name] == f"KeyError: '{name}'" for name in ("TFP", "TTP", "HE"))
        assert "switch them off" in said["debug"] and "switch them off" in said["validation"]
        assert "'replicated' leaks inputs" in said["replicated"]
        assert "started by a Session" in said["init"]
        assert "start a Session instead" in said["seeds"]


@each_size
@pytest.mark.parametrize(
    "values", [[], [0], [0] * 9, [1], [-1], [5, -5], [0, 2**62], [-(2**62)], [2**63 - 1], [-(2**63)], [-(2**63)] * 2]
)
def test_all_learn_whether_everything_is_zero(pools: Pools, parties: int, values: list[int]) -> None:
    results = pools.run(parties, tasks.zero_checked, values=np.array(values, dtype=np.int64))
    assert results == dict.fromkeys(results, not any(values))
