"""The verb's own rules, and whose coins decide, in the clear session, which uses every party's words too."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.joint_laplace import JointLaplace
from mechanisms.laws import discrete_laplace_law, law_p_value
from mechanisms.randomness import RandomWords, SecureRandom
from smpc import Cast, ClearSession, Held, InputError
from smpc.ring import Integers
from smpc.values import value_of
from tests.joint.adversaries import FIXED, fixed_words

NAMES = ("ann", "bob", "cid")
LAW = JointLaplace.within(Fraction(20), Fraction(1, 2**56))
COUNT = 20_000


def noise_of(random: Mapping[str, RandomWords] | None, shape: tuple[int, ...] = (COUNT,)) -> Integers:
    s = ClearSession(Cast(NAMES), random=random)
    shared = s.add_joint_noise(s.share(Held("ann", np.full(shape, 7)), shape), LAW)
    return value_of(s.reveal(shared, to="server", message="noisy")) - 7


def test_law_and_deviation_are_those_of_one_draw() -> None:
    values = noise_of(None)
    assert law_p_value(values, discrete_laplace_law(LAW.scale)) > 1e-9
    assert values.std() == pytest.approx(LAW.standard_deviation, rel=0.1)


@pytest.mark.parametrize("honest", NAMES)
@pytest.mark.parametrize("words", list(FIXED))
def test_one_honest_party_suffices(honest: str, words: str) -> None:
    """Everybody else's words are fixed by an adversary."""
    others = {name: fixed_words(words) for name in NAMES if name != honest}
    values = noise_of({**others, honest: SecureRandom(), "server": SecureRandom()})
    assert law_p_value(values, discrete_laplace_law(LAW.scale)) > 1e-9


def test_without_an_honest_party_nothing_is_random() -> None:
    """What the tests above can see. Dropping one party's words (as zeros) leaves the law as it is while another party
    is honest, so no test of draws from honest parties finds it: only the fixed words above do, one party at a time.
    """
    zeros = {name: fixed_words("zeros") for name in (*NAMES, "server")}
    assert len(np.unique(noise_of(zeros))) == 1
    dropped = {**dict.fromkeys(NAMES, SecureRandom()), "bob": fixed_words("zeros"), "server": SecureRandom()}
    assert law_p_value(noise_of(dropped), discrete_laplace_law(LAW.scale)) > 1e-9


def test_any_shape_and_every_entry() -> None:
    values = noise_of(None, (3, 5, 40))
    assert values.shape == (3, 5, 40)
    assert len(np.unique(values)) > 30
    assert noise_of(None, (0,)).shape == (0,)


def test_noise_tag_and_transcript() -> None:
    s = ClearSession(Cast(NAMES))
    shared = s.add_joint_noise(s.share(Held("ann", np.zeros(3, dtype=np.int64)), (3,), bits=4), LAW)
    assert shared.noise == ("joint",) and shared.fraction_bits == 4
    s.reveal(shared, to="server", message="noisy")
    assert s.transcript.steps() == [
        ("dealer -> P_k", "corrections"),
        ("P_k -> P_l", "masked noise bits"),
        ("P_k -> server", "noisy"),
    ]
    assert s.transcript.messages[-1].noise == ("joint",)
    assert s.transcript.messages[1].verb == "add_joint_noise" and s.transcript.messages[1].shape == (3,)


def test_noise_is_added_once() -> None:
    s = ClearSession(Cast(NAMES))
    shared = s.add_joint_noise(s.share(Held("ann", np.zeros(2, dtype=np.int64)), (2,)), LAW)
    with pytest.raises(InputError, match="carry noise of joint already"):
        s.add_joint_noise(shared, LAW)
    own = s.draw_noise(DiscreteLaplace(Fraction(3)), {"ann": np.ones(2, dtype=np.bool_)})
    with pytest.raises(InputError, match="carry noise of joint already"):
        s.add_noise(shared, own)
