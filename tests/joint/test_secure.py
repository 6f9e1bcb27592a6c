"""Joint draws between real processes: the clear session's integers, the law, the coins, the costs, what is opened."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from launch.pool import Pool, TaskFailed
from mechanisms.joint_laplace import JointLaplace, unpack
from mechanisms.laws import discrete_laplace_law, law_p_value
from protocols.functional.plan import Plan
from smpc import Cast, ClearSession, Held
from smpc.values import value_of
from tests.joint.adversaries import FIXED
from tests.joint.tasks import draw_task, opened_bits
from tests.support import clear_fit, fit_task, schema, tables, words_of

pytestmark = pytest.mark.mpc

ALPHA = 1e-9
REACH = Fraction(1, 2**56)
NAMES = ("ann", "bob", "cid")


@pytest.fixture(scope="module", params=[2, 3])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    with Pool(Cast(NAMES[: request.param])) as running:
        yield running


@pytest.mark.parametrize(
    ("scale", "count", "piece_digits"),
    [
        (Fraction(1, 2**62), 5, None),
        (Fraction(1, 3), 1, None),
        (Fraction(1), 64, None),
        (Fraction(50), 1000, 16 * 64 * 3),
        (Fraction(65536), 65, None),
        (Fraction(2**56), 130, None),
        (Fraction(2**58), 300, 1),
        (Fraction(7), 0, None),
    ],
    ids=str,
)
def test_equal_words_give_the_clear_sessions_integers(
    pool: Pool, scale: Fraction, count: int, piece_digits: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    law = JointLaplace.within(scale, REACH)
    results = pool.run(draw_task, law=law, count=count, words="replayed", piece_digits=piece_digits)
    if piece_digits is not None:
        monkeypatch.setattr("mechanisms.joint_laplace._PIECE_DIGITS", piece_digits)
    s = ClearSession(pool.cast, random={name: words_of(name) for name in pool.cast.everyone})
    shared = s.add_joint_noise(s.share(Held("ann", np.zeros(count, dtype=np.int64)), (count,)), law)
    expected = value_of(s.reveal(shared, to="server", message="noisy"))
    assert np.array_equal(results["server"], expected)
    assert len(np.unique(expected)) > 1 or scale < 1 or count == 0


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(16), Fraction(65536), Fraction(2**58)], ids=str)
def test_law(pool: Pool, scale: Fraction) -> None:
    values = pool.run(draw_task, law=JointLaplace.within(scale, REACH), count=20_000)["server"]
    assert law_p_value(values, discrete_laplace_law(scale)) > ALPHA


@pytest.mark.parametrize("honest", NAMES)
@pytest.mark.parametrize("words", list(FIXED))
def test_one_honest_party_suffices(pool: Pool, honest: str, words: str) -> None:
    """The others' words are an adversary's. A party whose words were dropped would make this noise constant."""
    if honest not in pool.cast.parties:
        pytest.skip("takes no part")
    law = JointLaplace.within(Fraction(20), REACH)
    values = pool.run(draw_task, law=law, count=20_000, words=words, honest=honest)["server"]
    assert law_p_value(values, discrete_laplace_law(law.scale)) > ALPHA


def test_constant_words_of_everybody_give_constant_noise(pool: Pool) -> None:
    values = pool.run(draw_task, law=JointLaplace(Fraction(20), 10), count=200, words="zeros")["server"]
    assert not values.any()


def test_fit_equals_the_clear_session(pool: Pool) -> None:
    of = schema(60, dict.fromkeys(pool.cast.parties, 2), "bob")
    values = tables(of)
    results = pool.run(fit_task, of=of, values=values, epsilon="1", noise="joint", bits=None)
    release, s = clear_fit(of, values, Plan.make(of, epsilon=Fraction(1), noise="joint"))
    for weights, steps in results.values():
        assert np.array_equal(weights, release.values)
        assert steps[-len(s.transcript.steps()) :] == s.transcript.steps()


def test_rounds_and_bytes(pool: Pool) -> None:
    count = 64 * 40
    law = JointLaplace.within(Fraction(16), REACH)
    results = pool.run(draw_task, law=law, count=count)
    peers = len(pool.cast.parties) - 1
    for party in pool.cast.parties:
        rounds, predicted, counted = results[party]
        assert rounds <= 7 + 2  # the dealer's answers come before them, once
        assert predicted["joint noise"] == pytest.approx(counted["joint noise"], rel=0.01)
        assert counted["joint noise"] / count / peers == pytest.approx(39.5 * law.bits, rel=0.02)


@pytest.mark.parametrize("unmasked", [False, True])
def test_opened_values_are_uniform(pool: Pool, unmasked: bool) -> None:
    """Each bit that the parties open between them is fair; without a mask, high digits would show as zeros."""
    law = JointLaplace.within(Fraction(16), REACH)
    results = pool.run(opened_bits, law=law, count=64 * 100, unmasked=unmasked)
    opened = results["bob"]
    assert [len(np.ravel(part)) // (2 * law.bits * 100) for part in opened] == [64, 48, 24, 12, 6, 3, 1]
    least = 1.0
    for part in opened:
        bits = unpack(part.reshape(-1, 100))  # one row a digit and plane
        ones = bits.sum(axis=1)
        least = min(least, *(float(stats.binomtest(int(k), bits.shape[1]).pvalue) for k in ones))
    assert (least > ALPHA) is not unmasked


def test_parties_with_another_law_stop() -> None:
    """The last test of its pool: a failed task ends it."""
    laws = {name: {"law": JointLaplace(Fraction(10 + k), 8)} for k, name in enumerate((*NAMES[:2], "server"))}
    with Pool(Cast(NAMES[:2])) as own, pytest.raises(TaskFailed, match="out of step"):
        own.run(draw_task, laws, count=10)
