"""Counting on shares: exact counts, invalid ballots named, the check's soundness, the docstring's table."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smpc import Cast, ClearSession, InputError
from smpc.ballots import check as checks
from smpc.ballots import counting
from smpc.ballots.box import NOBODY, Box
from smpc.ballots.counting import Tally, tally
from smpc.ballots.envelope import Reason
from smpc.errors import PeerError
from smpc.transcript import table
from smpc.values import Held, value_of
from tests.ballots.support import Election, put

PARTIES = ("ann", "bob", "cid")
VOTERS = tuple(f"v{i}" for i in range(6))
HALF = -(2**63)  # 2^63 mod 2^64
QUARTER = 2**62


def counted(election: Election, ballots: dict[str, np.ndarray], folder: Path) -> tuple[Tally, ClearSession]:
    boxes = election.boxes(folder)
    for voter, votes in ballots.items():
        put(boxes, election.ballot(voter, votes))
    boxes[election.parties[0]].close()
    s = ClearSession(Cast(election.parties))
    return tally(s, {party: Held(party, box) for party, box in boxes.items()}, election.poll), s


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("parties", [2, 3])
def test_counts_are_exact_and_the_table_is_what_was_sent(tmp_path: Path, classes: int, parties: int) -> None:
    election = Election(PARTIES[:parties], VOTERS, 7, classes)
    result, s = counted(election, {v: election.votes(v) for v in VOTERS[:-1]}, tmp_path)
    assert np.array_equal(result.counts.share, election.counts(VOTERS[:-1]))
    assert (result.counted, result.missing, result.rejected) == (VOTERS[:-1], VOTERS[-1:], {})
    if parties == 2:
        assert s.transcript.steps() == table(counting.__doc__ or "")


def broken(votes: np.ndarray, kind: str) -> np.ndarray:
    """A ballot with one fault, in sample 2, where (more than two classes) class 0 has the vote."""
    bad = votes.copy()
    bad[:, 2] = 0
    bad[0, 2] = 1
    if kind == "weight two":
        bad[0, 2] = 2
    elif kind == "negative":
        bad[0, 2] = -1
    elif kind == "fractional":
        bad[0, 2] = 1 << 15
    elif kind == "two ones":
        bad[1, 2] = 1
    elif kind == "none":
        bad[0, 2] = 0
    elif kind == "weight moved":
        bad[0, 2], bad[1, 2] = 2, -1
    elif kind == "2^63 more":
        bad[0, 2] += HALF
    elif kind == "2^62 more":
        bad[0, 2] += QUARTER
    elif kind == "2^63":
        bad[0, 2] = HALF
    elif kind == "2^63 added in two classes":
        bad[:2, 2] += HALF
    elif kind == "2^32":  # its square is 0 mod 2^64, so that only v itself stands out
        bad[0, 2] = 1 << 32
    return bad


KINDS = ["weight two", "negative", "fractional", "2^63 more", "2^62 more", "2^63", "2^32"]
ROW_KINDS = ["two ones", "none", "weight moved", "2^63 added in two classes"]


@pytest.mark.parametrize(("classes", "kind"), [*((2, k) for k in KINDS), *((3, k) for k in KINDS + ROW_KINDS)])
def test_a_wrong_ballot_is_rejected_by_name_and_the_others_count(tmp_path: Path, classes: int, kind: str) -> None:
    election = Election(PARTIES[:2], VOTERS, 5, classes)
    ballots = {v: election.votes(v) for v in VOTERS}
    ballots["v3"] = broken(ballots["v3"], kind)
    result, _ = counted(election, ballots, tmp_path)
    assert result.rejected == {"v3": Reason.CHECK}
    honest = [v for v in VOTERS if v != "v3"]
    assert np.array_equal(result.counts.share, election.counts(honest))


def combinations_missed(defects: np.ndarray, tosses: int) -> int:
    """How many single combinations of a ballot's defects are zero."""
    rng = np.random.default_rng(5)
    coefficients = rng.integers(-(2**63), 2**63, (tosses, defects.size), dtype=np.int64)
    return int((coefficients @ defects == 0).sum())


