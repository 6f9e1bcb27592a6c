"""The table that explains a run is found by what was sent."""

from __future__ import annotations

from collections.abc import Sequence

from launch.job import PROTOCOLS
from launch.report.steps import UNKNOWN, Script, described, scripts
from protocols.functional import protocol as functional
from smpc.transcript import Message, Transcript, full_table
from tests.launch.report.support import SHARES, transcript

KNOWN = scripts()
A, B, C = ("a -> b", "x", "much"), ("b -> a", "y", "little"), ("a -> c", "z", "nothing")


Row = tuple[str, str, str]


def told(steps: Sequence[Row], known: Sequence[Sequence[Row]]) -> list[list[Row]]:
    groups = described(transcript(steps), [Script((), tuple(rows)) for rows in known])
    return [[(s.route, s.message, s.learns) for s in group] for group in groups]


def test_every_protocol_that_has_a_table_is_known() -> None:
    for noise in ("shares", "joint", "paper"):
        assert tuple(full_table(functional.script(noise).__doc__ or "")) in [script.rows for script in KNOWN]
    assert len(KNOWN) > 10 and all(script.rows for script in KNOWN)


def test_a_run_is_explained_by_the_table_it_followed() -> None:
    """Of all tables that there are: so two that are alike in what is sent say the same, or the protocol tells."""
    for script in KNOWN:
        (group,) = described(
            transcript(script.rows), KNOWN, next((name for name in PROTOCOLS if name in script.source), "")
        )
        assert [(s.route, s.message, s.learns) for s in group] == list(script.rows), script


def test_all_protocols_of_jobs_have_a_file_or_folder_of_their_name() -> None:
    """What a table is told apart by."""
    assert all(any(protocol in script.source for script in KNOWN) for protocol in PROTOCOLS)


def test_repeated_steps_are_one_line() -> None:
    assert told([A, B, A, B, A, B], [[A, B], [A]]) == [[A, B]]
    ((first, second),) = described(transcript([A, B, A, A], shape=(2, 3)), [Script((), (A, B))])
    assert (first.count, second.count, first.shapes) == (3, 1, ((2, 3),))
    assert (first.number, second.number) == (1, 2)


def test_a_table_with_a_message_that_was_not_sent_is_not_the_one() -> None:
    assert told([A, B], [[A, B, C], [A, B]]) == [[A, B]]
    assert told([A, B], [[A, B, C]]) == [[(*A[:2], UNKNOWN), (*B[:2], UNKNOWN)]]


def test_two_scripts_of_one_run_stand_in_their_order() -> None:
    assert told([B, C, A], [[A], [B, C]]) == [[B, C], [A]]
    assert told([A, B, C], [[C], [A]]) == [[A], [C], [(*B[:2], UNKNOWN)]]


def test_of_tables_with_the_same_messages_the_order_decides() -> None:
    other = [(*B[:2], "b first"), (*A[:2], "then a")]
    assert told([B, A], [[A, B], other]) == [other]
    assert told([A, B], [other, [A, B]]) == [[A, B]]


def test_nothing_recorded_nothing_told() -> None:
    assert described(Transcript(), KNOWN) == []


def test_shapes_of_a_step_are_told_once_each() -> None:
    record = Transcript([Message("send", "P_k", "server", "noisy coefficients", (size,)) for size in (3, 4, 3)])
    ((step,),) = described(record, [Script((), (SHARES[2],))])
    assert step.shapes == ((3,), (4,)) and step.count == 3
