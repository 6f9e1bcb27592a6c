"""All parties but one, and whoever gets an opening, see uniform words that no secret changes."""

from __future__ import annotations

import pytest

from tests.sharing import views
from tests.sharing.checks import assert_hidden


@pytest.mark.parametrize("parties", [2, 3, 4, 5], ids="K={}".format)
def test_any_other_parties_shares_hide_an_input(parties: int) -> None:
    assert_hidden(views.input_shares(parties, "p0"))


@pytest.mark.parametrize(
    ("parties", "honest"),
    [(2, ("p0", "p1")), (3, ("p1", "p0")), (4, ("p0", "p2")), (5, ("p2", "p4")), (5, ("p2", "p3"))],
)
def test_a_receiver_with_all_but_two_parties_sees_no_share(parties: int, honest: tuple[str, str]) -> None:
    assert_hidden(views.opening(parties, honest))


@pytest.mark.parametrize(("parties", "honest"), [(2, "p0"), (2, "p1"), (3, "p0"), (3, "p1"), (4, "p0"), (5, "p2")])
def test_products_hide_a_partys_columns_from_all_others(parties: int, honest: str) -> None:
    assert_hidden(views.two_products(parties, honest))