def test_one_combination_misses_half_of_the_time_at_worst() -> None:
    """Why there are 40: a defect of 2^63 is a coin toss; any other is missed less often."""
    tosses = 4000
    for defects, chance in (
        ([HALF], 1 / 2),
        ([HALF, HALF], 1 / 2),
        ([QUARTER], 1 / 4),
        ([HALF, QUARTER], 1 / 4),
        ([6], 0),
    ):
        missed = combinations_missed(np.array(defects), tosses)
        assert abs(missed - chance * tosses) <= 7 * np.sqrt(chance * (1 - chance) * tosses)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6),
    st.integers(2, 4),
    st.binary(min_size=32, max_size=32),
)
@settings(max_examples=60)
def test_opened_sums_are_the_combinations_of_the_defects(entries: list[int], classes: int, seed: bytes) -> None:
    election = Election(PARTIES[:2], ("v0",), len(entries), classes)
    votes = np.resize(np.array(entries, dtype=np.int64), (election.poll.width, len(entries)))
    opened = sums(election, votes, seed)
    with np.errstate(over="ignore"):
        defects = (votes * votes - votes).reshape(-1)
        coefficients = checks._coefficients(seed, election.poll)
        expected = coefficients[:, : votes.size] @ defects
        if classes > 2:
            expected = expected + coefficients[:, votes.size :] @ (votes.sum(axis=0) - 1)
    assert np.array_equal(opened, expected)


def sums(election: Election, votes: np.ndarray, seed: bytes) -> np.ndarray:
    s = ClearSession(Cast(election.parties))
    opened: list[np.ndarray] = []
    reveal = s._reveal
    s._reveal = lambda shared, to: opened.append(shared.share[0]) or reveal(shared, to)  # type: ignore[method-assign, func-returns-value]
    shared = s.share(Held("ann", votes.reshape(1, -1)), (1, votes.size))
    coin = {party: Held(party, seed) for party in election.parties}
    accepted = value_of(checks.check(s, shared, election.poll, coin))
    assert accepted.tolist() == [not opened[0].any()]
    return opened[0]


def known_coin_ballot(election: Election, seed: bytes) -> np.ndarray:
    """Defects of 2^63 on a set of entries that every combination of this seed cancels: v = vote + 2^63 has (v^2 - v) =
    2^63, a row whose sum is off by 2^63 as well. Linear algebra over the lowest bits of the coefficients."""
    poll = election.poll
    bits = (checks._coefficients(seed, poll) & 1).astype(np.uint8)
    assert poll.width == 1
    kernel = null_vector(bits)
    votes = election.votes("v0").copy()
    votes[0, kernel.astype(bool)] += HALF
    return votes


def null_vector(matrix: np.ndarray) -> np.ndarray:
    """A vector other than zero with matrix @ x = 0 mod 2."""
    m = matrix.copy() % 2
    rows, columns = m.shape
    pivots: list[int] = []
    for column in range(columns):
        row = len(pivots)
        found = [r for r in range(row, rows) if m[r, column]]
        if not found:
            x = np.zeros(columns, dtype=np.uint8)
            x[column] = 1
            for r, pivot in enumerate(pivots):
                x[pivot] = m[r, column]
            return x
        m[[row, found[0]]] = m[[found[0], row]]
        for r in range(rows):
            if r != row and m[r, column]:
                m[r] ^= m[row]
        pivots.append(column)
    raise AssertionError("more columns than rows have one")


def test_who_knows_the_coefficients_passes_a_wrong_ballot_and_a_fresh_coin_catches_it() -> None:
    election = Election(PARTIES[:2], ("v0",), 60, 2)
    seed = bytes(range(32))
    votes = known_coin_ballot(election, seed)
    assert not np.isin(votes, (0, 1)).all()
    assert not sums(election, votes, seed).any()
    assert sums(election, votes, bytes(32)).any()


def test_the_coin_is_tossed_after_the_ballots_are_compared(tmp_path: Path) -> None:
    election = Election(PARTIES, VOTERS, 4, 2)
    _, s = counted(election, {v: election.votes(v) for v in VOTERS}, tmp_path)
    names = [message.message for message in s.transcript.messages]
    last_compared = max(i for i, name in enumerate(names) if name == "ballots held")
    assert last_compared < names.index("commitment")


def test_different_ballots_at_two_parties_are_not_counted(tmp_path: Path) -> None:
    election = Election(PARTIES, VOTERS, 4, 2)
    boxes = election.boxes(tmp_path)
    for voter in VOTERS[1:]:
        put(boxes, election.ballot(voter, election.votes(voter)))
    one, other = (election.ballot("v0", election.votes("v0")) for _ in range(2))
    for party, ballot in zip(PARTIES, (one, one, other), strict=True):
        boxes[party].put(ballot[party].to_bytes())
    boxes["ann"].close()
    s = ClearSession(Cast(PARTIES))
    result = tally(s, {p: Held(p, b) for p, b in boxes.items()}, election.poll)
    assert result.rejected == {"v0": Reason.DIFFERENT}
    assert np.array_equal(result.counts.share, election.counts(VOTERS[1:]))


