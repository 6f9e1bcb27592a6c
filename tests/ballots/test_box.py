"""What a ballot box refuses, by name; what is kept; copies, replays and swaps."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from smpc.ballots import envelope, shares
from smpc.ballots.box import NOBODY, Box
from smpc.ballots.envelope import BallotError, Envelope, Reason
from smpc.ballots.poll import Poll
from smpc.errors import InputError
from tests.ballots.support import Election, put

ELECTION = Election(("ann", "bob"), ("v1", "v2", "v3"), 5, 3)


def good(voter: str = "v1") -> dict[str, Envelope]:
    return ELECTION.ballot(voter, ELECTION.votes(voter))


def other_signer() -> Envelope:
    poll = ELECTION.poll
    contents = shares.split(ELECTION.votes("v1"), ELECTION.parties)
    return envelope.make(contents, poll=poll.id, voter="v1", key=ELECTION.key("v2"), seals=poll.seals)["ann"]


def sealed_to_another_key() -> Envelope:
    seals = {party: X25519PrivateKey.generate().public_key() for party in ELECTION.parties}
    contents = shares.split(ELECTION.votes("v1"), ELECTION.parties)
    return envelope.make(contents, poll=ELECTION.poll.id, voter="v1", key=ELECTION.key("v1"), seals=seals)["ann"]


def copied_from_v2() -> Envelope:
    """v1 signs v2's sealed shares as its own."""
    theirs = good("v2")["ann"]
    signature = ELECTION.key("v1").sign(envelope._signed(theirs.poll, "v1", theirs.digests))
    return replace(theirs, voter="v1", signature=signature)


def sealed_as(content: bytes) -> bytes:
    """v1 signs something that nobody has sealed."""
    digests = (envelope.digest(content), envelope.digest(b"other"))
    signature = ELECTION.key("v1").sign(envelope._signed(ELECTION.poll.id, "v1", digests))
    return Envelope(ELECTION.poll.id, "v1", digests, signature, content).to_bytes()


def stranger() -> Envelope:
    poll = ELECTION.poll
    contents = shares.split(ELECTION.votes("v1"), ELECTION.parties)
    return envelope.make(contents, poll=poll.id, voter="eve", key=ELECTION.key("eve"), seals=poll.seals)["ann"]


def shorter(contents: dict[str, bytes]) -> dict[str, bytes]:
    return contents | {"ann": contents["ann"][:-8]}


def longer(contents: dict[str, bytes]) -> dict[str, bytes]:
    return contents | {"ann": contents["ann"] + bytes(8)}


def one_party_only() -> Envelope:
    poll = ELECTION.poll
    contents = shares.split(ELECTION.votes("v1"), ("ann",))
    return envelope.make(contents, poll=poll.id, voter="v1", key=ELECTION.key("v1"), seals=poll.seals)["ann"]


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


