"""What a protocol's text says it will send is what the sockets count, for every pair of participants."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from smpc import Cast, Held
from smpc.errors import InputError
from smpc.forecast import Forecast, UnknownCost
from tests.harness import Sessions
from tests.support import clear_fit, held, schema, tables

NAMES = ("p0", "p1", "p2", "p3", "p4")
ORDERS = ("shares", "joint", "paper")


def forecast(cast: Cast, of: Any, noise: str) -> Forecast:
    session = Forecast(cast)
    fit(session, {party: Held(party) for party in of.widths}, Plan.make(of, epsilon=Fraction(1), noise=noise))
    return session


def counted_task(s: Any, of: Any, values: Mapping[str, Any], noise: str) -> Any:
    before = s.network.sent_on_purpose()
    fit(s, held(s, values), Plan.make(of, epsilon=Fraction(1), noise=noise))
    after = s.network.sent_on_purpose()
    return {name: after[name] - before[name] for name in after}


@pytest.mark.mpc
@pytest.mark.parametrize("count", [2, 3, 5])
def test_sockets_count_what_is_forecast(pools: Any, count: int) -> None:
    of = schema(3000, {name: 1 + i for i, name in enumerate(NAMES[:count])}, "p1")
    for noise in ORDERS:
        found = pools.run(count, counted_task, of=of, values=tables(of), noise=noise)
        expected = forecast(Cast(NAMES[:count]), of, noise).bytes
        for sender, routes in found.items():
            for receiver, counted in routes.items():
                wanted = expected.get((sender, receiver), 0)
                # a pool's requests have longer numbers than a job's: at most 3 digits more in each of a few
                room = wanted / 100 + (30 if (sender, receiver) == ("p0", "dealer") else 0)
                assert abs(counted - wanted) <= room, (noise, sender, receiver, counted, wanted)


def tossed_task(s: Any) -> Any:
    before = s.network.sent_on_purpose()
    s.toss()
    after = s.network.sent_on_purpose()
    return {name: after[name] - before[name] for name in after}


def test_a_toss_costs_what_is_forecast() -> None:
    with Sessions(3) as sessions:
        found = sessions.run(tossed_task)
        session = Forecast(sessions.cast)
        session.toss()
    for sender, routes in found.items():
        for receiver, counted in routes.items():
            assert counted == session.bytes.get((sender, receiver), 0)


def test_the_steps_are_those_of_a_run() -> None:
    of = schema(50, {"ann": 2, "bob": 1}, "bob")
    for noise in ORDERS:
        session = forecast(Cast(("ann", "bob")), of, noise)
        _, clear = clear_fit(of, tables(of), Plan.make(of, epsilon=Fraction(1), noise=noise))
        assert session.transcript.messages == clear.transcript.messages


def test_growth_is_that_of_the_formulas() -> None:
    cast = Cast(("ann", "bob", "cid"))
    small, large = (forecast(cast, schema(n, dict.fromkeys(cast.parties, 4), "ann"), "shares") for n in (10**5, 10**7))
    for party, width in (("ann", 5), ("bob", 4)):
        grown = large.sent(party) - small.sent(party)
        assert grown == pytest.approx(8 * width * 2 * (10**7 - 10**5), rel=0.01)
    assert large.sent("server") == small.sent("server") > 0
    assert large.sent("dealer") == small.sent("dealer") > 0


def test_steps_without_a_formula_say_so() -> None:
    session = Forecast(Cast(("ann", "bob")))
    shared = session.share(Held("ann"), (3,))
    with pytest.raises(UnknownCost, match="comparisons"):
        session.check_zero(shared, message="zeros")


def test_what_fits_into_no_message_is_told_before_anything_is_sent_or_paid() -> None:
    cast = Cast(("ann", "bob"))
    session = Forecast(cast)
    columns = {party: Held(party) for party in cast.parties}
    gram = session.gram(columns, rows=100, widths={"ann": 4000, "bob": 4200}, bits=4)
    with pytest.raises(InputError, match=f"takes {8 * 8201**2} bytes, at most 268435456: use fewer columns"):
        session.reveal(gram, to="server", message="gram", unprotected=True)
