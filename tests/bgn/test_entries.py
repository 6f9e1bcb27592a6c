"""Which entry is whose, and how large it can be."""

from __future__ import annotations

import numpy as np
import pytest

from smpc.bgn.entries import BoundedNoise, Entries
from smpc.errors import InputError

PARTIES = ("ann", "bob", "cid")
WIDTHS = {"ann": 2, "bob": 1, "cid": 2}
OWNER = [-1, 0, 0, 1, 2, 2]
COLUMN = [0, 0, 1, 0, 0, 1]


def gram() -> Entries:
    return Entries.of_gram(PARTIES, WIDTHS, np.zeros((6, 6), np.int64), {}, 100)


def test_gram_entries_are_with_the_holders_of_their_columns() -> None:
    entries = gram()
    for i in range(6):
        for j in range(6):
            held = sorted({OWNER[i], OWNER[j]} - {-1}) or [-1]
            assert (entries.first[i, j], entries.second[i, j]) == (held[0], held[-1])
            if len(held) == 2:
                a, b = (i, j) if OWNER[i] == held[0] else (j, i)
                assert entries.place[i, j] == COLUMN[a] * WIDTHS[PARTIES[held[1]]] + COLUMN[b]


def test_pairs_and_own_entries_cover_every_entry_once() -> None:
    entries = gram().flat()
    places = [entries.own(party) for party in PARTIES] + [places for _, _, places in entries.pairs()]
    assert sorted(np.concatenate(places).tolist()) == list(range(36))
    pairs = {(k, l): len(places) for k, l, places in entries.pairs()}
    assert pairs == {("ann", "bob"): 4, ("ann", "cid"): 8, ("bob", "cid"): 4}


def test_the_window_holds_the_largest_factor_and_the_noise() -> None:
    index = np.array([1, 1, 3]), np.array([3, 4, 5])
    taken = gram().take(index, np.array([1, -7, 2])).take((np.array([0, 1]),), 3)
    assert taken.times.tolist() == [3, -21]
    assert taken.reach == 2100
    noise = BoundedNoise(2, {}, {"ann": np.array([True, True])}, 55)
    assert taken.with_noise(noise).reach == 2155


def test_noise_is_taken_from_holders_and_of_a_constant_from_anyone() -> None:
    taken = gram().take((np.array([0, 1]), np.array([0, 3])), 1)
    of_bob = BoundedNoise(2, {}, {"bob": np.array([True, True])}, 1)
    noisy = taken.with_noise(of_bob)
    assert noisy.second.tolist() == [1, 1] and noisy.first.tolist() == [1, 0]
    of_cid = BoundedNoise(2, {}, {"cid": np.array([False, True])}, 1)
    with pytest.raises(InputError, match="noise of cid on values of others"):
        taken.with_noise(of_cid)
    both = BoundedNoise(2, {}, {"ann": np.array([True, True]), "bob": np.array([True, True])}, 1)
    with pytest.raises(InputError, match="noise of bob on values of others"):
        taken.with_noise(both)
