"""The functional mechanism over real processes: the same integers as in the clear, exact to the bit without noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from launch.pool import Pool, TaskFailed
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from smpc import Cast, Held
from smpc.values import value_of
from tests.support import clear_fit, fit_task, held, schema, silenced, tables, words_of

pytestmark = pytest.mark.mpc
NAMES = ("ann", "bob", "cid", "dan", "eve")


def gram_task(s: Any, rows: int, widths: Mapping[str, int], bits: int) -> Any:
    """The exact Gram matrix at the server, from columns that each party draws for itself."""
    columns = {p: Held(p, columns_of(p, rows, w, bits) if s.me == p else None) for p, w in widths.items()}
    gram = s.gram(columns, rows=rows, widths=widths, bits=bits)
    opened = s.reveal(gram, to=s.cast.server, message="gram", unprotected=True)
    return value_of(opened) if s.me == s.cast.server else None


def columns_of(party: str, rows: int, width: int, bits: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    rng = np.random.default_rng([rows, NAMES.index(party)])
    return rng.integers(-(1 << bits), 1 << bits, (width, rows), endpoint=True)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_gram_equals_the_exact_integers_bit_for_bit(count: int) -> None:
    widths = {name: 1 + i % 3 for i, name in enumerate(NAMES[:count])}
    with Pool(Cast(NAMES[:count])) as pool:
        for rows, bits in ((20_190, 23), (1_000_000, 20), (1, 30), (7, 29)):
            opened = pool.run(gram_task, rows=rows, widths=widths, bits=bits)["server"]
            ones = np.full((1, rows), 1 << bits, dtype=np.int64)
            full = np.vstack([ones, *(columns_of(p, rows, w, bits) for p, w in widths.items())])
            assert np.array_equal(opened, full @ full.T)


def silent_task(s: Any, of: Any, values: Mapping[str, Any]) -> Any:
    plan = silenced(Plan.make(of, epsilon=Fraction(1)))
    return fit(s, held(s, values), plan).values


@pytest.mark.parametrize("count", [2, 3, 5])
def test_without_noise_coefficients_equal_the_clear_ones_bit_for_bit(count: int) -> None:
    of = schema(20_190, dict.fromkeys(NAMES[:count], 2), "bob")
    values = tables(of)
    expected, _ = clear_fit(of, values, silenced(Plan.make(of, epsilon=Fraction(1))))
    with Pool(Cast(NAMES[:count])) as pool:
        found = pool.run(silent_task, of=of, values=values)
    assert set(found) == {*NAMES[:count], "server"}
    for weights in found.values():
        assert np.array_equal(weights, expected.values)


def test_equal_words_give_equal_releases_and_transcripts() -> None:
    of = schema(500, {"ann": 2, "bob": 1, "cid": 3}, "bob")
    values = tables(of)
    with Pool(Cast(tuple(of.widths))) as pool:
        for noise in ("shares", "paper"):
            release, s = clear_fit(of, values, Plan.make(of, epsilon=Fraction(1), noise=noise))
            found = pool.run(fit_task, of=of, values=values, epsilon="1", noise=noise, bits=None)
            for weights, steps in found.values():
                assert np.array_equal(weights, release.values)
                expected = s.transcript.steps()
                assert steps[-len(expected) :] == expected  # the pool's session goes on


def options_task(s: Any, of: Any, values: Mapping[str, Any], options: Options, epsilon: Fraction | None) -> Any:
    s._own_random = words_of(s.me)
    return fit(s, held(s, values), Plan.make(of, epsilon=epsilon, options=options)).values


def test_bottom_up_logistic_and_vector_noise_run_over_processes() -> None:
    of = schema(400, {"ann": 2, "bob": 1, "cid": 1}, "bob")
    of = replace(of, label=replace(of.label, high=1.0))
    values = tables(of)
    values["bob"][-1] = (values["bob"][-1] > 0.5).astype(float)
    blocks = [(k, l) for i, k in enumerate(of.features) for l in list(of.features)[i:]]
    budgets = {block: Fraction(1, 1 + i) for i, block in enumerate(blocks)}
    cases: list[tuple[Options, Fraction | None]] = [
        (Options(loss="logistic", budgets=budgets), None),
        (Options(loss="logistic", mechanism="gaussian", delta=Fraction(1, 10**6)), Fraction(1)),
        (Options(mechanism="gamma-norm"), Fraction(1)),
        (Options(sensitivity="paper", release="ordered"), Fraction(1)),
        (Options(weights="balanced", repair="posterior"), Fraction(1)),
        (Options(loss="logistic", weights="balanced", repair="rescaled"), Fraction(1)),
    ]
    with Pool(Cast(tuple(of.widths))) as pool:
        for options, epsilon in cases:
            expected, _ = clear_fit(of, values, Plan.make(of, epsilon=epsilon, options=options))
            found = pool.run(options_task, of=of, values=values, options=options, epsilon=epsilon)
            for weights in found.values():
                assert np.array_equal(weights, expected.values)


def bits_task(s: Any, of: Any, values: Mapping[str, Any], bits: int, epsilon: str) -> Any:
    return fit(s, held(s, values), Plan.make(of, epsilon=Fraction(epsilon), bits=bits)).values


@pytest.mark.parametrize("other", [{"bits": 19}, {"epsilon": "1/2"}])
def test_participants_with_another_plan_stop_everybody(other: Mapping[str, Any]) -> None:
    of = schema(300, {"ann": 1, "bob": 1}, "bob")
    with Pool(Cast(tuple(of.widths))) as pool, pytest.raises(TaskFailed) as caught:
        pool.run(bits_task, {"bob": other}, of=of, values=tables(of), bits=20, epsilon="1")
    assert "PeerError" in str(caught.value) and "bob" in str(caught.value)
