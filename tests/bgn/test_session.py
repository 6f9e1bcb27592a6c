"""Protocols on the bgn session, in real processes and all modes: the integers of the clear session, the table of
messages, cheats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from launch.pool import Pool, TaskFailed
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from smpc.bgn import linear_mode, pair_mode, session, threshold_mode
from smpc.bgn.curve import GT
from smpc.bgn.dlog import WINDOW
from smpc.bgn.modes import Keys
from smpc.cast import Cast
from smpc.errors import InputError
from smpc.transcript import table
from tests.bgn import tasks
from tests.bgn.support import columns
from tests.support import clear_fit, schema, tables

pytestmark = pytest.mark.mpc

THREE = ("ann", "bob", "cid")
WIDTHS = {"ann": 2, "bob": 1, "cid": 3}
MODES = [Keys("pair"), Keys("linear"), Keys("threshold"), Keys("threshold", 2)]
modes = pytest.mark.parametrize("keys", MODES, ids=lambda keys: f"{keys.mode} {keys.threshold or ''}".strip())


@pytest.fixture(scope="module")
def three() -> Iterator[Pool]:
    with Pool(Cast(THREE, dealer=None)) as pool:
        yield pool


def whole(parts: dict[str, Any], one: int) -> Any:
    rows = next(iter(parts.values())).shape[1]
    every = np.vstack([np.full((1, rows), one), *parts.values()])
    return every @ every.T


@modes
@pytest.mark.parametrize("receiver", ["server", "ann", "cid"])
def test_gram_matrices_open_exactly_to_anyone(three: Pool, receiver: str, keys: Keys) -> None:
    rows = 600 if receiver == "server" and not keys.threshold else 20  # three messages, or one
    parts = {name: columns(i, width, rows, 16) for i, (name, width) in enumerate(WIDTHS.items())}
    results = three.run(tasks.gram_of, columns=parts, bits=4, receiver=receiver, keys=keys)
    assert np.array_equal(results[receiver][0], whole(parts, 16))
    assert [warnings for _, warnings in results.values()] == [[]] * 4


@pytest.mark.parametrize("count", [2, 5])
def test_other_numbers_of_parties(count: int) -> None:
    parts = {f"p{i}": columns(i, 1 + i % 2, 7, 16) for i in range(count)}
    with Pool(Cast(tuple(parts), dealer=None)) as pool:
        for keys in (*MODES, Keys("threshold", count)):
            results = pool.run(tasks.gram_of, columns=parts, bits=4, receiver="server", keys=keys)
            assert np.array_equal(results["server"][0], whole(parts, 16)), keys


@modes
@pytest.mark.parametrize("names", [("ann", "cid"), ("cid", "bob")])
def test_inner_products_of_a_pair_in_either_order(three: Pool, names: tuple[str, str], keys: Keys) -> None:
    x, y = columns(1, 2, 9, 64), columns(2, 3, 9, 64)
    opened = three.run(tasks.inner_of, x=x, y=y, names=names, keys=keys)
    product = x @ y.T
    assert opened["server"].tolist() == [-3 * product[0, 2], 2 * product[1, 0]]


ORDINARY = Options()
OTHERS = {
    "ordered": Options(release="ordered", sensitivity="paper"),
    "gaussian": Options(mechanism="gaussian", delta=Fraction(1, 10**6)),
    "budgets": Options(budgets={(p, q): Fraction(1) for p in THREE for q in THREE if p <= q}),
}


@pytest.mark.parametrize(
    ("keys", "noise", "options"),
    [
        *[pytest.param(keys, noise, ORDINARY, id=f"{keys} {noise}") for keys in MODES for noise in ("shares", "paper")],
        *[pytest.param(Keys(), "shares", options, id=name) for name, options in OTHERS.items()],
    ],
)
def test_fit_releases_what_the_clear_session_releases(three: Pool, noise: str, options: Options, keys: Keys) -> None:
    of = schema(90, WIDTHS, "bob")
    values, epsilon = tables(of), None if options.budgets else "1"
    plan = Plan.make(of, epsilon=Fraction(1) if epsilon else None, noise=noise, options=options, room=WINDOW)
    expected, _ = clear_fit(of, values, plan)
    results = three.run(
        tasks.fit_on_bgn, of=of, values=values, epsilon=epsilon, noise=noise, options=options, keys=keys
    )
    cast = keys.cast(Cast(THREE, dealer=None))
    for release, _, _, warnings in results.values():
        assert np.array_equal(release.values, expected.values)
        assert release.guarantee == plan.guarantee(cast)
        assert warnings == []


@pytest.mark.parametrize(
    ("keys", "module"),
    [(Keys("pair"), pair_mode), (Keys("linear"), linear_mode), (Keys("threshold"), threshold_mode)],
    ids=["pair", "linear", "threshold"],
)
def test_the_table_of_messages_is_what_was_sent(three: Pool, keys: Keys, module: Any) -> None:
    of = schema(20, WIDTHS, "bob")
    results = three.run(
        tasks.fit_on_bgn, of=of, values=tables(of), epsilon="1", noise="shares", options=Options(), keys=keys
    )
    for _, steps, report, _ in results.values():
        assert steps == table(module.__doc__ or "")
        assert report.predicted == report.counted and set(report.predicted) == {"keys", "product", "opening"}
        uploads = report.party != "server" and (keys.mode, report.party) != ("linear", "cid")
        assert (report.predicted["product"] > 0) == uploads
        assert ("multiply" if report.party == "server" else "upload") in report.seconds


@pytest.mark.parametrize(("keys", "openers"), list(zip(MODES, (3, 3, 3, 2), strict=True)))
def test_the_guarantee_names_what_it_rests_on_and_who_opens_everything(keys: Keys, openers: int) -> None:
    of = schema(20, WIDTHS, "bob")
    guarantee = Plan.make(of, epsilon=Fraction(1), room=WINDOW).guarantee(keys.cast(Cast(THREE, dealer=None)))
    for row in guarantee.rows:
        assert (row.epsilon == math.inf) == (row.coalition.parties >= openers)
        if row.epsilon != math.inf:
            assert any("SXDH" in note for note in row.assumptions)
            assert any("2^-40" in note for note in row.assumptions)
            assert any("no multiple" in note for note in row.assumptions)
            assert not any("dealer" in note for note in row.assumptions)


@modes
def test_a_value_above_its_bound_stops_its_owner_before_encryption(keys: Keys) -> None:
    message = "bob: columns must be 1 x 3 within \\+-8"
    with Pool(Cast(("ann", "bob"), dealer=None), deadline=10) as pool, pytest.raises(TaskFailed, match=message):
        pool.run(tasks.out_of_range, keys=keys)


def test_what_the_backend_cannot_do_is_refused_before_anything_is_sent(three: Pool) -> None:
    for messages in three.run(tasks.refused).values():
        assert messages[0].startswith("InputError: total: the bgn backend")
        assert messages[1].startswith("InputError: check_zero: works on additive shares, which need a dealer")
        assert messages[2].startswith("InputError: noise of bob on values of others")
        assert messages[3].startswith(
            "InputError: fraction_bits = 3: a sum over 2 rows with its noise can leave the window"
        )
        assert messages[4].startswith("InputError: mechanism = ")
        assert messages[5].startswith("InputError: linear: the bgn backend")


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        (Keys("pair"), [("bob", "encrypted sums"), ("ann", "noisy sums"), ("bob", "partial decryption")]),
        (Keys("threshold"), [("ann", "encrypted sums"), ("bob", "noisy sums"), ("server", "final sums")]),
    ],
    ids=["pair", "threshold"],
)
def test_every_party_makes_the_sums_fresh_even_without_noise(keys: Keys, path: list[tuple[str, str]]) -> None:
    """No component of a ciphertext survives from one receiver to the next, up to what is decrypted."""
    parts = {name: columns(i, 2, 5, 16) for i, name in enumerate(("ann", "bob"))}
    with Pool(Cast(tuple(parts), dealer=None), record=True) as pool:
        seen = pool.run(tasks.openings_of, columns=parts, keys=keys)
    stages = [dict(seen[receiver])[label] for receiver, label in path]  # both orders of 2 x 2 columns: 8 sums
    elements = [element.tobytes() for stage in stages[1:] for element in stage.reshape(-1, GT.size)]
    assert len(set(elements)) == len(elements) == 2 * 8 * 4
    assert set(elements).isdisjoint(element.tobytes() for element in stages[0].reshape(-1, GT.size))


@pytest.mark.parametrize(
    ("keys", "cast", "told"),
    [
        ({}, {"dealer": "dealer"}, "dealer = 'dealer': the bgn backend has none"),
        ({"mode": "threshold", "threshold": 4}, {}, "threshold = 4: must be from 2 to the number of parties, 3"),
        ({"mode": "threshold", "threshold": 1}, {}, "threshold = 1: must be from 2"),
        ({"mode": "threshold", "threshold": 0}, {}, "threshold = 0: must be from 2"),
        ({"mode": "pairs"}, {}, "mode = 'pairs': must be one of pair, threshold, linear"),
        ({"threshold": 2}, {}, "threshold = 2: only mode = 'threshold' has one"),
    ],
)
def test_casts_and_modes_that_cannot_be_are_refused(keys: Any, cast: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        session.BgnSession(replace(Cast(THREE, dealer=None), **cast), None, None, Keys(**keys))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "how", "cheater", "named"),
    [
        (Keys("pair"), "garbage upload", "ann", "ann: encrypted columns: entry 0 is no element of G1"),
        (Keys("linear"), "garbage upload", "ann", "ann: encrypted columns: entry 0 is no element of G1"),
        (Keys("threshold"), "garbage upload", "bob", "bob: encrypted columns: entry 0 is no element of G2"),
        (Keys("pair"), "wrong power", "ann", "ann: its partial decryption is not by its published key"),
        (Keys("threshold"), "wrong share", "bob", "bob: its partial decryption is not by its key share"),
        (Keys("pair"), "silence", "ann", "ann stopped at"),
        (Keys("pair"), "larger sums", "server", "a value left the window"),
        (Keys("threshold"), "larger sums", "server", "a value left the window"),
        (Keys("linear"), "larger noise", "bob", "a value left the window"),
    ],
)
def test_who_cheats_or_stops_is_named_and_nothing_hangs(keys: Keys, how: str, cheater: str, named: str) -> None:
    parts = {name: columns(i, 1, 5, 16) for i, name in enumerate(("ann", "bob"))}
    with Pool(Cast(tuple(parts), dealer=None), deadline=10) as pool, pytest.raises(TaskFailed, match=named):
        pool.run(tasks.cheat, columns=parts, cheater=cheater, how=how, keys=keys)