REFUSED: dict[str, tuple[Callable[[], bytes], Reason]] = {
    "nothing": (lambda: b"", Reason.MALFORMED),
    "noise": (lambda: bytes(range(256)) * 4, Reason.MALFORMED),
    "truncated head": (lambda: good()["ann"].to_bytes()[:60], Reason.MALFORMED),
    "truncated": (lambda: good()["ann"].to_bytes()[:-1], Reason.MALFORMED),
    "extended": (lambda: good()["ann"].to_bytes() + b"x", Reason.MALFORMED),
    "one bit changed": (lambda: flipped(good()["ann"].to_bytes(), -1), Reason.MALFORMED),
    "fewer parties": (lambda: one_party_only().to_bytes(), Reason.MALFORMED),
    "replayed from another job": (
        lambda: ELECTION.another_job().ballot("v1", ELECTION.votes("v1"))["ann"].to_bytes(),
        Reason.OTHER_POLL,
    ),
    "relabelled from another job": (
        lambda: replace(
            ELECTION.another_job().ballot("v1", ELECTION.votes("v1"))["ann"], poll=ELECTION.poll.id
        ).to_bytes(),
        Reason.SIGNATURE,
    ),
    "replayed from another run of this job": (
        lambda: ELECTION.another_run().ballot("v1", ELECTION.votes("v1"))["ann"].to_bytes(),
        Reason.OTHER_POLL,
    ),
    "relabelled from another run": (
        lambda: replace(
            ELECTION.another_run().ballot("v1", ELECTION.votes("v1"))["ann"], poll=ELECTION.poll.id
        ).to_bytes(),
        Reason.SIGNATURE,
    ),
    "a cover alone": (lambda: good()["ann"].cover(), Reason.MALFORMED),
    "signed and next to empty": (lambda: sealed_as(b"x"), Reason.SEALED),
    "signed and empty": (lambda: sealed_as(b""), Reason.SEALED),
    "stranger": (lambda: stranger().to_bytes(), Reason.UNKNOWN),
    "signed by another": (lambda: other_signer().to_bytes(), Reason.SIGNATURE),
    "under another's name": (lambda: replace(good("v2")["ann"], voter="v1").to_bytes(), Reason.SIGNATURE),
    "sealed to another key": (lambda: sealed_to_another_key().to_bytes(), Reason.SEALED),
    "sealed to another party": (lambda: good()["bob"].to_bytes(), Reason.SEALED),
    "copied from another voter": (lambda: copied_from_v2().to_bytes(), Reason.SEALED),
    "too short": (lambda: ELECTION.ballot("v1", ELECTION.votes("v1"), shorter)["ann"].to_bytes(), Reason.LENGTH),
    "too long": (lambda: ELECTION.ballot("v1", ELECTION.votes("v1"), longer)["ann"].to_bytes(), Reason.LENGTH),
}


@pytest.fixture
def boxes(tmp_path: Path) -> dict[str, Box]:
    return ELECTION.boxes(tmp_path)


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_by_name_and_the_voters_own_ballot_still_counts(boxes: dict[str, Box], kind: str) -> None:
    make, reason = REFUSED[kind]
    with pytest.raises(BallotError, match="refused") as caught:
        boxes["ann"].put(make())
    assert caught.value.reason is reason
    assert boxes["ann"].refused == {reason: 1}
    assert boxes["ann"].put(good()["ann"].to_bytes()) == "v1"
    assert "\n" not in str(caught.value)


def test_another_ballot_is_refused_and_the_same_gets_its_receipt_again(boxes: dict[str, Box]) -> None:
    ballot = good()
    put(boxes, ballot)
    put(boxes, ballot)
    boxes["ann"].next_batch(9, 0)
    boxes["ann"].take(np.array([0]))
    boxes["ann"].close()
    put(boxes, ballot)  # also when it has been counted, and after the close
    with pytest.raises(BallotError, match="v1 refused: a second ballot; the first one counts"):
        boxes["ann"].put(good()["ann"].to_bytes())
    assert boxes["ann"].refused == {Reason.DUPLICATE: 1}
    assert boxes["ann"].next_batch(9, 0)[1] == NOBODY


def test_a_signature_is_seen_before_the_ballot_is_there(boxes: dict[str, Box]) -> None:
    assert boxes["ann"].signer(good()["ann"].cover()) == "v1"
    for cover in (b"", good()["ann"].cover()[:-1], other_signer().cover(), stranger().cover()):
        assert boxes["ann"].signer(cover) is None
    assert boxes["ann"].signer(ELECTION.another_run().ballot("v1", ELECTION.votes("v1"))["ann"].cover()) is None
    assert not boxes["ann"].refused


def test_after_the_close_ballots_are_late(boxes: dict[str, Box]) -> None:
    boxes["ann"].close()
    with pytest.raises(BallotError, match="after the close"):
        boxes["ann"].put(good()["ann"].to_bytes())
    assert boxes["ann"].next_batch(2, 60.0).tolist() == [0, NOBODY, NOBODY]


def test_batches_do_not_tell_who_came_first_and_end_when_all_have_voted(boxes: dict[str, Box]) -> None:
    assert boxes["ann"].next_batch(2, 0).tolist() == [1, NOBODY, NOBODY]
    for voter in ("v3", "v1", "v2"):
        put(boxes, good(voter))
    assert boxes["ann"].next_batch(2, 60.0).tolist() == [1, 0, 2]
    assert boxes["ann"].next_batch(2, 60.0).tolist() == [0, 1, NOBODY]


