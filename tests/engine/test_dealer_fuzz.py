"""Whatever the first party asks, the dealer answers within its limits or refuses with one line that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from smpc.engine import dealer_requests
from smpc.engine.dealer_requests import CONVOLUTION, OPERATIONS, TUPLES
from smpc.errors import PeerError
from tests.engine.test_dealer import ADDITIVE, PRODUCT, SQUARE, asked, served
from tests.engine.test_dealer import CONVOLUTION as CONVOLVED

ELEMENTS = 1 << 10

edges = st.sampled_from([-1, 0, 1, 2, 3, 1 << 12, 1 << 14, (1 << 14) + 1, 1 << 25, 1 << 31, 1 << 40, 1 << 63, 10**40])
leaves = st.none() | st.booleans() | edges | st.floats() | st.text(max_size=5) | st.sampled_from(["p0", "p1", "server"])
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
numbers = st.integers(0, 5) | edges
options = st.dictionaries(st.sampled_from(CONVOLUTION), numbers | st.lists(numbers, max_size=3), max_size=4)
tuples = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(TUPLES),
        "number": st.just(0),
        "sizes": st.lists(st.lists(numbers, max_size=5), min_size=1, max_size=2),
        "operation": st.sampled_from(OPERATIONS),
        "options": st.just({}) | options,
    }
)
names = st.sampled_from(["p0", "p1", "p2", "server"])
products = st.fixed_dictionaries(
    {
        "kind": st.just("product"),
        "number": st.just(0),
        "rows": st.just(3) | numbers,
        "widths": st.dictionaries(names, numbers, max_size=3),
        "blocks": st.lists(st.lists(names, max_size=3), max_size=3),
    }
)


@st.composite
def changed(draw: st.DrawFn) -> Any:
    """A good request in which one value is another."""
    request = json.loads(json.dumps(draw(st.sampled_from([PRODUCT, SQUARE, ADDITIVE, CONVOLVED]))))
    inside = request
    while True:
        key = draw(st.sampled_from(list(inside) if isinstance(inside, dict) else range(len(inside))))
        if not isinstance(inside[key], dict | list) or not inside[key] or draw(st.booleans()):
            inside[key] = draw(anything)
            return request
        inside = inside[key]


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Limits that a test can reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dealer_requests, "MAX_ELEMENTS", ELEMENTS)
        patch.setattr(dealer_requests, "MAX_CORRECTIONS", 8 * ELEMENTS)
        patch.setattr(dealer_requests, "MAX_WORDS", 8 * ELEMENTS)
        patch.setattr(dealer_requests, "MAX_UNFOLDED", 8 * ELEMENTS)
        yield


@settings(max_examples=250)
@given(changed() | tuples | products | st.dictionaries(st.text(max_size=8), anything, max_size=4))
def test_any_request_is_answered_within_the_limits_or_refused_by_name(request: dict[str, Any]) -> None:
    try:
        answers = served(request)
    except PeerError as error:
        event("refused")
        line = str(error)
        assert line.startswith(("p0: request 0: ", "p0: 'request' ")) and line.isprintable() and len(line) <= 500
        return
    event(f"answered {request['kind']}")
    assert sum(array.nbytes for _, array in answers) <= 8 * ELEMENTS
    assert {peer for peer, _ in answers} <= {"p0", "p1"}


@settings(max_examples=10)
@given(changed() | tuples | products)
def test_over_sockets_everybody_ends_with_the_line_or_well(request: dict[str, Any]) -> None:
    outcomes = asked(request)
    if outcomes["dealer"] is None:
        return
    for name, outcome in outcomes.items():
        assert isinstance(outcome, PeerError), (name, outcome)
        assert "p0" in str(outcome) and str(outcome).isprintable()
