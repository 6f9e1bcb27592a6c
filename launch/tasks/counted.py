"""A protocol's text run by one participant, its bytes at the sockets beside what the text says it sends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from smpc.cost import CostReport
from smpc.engine.network_session import NetworkSession
from smpc.forecast import Forecast
from smpc.session import Session

T = TypeVar("T")


def counted_run(
    session: NetworkSession, forecast: Forecast | None, text: Callable[[Session], T]
) -> tuple[T, CostReport]:
    """What text(session) returns, and the costs; `forecast` has counted the text's messages (None: no formulas).

    Differences of more than 1 % are told on standard error.
    """
    network = session.network
    before = sum(network.sent_on_purpose().values())
    result = text(session)
    report = session.report()
    if forecast is not None:
        counted = sum(network.sent_on_purpose().values()) - before
        report.compare("whole protocol", forecast.sent(network.me), counted)
    for warning in report.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    return result, report
