"""Products of held columns are exact mod 2^64: every plan of blocks, row blocking, memory layout and value."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smpc import products
from smpc.errors import InputError
from smpc.products import ProductPlan
from smpc.ring import Integers, inner
from smpc.values import Held
from tests.harness import ArraySession, Sessions
from tests.sharing.exact import exact, integers, ring
from tests.support import held

few = settings(max_examples=40)
rows_and_block_bytes = st.tuples(st.integers(1, 9), st.sampled_from([8, 40, 100, 1 << 19]))


def opened(shares: list[Integers]) -> Integers:
    return ring(np.add.reduce([exact(share) for share in shares]))


def block_shares(s: ArraySession, plan: ProductPlan, columns: Mapping[str, Integers]) -> Any:
    if not s.is_party:
        return {}
    correlation = s.correlate(plan)
    return s.multiply(correlation, columns[s.me]) if s.me in plan.widths else {}


@few
@given(data=st.data())
def test_the_two_shares_of_every_block_of_any_plan_add_up(sessions: Sessions, data: st.DataObject) -> None:
    rows, block_bytes = data.draw(rows_and_block_bytes)
    parties = [p for p in sessions.cast.parties if p in ("p0", "p1") or data.draw(st.booleans())]
    widths = {party: data.draw(st.integers(1, 4)) for party in parties}
    turned = [data.draw(st.sampled_from([(k, l), (l, k)])) for k, l in combinations(parties, 2)]
    blocks = data.draw(st.lists(st.sampled_from(turned), min_size=1, unique=True))
    columns = {party: data.draw(integers((width, rows))) for party, width in widths.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "BLOCK_BYTES", block_bytes)
        results = sessions.run(block_shares, ProductPlan(rows, widths, tuple(blocks)), columns)

    for k, l in blocks:
        holders = {name: shares[k, l] for name, shares in results.items() if (k, l) in shares}
        assert set(holders) == {k, l}
        assert np.array_equal(opened(list(holders.values())), ring(exact(columns[k]) @ exact(columns[l]).T))


def revealed_gram(s: ArraySession, columns: Mapping[str, Integers], bits: int, to: str) -> Held[Integers]:
    widths = {party: len(own) for party, own in columns.items()}
    rows = next(iter(columns.values())).shape[1]
    gram = s.gram(held(s, columns), rows=rows, widths=widths, bits=bits)
    assert gram.fraction_bits == 2 * bits
    return s.reveal(gram, to=to, message="gram", unprotected=True)


@few
@given(data=st.data())
def test_gram_with_its_column_of_ones_is_exact(sessions: Sessions, data: st.DataObject) -> None:
    rows, block_bytes = data.draw(rows_and_block_bytes)
    bits = data.draw(st.integers(0, 29))  # 9 rows of 2^29 just fit
    parties = [p for p in sessions.cast.parties if data.draw(st.booleans())] or ["p1"]
    columns = {party: data.draw(integers((data.draw(st.integers(1, 3)), rows))) for party in parties}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "BLOCK_BYTES", block_bytes)
        results = sessions.run(revealed_gram, columns, bits, data.draw(st.sampled_from(list(sessions.sessions))))

    everything = np.vstack([np.full((1, rows), 1 << bits, dtype=object), *map(exact, columns.values())])
    (result,) = (value._value for value in results.values() if value._value is not None)
    assert np.array_equal(result, ring(everything @ everything.T))


def revealed_inner(s: ArraySession, columns: Mapping[str, Integers]) -> Held[Integers]:
    (x, y), rows = held(s, columns).values(), next(iter(columns.values())).shape[1]
    a, b = (len(own) for own in columns.values())
    return s.reveal(
        s.inner(x, y, rows=rows, widths=(a, b), bits=0), to="server", message="inner product", unprotected=True
    )


@few
@given(data=st.data())
def test_inner_products_of_any_two_parties_are_exact(sessions: Sessions, data: st.DataObject) -> None:
    pair = data.draw(st.permutations(sessions.cast.parties))[:2]
    rows = data.draw(st.integers(1, 9))
    columns = {party: data.draw(integers((data.draw(st.integers(1, 3)), rows))) for party in pair}
    results = sessions.run(revealed_inner, columns)

    x, y = columns.values()
    assert np.array_equal(results["server"]._value, ring(exact(x) @ exact(y).T))


@pytest.mark.parametrize("width", [1, 19, 20, 33], ids="width={}".format)
@given(data=st.data())
@settings(max_examples=10)  # the wide kernel imports torch
def test_both_kernels_are_exact_for_every_layout(width: int, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 3))
    x, y = data.draw(integers((width, rows))), data.draw(integers((width + 1, rows)))
    assert np.array_equal(inner(x, y), ring(exact(x) @ exact(y).T))


def test_a_gram_whose_ones_leave_the_ring_is_refused_before_anything_is_sent(sessions: Sessions) -> None:
    def task(s: ArraySession) -> None:
        with pytest.raises(InputError, match=r"fraction_bits = 30.*fraction_bits = 29 fits"):
            revealed_gram(s, {"p0": np.zeros((1, 4), np.int64)}, 30, "server")

    sessions.run(task)
