"""A protocol's docstring table against what was sent."""

from __future__ import annotations

import json

import pytest

from smpc.transcript import Message, Transcript, table

DOC = """Does a thing.

    step  from -> to      message      the receiver learns
    1     P_k -> P_l      masks        nothing, and this
                                       goes on here
    2     P_k -> server   noisy sums   the sums

    More text.
"""


def test_table_reads_rows_and_skips_continuations() -> None:
    assert table(DOC) == [("P_k -> P_l", "masks"), ("P_k -> server", "noisy sums")]


def test_a_docstring_without_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table"):
        table("Nothing here.")


def test_repeated_neighbours_are_one_step() -> None:
    transcript = Transcript()
    for message in ("masks", "masks", "sums", "masks"):
        transcript.add(Message("send", "P_k", "P_l", message, (2,)))
    assert transcript.steps() == [("P_k -> P_l", m) for m in ("masks", "sums", "masks")]


def test_a_record_holds_shapes_and_names_only() -> None:
    transcript = Transcript([Message("reveal", "P_k", "server", "sum", (3, 2), ("ann",))])
    assert json.loads(transcript.to_jsonl()) == {
        "verb": "reveal",
        "sender": "P_k",
        "receiver": "server",
        "message": "sum",
        "shape": [3, 2],
        "noise": ["ann"],
    }


def test_what_was_written_is_read_back() -> None:
    transcript = Transcript(
        [Message("reveal", "P_k", "server", "sum", (3, 2), ("ann",)), Message("a", "b", "c", "d", ())]
    )
    assert Transcript.from_jsonl(transcript.to_jsonl()) == transcript
    assert Transcript.from_jsonl("") == Transcript()


@pytest.mark.parametrize("change", [{"shape": [1.5]}, {"shape": [-1]}, {"sender": None}, {"noise": [1]}, {"extra": 1}])
def test_a_line_that_is_no_message_is_refused(change: dict[str, object]) -> None:
    line = json.loads(Transcript([Message("send", "P_k", "P_l", "x", (2,))]).to_jsonl())
    with pytest.raises((ValueError, TypeError)):
        Transcript.from_jsonl(json.dumps(line | change))
