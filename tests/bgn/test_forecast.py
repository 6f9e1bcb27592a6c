"""On the bgn backend the sockets count what the formulas say, for 2 to 5 parties in every mode."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from launch.pool import Pool
from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from protocols.schema import Schema
from smpc.bgn.dlog import WINDOW, search_seconds
from smpc.bgn.entries import Entries
from smpc.bgn.forecast import LONGEST_SEARCH, BgnForecast
from smpc.bgn.modes import Keys
from smpc.cast import Cast
from smpc.errors import InputError
from smpc.values import Held
from tests.bgn.tasks import bgn
from tests.support import held, schema, tables

NAMES = ("p0", "p1", "p2", "p3", "p4")
MODES = (Keys("pair"), Keys("threshold", 2), Keys("linear"))


def plan_of(of: Schema) -> Plan:
    return Plan.make(of, epsilon=Fraction(1), noise="shares", room=WINDOW)


def counted(pool_session: Any, of: Schema, values: Any, keys: Keys) -> tuple[dict[str, int], list[int]]:
    """What this participant sent to each peer, and the windows that were opened."""
    s = bgn(pool_session, keys)
    mode: Any = s._mode
    opened, reaches = mode.open, []

    def kept(entries: Entries, *rest: Any) -> Any:
        reaches.append(entries.reach)
        return opened(entries, *rest)

    mode.open = kept
    before = s.network.sent_on_purpose()
    fit(s, held(s, values), plan_of(of))
    after = s.network.sent_on_purpose()
    return {name: after[name] - before[name] for name in after}, reaches


class Forecast(BgnForecast):
    """One that keeps the windows, too."""

    def _check_time(self, entries: Entries, to: str) -> None:
        self.reaches = [entries.reach]
        super()._check_time(entries, to)


@pytest.mark.mpc
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_sockets_count_what_is_forecast(count: int) -> None:
    names = NAMES[:count]
    of = schema(12, {name: 1 + i % 2 for i, name in enumerate(names)}, "p1")
    with Pool(Cast(names, dealer=None)) as pool:
        for keys in MODES:
            found = pool.run(counted, of=of, values=tables(of), keys=keys)
            session = Forecast(Cast(names, dealer=None), keys)
            fit(session, {party: Held(party) for party in names}, plan_of(of))
            assert sum(session.bytes.values()) > 0
            for sender, (routes, reaches) in found.items():
                assert reaches == session.reaches
                assert routes == {to: session.bytes.get((sender, to), 0) for to in routes}, (keys, sender)


@pytest.mark.parametrize(
    ("keys", "widths", "label"),
    [
        (Keys("pair"), (279, 279), "partial decryption"),
        (Keys("threshold"), (342, 341), "encrypted sums"),
        (Keys("linear"), (1673, 1672), "noisy sums"),
        (Keys("pair"), (1, 5462), "encrypted columns"),
        (Keys("linear"), (10923, 1), "encrypted columns"),
    ],
)
def test_what_no_frame_holds_is_refused_before_a_run(keys: Keys, widths: tuple[int, int], label: str) -> None:
    def opened(widths: tuple[int, int]) -> None:
        session = BgnForecast(Cast(NAMES[:2], dealer=None), keys)
        sums = session.inner(Held("p0"), Held("p1"), rows=256, widths=widths, bits=1)
        session.reveal(sums, to="server", message="sums", unprotected=True)

    with pytest.raises(InputError, match=rf"'{label}' takes \d+ bytes, at most 268435456: use fewer columns"):
        opened(widths)
    opened((max(1, widths[0] - 2), max(1, widths[1] - 2)))


@pytest.mark.parametrize(("keys", "who"), [(Keys("pair"), "p1"), (Keys("threshold"), "server"), (Keys("linear"), "p0")])
def test_a_search_that_others_would_not_wait_for_is_refused_before_a_run(keys: Keys, who: str) -> None:
    def opened(columns: int, bits: int) -> None:
        session = BgnForecast(Cast(NAMES[:2], dealer=None), keys)
        sums = session.inner(Held("p0"), Held("p1"), rows=1024, widths=(columns, columns), bits=bits)
        session.reveal(sums, to="server", message="sums", unprotected=True)

    each = search_seconds(2**42)
    assert 1.5 < each < 4
    most = int((LONGEST_SEARCH / each) ** 0.5)
    opened(most, 16)
    match = (
        rf"^{who} would search for {(most + 1) ** 2} sums, up to .* s each, .* use fewer columns \(at most \d+ sums\)"
    )
    with pytest.raises(InputError, match=match):
        opened(most + 1, 16)
    opened(2 * most, 14)  # a sixteenth of the window
