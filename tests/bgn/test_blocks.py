"""Every block of 2, 3 and 5 parties in every mode: the exact integers, whatever the columns; in threads over TLS."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smpc.bgn.modes import Keys
from smpc.bgn.session import BgnSession
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.ring import Integers
from smpc.values import value_of
from tests.harness import Participants, cast_of
from tests.support import held

pytestmark = pytest.mark.mpc

COUNTS = (2, 3, 5)


@pytest.fixture(scope="module", params=COUNTS)
def everyone(request: pytest.FixtureRequest) -> Iterator[Participants]:
    with Participants(cast_of(request.param, dealer=False), deadline=60.0) as participants:
        yield participants


def keys_of(count: int) -> st.SearchStrategy[Keys]:
    thresholds = st.builds(Keys, st.just("threshold"), st.integers(2, count) | st.none())
    return st.sampled_from([Keys("pair"), Keys("linear")]) | thresholds


@given(data=st.data())
@settings(max_examples=6)
def test_blocks_are_exact(everyone: Participants, data: st.DataObject) -> None:
    cast = everyone.cast
    keys = data.draw(keys_of(len(cast.parties)))
    rows, bits = data.draw(st.sampled_from([1, 2, 30])), data.draw(st.sampled_from([1, 6, 12]))
    one, receiver = 1 << bits, data.draw(st.sampled_from([cast.server, *cast.parties]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    columns: dict[str, Integers] = {}
    for party in cast.parties:
        values = rng.integers(-one, one + 1, (data.draw(st.integers(1, 2)), rows))
        values[:, 0] = data.draw(st.sampled_from([-one, 0, one]))
        columns[party] = values
    widths = {party: len(values) for party, values in columns.items()}

    def work(network: Network, agreement: Agreement) -> Integers | None:
        s = BgnSession(cast, network, agreement, keys)
        gram = s.gram(held(s, columns), rows=rows, widths=widths, bits=bits)
        upper = np.triu_indices(1 + sum(widths.values()))
        opened = s.reveal(s.take(gram, *upper), to=receiver, message="blocks", unprotected=True)
        return value_of(opened) if s.me == receiver else None

    every = np.vstack([np.full((1, rows), one), *columns.values()])
    expected = (every @ every.T)[np.triu_indices(len(every))]
    assert np.array_equal(everyone.run(work)[receiver], expected)
