"""A compute party that knows every ballot but one looks for the last: it sees uniform words and the noisy opening.

The same view of a variant whose squares are masked by zeros gives the ballot away, so the search can find it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from launch.pool import Pool
from protocols.ensemble import statistic
from protocols.ensemble.auxiliary import Auxiliary
from protocols.ensemble.budget import Budget
from protocols.ensemble.statistic import StatisticPlan
from smpc.ballots.box import Box
from tests.attacks.ours import Recorded
from tests.ballots.support import Election
from tests.protocols.ensemble.support import rows_of
from tests.sharing.checks import WORDS, View, assert_hidden

pytestmark = pytest.mark.mpc
KNOWN, LAST = "v0", "v1"
OF = Election(("p0", "p1"), (KNOWN, LAST), WORDS, 2)


def zero_masks(s: Any, patches: ExitStack) -> None:
    """A wrong variant: x itself is opened where x - r should be."""
    if s.is_party:
        square = s._provider.square

        def unmasked(shape: Any) -> Any:
            r, squared = square(shape)
            r.share.zero_()
            squared.share.zero_()
            return r, squared

        patches.enter_context(patch.object(s._provider, "square", unmasked))


def release_task(s: Any, frames: Recorded, of: Election, sent: dict[str, list[bytes]], leak: bool) -> Any:
    """What this process was sent by each peer, by label, and its own shares of the two ballots."""
    start, shares = len(frames), []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as patches:
        boxes = of.filled(s, Path(folder), sent)
        if s.is_party:
            take = Box.take

            def watched(box: Box, numbers: Any) -> Any:
                shares.append(take(box, numbers))
                return shares[-1]

            patches.enter_context(patch.object(Box, "take", watched))
        if leak:
            zero_masks(s, patches)
        plan = StatisticPlan(Auxiliary.of(rows_of(WORDS, 1)), of.poll, Budget(Fraction(1)))
        statistic.release(s, boxes, plan)
    received = [(peer, f.label, f.payload) for way, peer, f in frames[start:] if way == "received"]
    return [(peer, label, payload) for peer, label, payload in received if payload.dtype == np.int64], shares


@pytest.fixture(scope="module")
def run(our_pair: Pool) -> Iterator[Callable[[int, bool], dict[str, Any]]]:
    def results(secret: int, leak: bool) -> dict[str, Any]:
        votes = {KNOWN: OF.votes(KNOWN), LAST: np.full((1, WORDS), int(secret != 0))}
        made = [OF.ballot(voter, vote) for voter, vote in votes.items()]
        sent = {party: [ballot[party].to_bytes() for ballot in made] for party in OF.parties}
        return our_pair.run(release_task, of=replace(OF), sent=sent, leak=leak)

    yield results


def view_of(attacker: str, run: Callable[[int, bool], dict[str, Any]], leak: bool = False) -> Callable[[int], View]:
    """Everything as long as the last ballot that `attacker` was sent, beside its share and the other ballot's words."""

    def view(secret: int) -> View:
        received, (shares,) = run(secret, leak)[attacker]
        words = {}
        seen: Counter[tuple[str, str]] = Counter()  # how messages of two peers mix is chance
        for peer, label, payload in received:
            if payload.shape == (2, WORDS):
                seen[peer, label] += 1
                number = seen[peer, label]
                words[f"{number} {label} OF {peer}".upper()] = payload[1]
                words[f"{number} THE SAME OF {peer}, {KNOWN}".upper()] = payload[0]
        assert words
        return {"ballots": {**dict(sorted(words.items())), "own share": shares[1], "known ballot": OF.votes(KNOWN)[0]}}

    return view


@pytest.mark.parametrize("attacker", OF.parties)
def test_all_but_one_ballot_and_one_party_see_uniform_words(attacker: str, run: Any) -> None:
    assert_hidden(view_of(attacker, run))


def test_check_values_of_a_vote_are_zeros_whatever_it_is(run: Any) -> None:
    for secret in (0, 1):
        received, (shares,) = run(secret, False)["p0"]
        (values,) = [payload for _, label, payload in received if payload.shape == (2, 40)]
        assert len(np.unique(values)) == values.size  # shares: the zeros are seen after adding one's own
        assert shares.shape == (2, WORDS)


def test_the_server_is_sent_the_noisy_statistic_and_public_facts_only(run: Any) -> None:
    received, _ = run(1, False)["server"]
    labels = {label for _, label, _ in received}
    assert labels == {"reveal: noisy statistic"}


def test_masks_of_zero_are_found_out(run: Any) -> None:
    with pytest.raises(AssertionError, match=r"not uniform|depends on the secret"):
        assert_hidden(view_of("p0", run, leak=True))
