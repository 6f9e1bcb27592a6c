"""Messages that the receiver collects steps later: two participants without a server, in the clear and over TLS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smpc import Cast, ClearSession, Held, HolderError, Session
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from tests.harness import ArraySession, Participants

CAST = Cast(("ann", "bob"), server="", dealer=None, roles={"ann": "P_N", "bob": "P_L"})
SIZES = (3, 1, 4)


def numbers(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32) / 3


def double(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return values * np.float32(2)


def script(s: Session) -> list[Held[Any]]:
    """Everything is posted before the answers are collected."""
    answers = []
    for size in SIZES:
        sent = s.post(s.at("ann", numbers, size), to="bob", shape=(size,), message="question", dtype=np.float32)
        answer = s.at("bob", double, s.collect(sent))
        answers.append(s.post(answer, to="ann", shape=(size,), message="answer", dtype=np.float32))
    return [s.at("ann", np.copy, s.collect(answer)) for answer in answers]


def over_tls(network: Network, agreement: Agreement) -> Any:
    session = ArraySession(CAST, network, agreement)
    return script(session), session


def test_answers_arrive_in_order_after_later_steps() -> None:
    with Participants(CAST) as participants:
        outcomes = participants.run(over_tls)
    assert CAST.everyone == ("ann", "bob")
    clear = ClearSession(CAST)
    expected = script(clear)
    found, session = outcomes["ann"]
    for one, other, size in zip(found, expected, SIZES, strict=True):
        assert np.array_equal(one._value, double(numbers(size))) and one._value.dtype == np.float32
        assert np.array_equal(one._value, other._value)
    assert [held._value for held in outcomes["bob"][0]] == [None] * len(SIZES)
    steps = [("P_N -> P_L", "question"), ("P_L -> P_N", "answer")] * len(SIZES)
    assert session.transcript.steps() == clear.transcript.steps() == steps


def test_what_is_posted_stays_its_receivers() -> None:
    s = ClearSession(CAST)
    answer = s.collect(s.post(s.at("ann", numbers, 2), to="bob", shape=(2,), message="x", dtype=np.float32))
    with pytest.raises(HolderError, match="ann cannot read a value that bob holds"):
        s.at("ann", double, answer)
    with pytest.raises(HolderError, match="'server' holds no values"):
        s.at("server", numbers, 2)


@pytest.mark.parametrize(("size", "dtype"), [(3, np.float32), (2, np.float64)])
def test_a_wrong_shape_or_type_is_refused(size: int, dtype: type[np.generic]) -> None:
    def wrong(network: Network, agreement: Agreement) -> None:
        session = ArraySession(CAST, network, agreement)
        session.collect(session.post(session.at("ann", numbers, 2), to="bob", shape=(size,), message="x", dtype=dtype))

    participants = Participants(CAST)
    outcomes = participants.outcomes(wrong)
    participants.close(RuntimeError())
    assert isinstance(outcomes["ann"], TypeError)
    assert isinstance(outcomes["bob"], PeerError)
