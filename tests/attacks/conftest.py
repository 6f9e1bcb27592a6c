"""The processes that all attack tests share: stock parties, and ours with every frame recorded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from launch.pool import Pool
from smpc.cast import Cast
from tests.attacks.stock import StockParties


@pytest.fixture(scope="session")
def stock_pair() -> Iterator[StockParties]:
    with StockParties(2) as parties:
        yield parties


@pytest.fixture(scope="session")
def stock_five() -> Iterator[StockParties]:
    with StockParties(5) as parties:
        yield parties


@pytest.fixture(scope="session")
def our_pair() -> Iterator[Pool]:
    with _pool(2) as pool:
        yield pool


@pytest.fixture(scope="session")
def our_five() -> Iterator[Pool]:
    with _pool(5) as pool:
        yield pool


def _pool(parties: int) -> Pool:
    return Pool(Cast(tuple(f"p{rank}" for rank in range(parties))), record=True)
