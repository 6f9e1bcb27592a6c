"""Stock parties that all attack tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.stock import StockParties


@pytest.fixture(scope="session")
def stock_pair() -> Iterator[StockParties]:
    with StockParties(2) as parties:
        yield parties


@pytest.fixture(scope="session")
def stock_five() -> Iterator[StockParties]:
    with StockParties(5) as parties:
        yield parties
