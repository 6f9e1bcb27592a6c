"""A protocol's text run by one participant, its bytes at the sockets beside what the text says it sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from launch.backend import Backend
from launch.terminal import tell
from smpc.cost import CostReport
from smpc.engine.network_session import NetworkSession
from smpc.session import Session

T = TypeVar("T")


def counted_run(session: NetworkSession, backend: Backend, text: Callable[[Session], T]) -> tuple[T, CostReport]:
    """What text(session) returns, and the costs beside those that the formulas give the same text.

    These follow the run: where the text branches on what was published, so do they. Differences of more than 1 % are
    told on standard error.
    """
    network, course = session.network, len(session.published)
    before = sum(network.sent_on_purpose().values())
    result = text(session)
    report = session.report()
    counted = sum(network.sent_on_purpose().values()) - before
    forecast = backend.forecast(session.cast, session.published[course:])
    text(forecast)
    report.compare("whole protocol", forecast.sent(network.me), counted)
    for warning in report.warnings():
        tell(f"warning: {warning}")
    return result, report
