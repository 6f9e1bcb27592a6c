"""What a protocol's text says it will send is what the sockets count, for every pair of participants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from smpc import Cast, Held, openings
from smpc.errors import InputError
from smpc.forecast import Forecast
from tests.bench.barrier import together
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


def joint_operation(s: Any, verb: str, shape: tuple[int, ...], value: int) -> Any:
    everything = np.full(shape, value)
    shared = s.share(Held("p0", everything if getattr(s, "me", "p0") == "p0" else None), shape)
    return s.check_zero(shared, message="zeros") if verb == "check_zero" else getattr(s, verb)(shared)


def operation_task(s: Any, verb: str, shape: tuple[int, ...], value: int) -> Any:
    together(s)
    rounds, counted = s.network.round, s.cost.counted.get(verb, 0)
    before = s.network.sent_on_purpose()
    result = joint_operation(s, verb, shape, value)
    after = s.network.sent_on_purpose()
    report = s.report()
    return {
        "sent": {name: after[name] - before[name] for name in after},
        "rounds": s.network.round - rounds,
        "bit": result if verb == "check_zero" else None,
        "warnings": report.warnings(),
        "operation": report.counted.get(verb, 0) - counted,
    }


@pytest.mark.mpc
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_comparisons_and_squares_cost_what_their_rounds_say(pools: Any, count: int) -> None:
    n = 100
    sign = {2: 8, 3: 15, 4: 15, 5: 22}[count]  # additions of 7 rounds, in a tree; then one to convert the bit
    cases = [
        ("square", (n, 3), 1, 1),
        ("argmax", (2, n), 1, sign + 2),
        ("argmax", (5, n), 4, sign + 2),
        ("argmax", (1, n), 0, 0),
        ("check_zero", (n,), 1, 2 * sign),
        ("check_zero", (1,), 1, 2 * sign),
    ]
    for verb, shape, times, rounds in cases:
        for value in (0, 7):
            found = pools.run(count, operation_task, verb=verb, shape=shape, value=value)
            session = Forecast(Cast(NAMES[:count]))
            joint_operation(session, verb, shape, value)
            for sender, result in found.items():
                assert result["warnings"] == []
                assert (result["operation"] > 0) == (sender != "server" and times > 0)
                for receiver, counted in result["sent"].items():
                    wanted = session.bytes.get((sender, receiver), 0)
                    # a pool's requests have longer numbers than a job's
                    room = 4 * rounds * times if (sender, receiver) == ("p0", "dealer") else 0
                    assert 0 <= counted - wanted <= room, (verb, shape, sender, receiver, counted, wanted)
            chain = times * (rounds + 2)  # each time 2 more for the dealer's request and answer
            if verb == "check_zero":
                assert {result["bit"] for result in found.values()} == {value == 0}
                chain += 1  # the bit is opened
            assert max(found[party]["rounds"] for party in NAMES[:count]) == chain, (verb, shape)


def test_the_printed_formulas() -> None:
    assert sum(math.prod(o.opened) for o in openings.comparison((1,), 2)) * 8 == 248
    per_entry = sum(math.prod(o.opened) for o in openings.any_nonzero(1001, 2))
    assert (per_entry - sum(math.prod(o.opened) for o in openings.any_nonzero(1, 2))) * 8 == 432 * 1000
    assert len(openings.any_nonzero(5, 2)) == 16 and len(openings.comparison((5,), 2)) == 10


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


def test_what_fits_into_no_message_is_told_before_anything_is_sent_or_paid() -> None:
    cast = Cast(("ann", "bob"))
    session = Forecast(cast)
    columns = {party: Held(party) for party in cast.parties}
    gram = session.gram(columns, rows=100, widths={"ann": 4000, "bob": 4200}, bits=4)
    with pytest.raises(InputError, match=f"takes {8 * 8201**2} bytes, at most 268435456: use fewer columns"):
        session.reveal(gram, to="server", message="gram", unprotected=True)