def test_no_ballot_no_release(tmp_path: Path) -> None:
    election = Election(PARTIES[:2], VOTERS, 4, 2)
    with pytest.raises(InputError, match=r"none of \d+ voters is counted, 0 ballots were rejected"):
        counted(election, {}, tmp_path)
    with pytest.raises(InputError, match=r"none of \d+ voters is counted, 1 ballots were rejected"):
        counted(election, {"v1": 2 + election.votes("v1")}, tmp_path / "again")


def test_batches_do_not_change_the_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BATCH_ENTRIES", 30)
    election = Election(PARTIES[:2], VOTERS, 7, 2)
    ballots = {v: election.votes(v) for v in VOTERS}
    ballots["v4"] = 2 + ballots["v4"]
    result, s = counted(election, ballots, tmp_path)
    assert np.array_equal(result.counts.share, election.counts([v for v in VOTERS if v != "v4"]))
    assert sum(m.message == "check values" for m in s.transcript.messages) == 2


@pytest.mark.parametrize("fuller", PARTIES)
def test_a_party_without_room_ends_the_count_also_where_nothing_is_to_be_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fuller: str
) -> None:
    """Voters ask the first party last: it never hears of a ballot that another party could not keep."""
    election = Election(PARTIES, VOTERS, 4, 2)
    boxes = election.boxes(tmp_path)

    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(InputError, match="no room to keep it"):
        patched.setattr(Path, "write_bytes", full)
        boxes[fuller].put(election.ballot("v0", election.votes("v0"))[fuller].to_bytes())
    boxes["ann"].close()
    with pytest.raises(InputError, match=r"ballots cannot be kept in .* \(No space left on device\)"):
        tally(ClearSession(Cast(PARTIES)), {p: Held(p, b) for p, b in boxes.items()}, election.poll)


def test_a_first_party_that_never_ends_the_vote_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    election = Election(PARTIES, VOTERS, 4, 2)
    boxes = election.boxes(tmp_path)
    lines = []

    def more(box: Box, most: int, seconds: float) -> np.ndarray:
        lines.append(seconds)
        return np.array([1.0, *[NOBODY] * most])

    monkeypatch.setattr(Box, "next_batch", more)
    with pytest.raises(PeerError, match=r"^ann waits for ballots after 3000 s, and no vote lasts as long$"):
        tally(ClearSession(Cast(PARTIES)), {p: Held(p, b) for p, b in boxes.items()}, election.poll)
    assert sum(lines) >= counting.LONGEST_VOTE


def test_the_line_that_closes_the_longest_vote_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    election = Election(PARTIES, VOTERS, 4, 2)
    boxes = election.boxes(tmp_path)
    put(boxes, election.ballot("v0", election.votes("v0")))
    most = int(counting.LONGEST_VOTE / counting.BATCH_SECONDS)
    lines = iter([[1, 0], *[[1, NOBODY]] * most, [0, NOBODY]])
    monkeypatch.setattr(Box, "next_batch", lambda box, most, seconds: padded(next(lines), most))
    boxes["ann"].close()
    result = tally(ClearSession(Cast(PARTIES)), {p: Held(p, b) for p, b in boxes.items()}, election.poll)
    assert result.counted == ("v0",)


def padded(line: list[float], most: int) -> np.ndarray:
    return np.array([*line, *[NOBODY] * (1 + most - len(line))], dtype=np.float64)


@pytest.mark.parametrize(
    "lines", [[[1, 1]], [[1, 7]], [[0.5, 1]], [[-2, 1]], [[np.nan, 1]], [[1e300, 1]], [[0, 1], [2, 1]]]
)
def test_a_first_party_that_names_a_ballot_twice_or_of_nobody_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[list[float]]
) -> None:
    election = Election(("ann", "bob"), ("v0", "v1", "v2"), 10, 3)
    boxes = election.boxes(tmp_path)
    for voter in election.voters:
        put(boxes, election.ballot(voter, election.votes(voter)))
    told = iter(lines)

    def told_by_ann(box: Box, most: int, seconds: float) -> np.ndarray:
        line = np.full(1 + most, NOBODY, dtype=np.float64)
        line[:3] = [1, *next(told)]
        return line

    monkeypatch.setattr(Box, "next_batch", told_by_ann)
    with pytest.raises(PeerError, match=r"^ann counts a ballot twice, or one of no voter$"):
        tally(ClearSession(Cast(election.parties)), {p: Held(p, b) for p, b in boxes.items()}, election.poll)
