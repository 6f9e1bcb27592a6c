"""The full sizes of paper 3's experiments through the network, boxes and checks: exact counts in bounded memory."""

from __future__ import annotations

import pytest

from tests.bench.bench_ballots import measure

pytestmark = [pytest.mark.mpc, pytest.mark.long]
MOST_MEGABYTES = 1_500  # of a compute party, torch included; the ballots have 1.6 and 6.9 GB


@pytest.mark.parametrize(("samples", "classes"), [(1_000, 10), (43_000, 2)], ids=["10 classes", "KDD99"])
def test_20_000_voters_are_counted_exactly(samples: int, classes: int) -> None:
    told: list[str] = []
    peak = measure(20_000, samples, classes, told.append)
    print("\n".join(told))
    assert "counts exact" in told[0]
    assert peak < MOST_MEGABYTES