def test_a_box_that_cannot_keep_a_ballot_says_so_to_who_counts(
    boxes: dict[str, Box], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(path: Path, data: bytes) -> int:
        with open(path, "wb") as file:
            file.write(data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    put(boxes, good("v1"))
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BallotError, match=r"^ballot of v2 refused: this party has no room to keep it; vote again when"):
        boxes["bob"].put(good("v2")["bob"].to_bytes())
    assert len(list(tmp_path.rglob("*.ballot"))) == 2, "no half ballot is left"
    message = r"ballots cannot be kept in .* \(No space left on device\): make room, or set TMPDIR"
    with pytest.raises(InputError, match=message):
        boxes["bob"].check_room()
    with pytest.raises(InputError, match=message):
        boxes["bob"].next_batch(1, 60.0)
    assert boxes["ann"].next_batch(1, 0).tolist() == [1, 0]


def test_shares_add_up_and_files_go_when_taken(boxes: dict[str, Box], tmp_path: Path) -> None:
    for voter in ("v1", "v2"):
        put(boxes, good(voter))
    numbers = np.array([1, 0])
    total = sum(box.take(numbers) for box in boxes.values())
    assert np.array_equal(total, [ELECTION.votes(v).reshape(-1) for v in ("v2", "v1")])
    assert not list(tmp_path.rglob("*.ballot"))


def test_what_lies_on_disk_is_sealed(boxes: dict[str, Box], tmp_path: Path) -> None:
    seen: list[bytes] = []

    def watch(contents: dict[str, bytes]) -> dict[str, bytes]:
        seen.extend(contents.values())
        return contents

    put(boxes, ELECTION.ballot("v1", ELECTION.votes("v1"), watch))
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*.ballot"))
    assert len(seen) == 2 and not any(content[:16] in files for content in seen)


def test_other_ballots_at_another_party_are_seen(boxes: dict[str, Box]) -> None:
    boxes["ann"].put(good()["ann"].to_bytes())
    boxes["bob"].put(good()["bob"].to_bytes())  # another ballot of v1
    put(boxes, good("v2"))
    numbers = np.array([0, 1, 2])
    digests = np.vstack([boxes["ann"].digests(np.array([0, 1])), np.zeros((1, 4), dtype=np.int64)])
    assert boxes["bob"].has(numbers, digests).tolist() == [0, 1, 0]


@pytest.mark.parametrize("parties", [2, 3])
def test_a_voter_sends_32_bytes_to_all_but_one(parties: int) -> None:
    contents = shares.split(np.ones(1000, dtype=np.int64), [f"p{i}" for i in range(parties)])
    assert [len(content) for content in contents.values()] == [8000] + [32] * (parties - 1)
    again = shares.split(np.ones(1000, dtype=np.int64), [f"p{i}" for i in range(parties)])
    assert all(contents[party] != again[party] for party in contents)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 1]), "need 5 class numbers"),
        (np.array([0.0, 1, 2, 0, 1]), "class numbers"),
        (np.array([0, 1, 3, 0, 1]), "label 3 of sample 2: need 0 to 2"),
        (np.array([0, 1, 2, -1, 1]), "label -1 of sample 3"),
        (np.array([True, False, True, True, True]), "class numbers"),
    ],
)
def test_labels_that_are_no_class_are_refused(labels: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ELECTION.poll.encode(labels)


def test_two_classes_need_one_entry_a_sample() -> None:
    election = Election(("ann", "bob"), ("v1",), 4, 2)
    assert election.poll.encode(np.array([0, 1, 1, 0])).tolist() == [[0, 1, 1, 0]]
    assert ELECTION.poll.encode(np.array([0, 1, 2, 0, 1])).tolist() == [
        [1, 0, 0, 1, 0],
        [0, 1, 0, 0, 1],
        [0, 0, 1, 0, 0],
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"job": b"short"},
        {"run": b""},
        {"seals": {}},
        {"voters": {}},
        {"samples": 0},
        {"classes": 1},
        {"voters": {"": None}},
    ],
)
def test_polls_that_cannot_be_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"need|names have"):
        Poll(**{**{k: getattr(ELECTION.poll, k) for k in Poll.__dataclass_fields__}, **change})  # type: ignore[arg-type]
