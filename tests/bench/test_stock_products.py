from __future__ import annotations

import pytest

from tests.bench.product_tasks import ProductTask
from tests.bench.stock_products import measure

ROWS = 5_000


@pytest.mark.mpc
def test_stock_product_sends_both_masked_tables_once_and_is_about_right() -> None:
    task = ProductTask("small", ROWS, (2, 3))
    result = measure([task], repetitions=3)["small"]

    both = ROWS * (2 + 3) * 8  # an all_reduce of both tables between two parties, in bytes of each party
    assert all(both < sent < both + 4_000 for sent in result.sent_bytes)  # and gloo's own headers, barriers
    assert 0 < result.dealer_bytes[0] < 4_000  # only rank 0 asks the third party
    assert result.dealer_bytes[1] == 0
    assert result.max_error < 0.01  # 16 fraction bits
    assert 0 < result.online_seconds < result.seconds
    assert len(result.repetitions) == 3
