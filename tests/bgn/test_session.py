"""Protocols on the bgn session, in real processes: the integers of the clear session, the table of messages, cheats."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from launch.pool import Pool, TaskFailed
from protocols.options import Options
from protocols.plan import Plan
from smpc.bgn import opening, session
from smpc.bgn.curve import GT
from smpc.session import Cast
from smpc.transcript import table
from tests.bgn import tasks
from tests.bgn.support import columns
from tests.support import clear_fit, schema, tables

pytestmark = pytest.mark.mpc

THREE = ("ann", "bob", "cid")
WIDTHS = {"ann": 2, "bob": 1, "cid": 3}


@pytest.fixture(scope="module")
def three() -> Iterator[Pool]:
    with Pool(Cast(THREE, dealer=None)) as pool:
        yield pool


def whole(parts: dict[str, Any], one: int) -> Any:
    rows = next(iter(parts.values())).shape[1]
    every = np.vstack([np.full((1, rows), one), *parts.values()])
    return every @ every.T


@pytest.mark.parametrize("receiver", ["server", "ann", "cid"])
def test_gram_matrices_open_exactly_to_anyone(three: Pool, receiver: str) -> None:
    parts = {name: columns(i, width, 300, 16) for i, (name, width) in enumerate(WIDTHS.items())}
    opened = three.run(tasks.gram_of, columns=parts, bits=4, receiver=receiver)
    assert np.array_equal(opened[receiver], whole(parts, 16))


@pytest.mark.parametrize("count", [2, 5])
def test_other_numbers_of_parties(count: int) -> None:
    parts = {f"p{i}": columns(i, 1 + i % 2, 7, 16) for i in range(count)}
    with Pool(Cast(tuple(parts), dealer=None)) as pool:
        opened = pool.run(tasks.gram_of, columns=parts, bits=4, receiver="server")
    assert np.array_equal(opened["server"], whole(parts, 16))


@pytest.mark.parametrize("names", [("ann", "cid"), ("cid", "bob")])
def test_inner_products_of_a_pair_in_either_order(three: Pool, names: tuple[str, str]) -> None:
    x, y = columns(1, 2, 9, 64), columns(2, 3, 9, 64)
    opened = three.run(tasks.inner_of, x=x, y=y, names=names)
    product = x @ y.T
    assert opened["server"].tolist() == [-3 * product[0, 2], 2 * product[1, 0]]


@pytest.mark.parametrize(
    ("noise", "options"),
    [
        ("shares", Options()),
        ("paper", Options()),
        ("shares", Options(release="ordered", sensitivity="paper")),
        ("shares", Options(mechanism="gaussian", delta=Fraction(1, 10**6))),
    ],
    ids=["shares", "paper", "ordered", "gaussian"],
)
def test_fit_releases_what_the_clear_session_releases(three: Pool, noise: str, options: Options) -> None:
    of = schema(90, WIDTHS, "bob")
    values = tables(of)
    expected, _ = clear_fit(of, values, Plan.make(of, epsilon=Fraction(1), noise=noise, options=options))
    results = three.run(tasks.fit_on_bgn, of=of, values=values, epsilon="1", noise=noise, options=options)
    for released, _, _, warnings in results.values():
        assert np.array_equal(released, expected.values)
        assert warnings == []


def test_the_table_of_messages_is_what_was_sent(three: Pool) -> None:
    of = schema(20, WIDTHS, "bob")
    results = three.run(tasks.fit_on_bgn, of=of, values=tables(of), epsilon="1", noise="shares", options=Options())
    for _, steps, report, _ in results.values():
        assert steps == table(session.__doc__ or "")
        assert set(report.predicted) == set() if report.party == "server" else {"product", "opening"}


def test_what_the_backend_cannot_do_is_refused_before_anything_is_sent(three: Pool) -> None:
    for messages in three.run(tasks.refused).values():
        assert messages[0].startswith("InputError: total: the bgn backend")
        assert messages[1].startswith("InputError: check_zero: the bgn backend")
        assert messages[2].startswith("InputError: noise of bob on values of others")
        assert messages[3].startswith("InputError: fraction_bits = 3: sums over 2 rows with their noise")
        assert messages[4].startswith("InputError: mechanism = ")


def test_each_of_the_two_makes_the_sums_fresh_even_without_noise() -> None:
    """No component of a ciphertext survives: not from the server to k, not from l to what k decrypts partly."""
    parts = {name: columns(i, 2, 5, 16) for i, name in enumerate(("ann", "bob"))}
    with Pool(Cast(tuple(parts), dealer=None), record=True) as pool:
        seen = pool.run(tasks.openings_of, columns=parts)["bob"]
    size = 4 * GT.size
    stages = [
        seen[opening.SUMS].reshape(-1, 4, GT.size),
        seen[opening.NOISY].reshape(-1, 4, GT.size),
        seen[opening.PARTIAL][: 8 * size].reshape(-1, 4, GT.size),
    ]
    assert [len(stage) for stage in stages] == [8, 8, 8]  # both orders of 2 x 2 columns
    elements = {element.tobytes() for stage in stages[1:] for element in stage.reshape(-1, GT.size)}
    assert len(elements) == 2 * 8 * 4
    assert elements.isdisjoint(element.tobytes() for element in stages[0].reshape(-1, GT.size))


def test_a_dealer_is_refused() -> None:
    with pytest.raises(ValueError, match="dealer = 'dealer': the bgn backend has none"):
        session.BgnSession(Cast(THREE), None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "cheater", "named"),
    [
        ("garbage upload", "ann", "ann: encrypted columns: entry 0 is no element of G1"),
        ("wrong power", "ann", "ann: its partial decryption is not by its published key"),
        ("silence", "ann", "ann stopped at"),
        ("outside the window", "server", "a value left the window"),
    ],
)
def test_who_cheats_or_stops_is_named_and_nothing_hangs(how: str, cheater: str, named: str) -> None:
    parts = {name: columns(i, 1, 5, 16) for i, name in enumerate(("ann", "bob"))}
    with Pool(Cast(tuple(parts), dealer=None), deadline=10) as pool, pytest.raises(TaskFailed, match=named):
        pool.run(tasks.cheat, columns=parts, cheater=cheater, how=how)
