"""k-ary randomised response has its exact law, for every answer."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mechanisms import bernoulli
from mechanisms.laws import law_p_value, table_law
from mechanisms.randomized_response import RandomizedResponse
from mechanisms.randomness import SecureRandom

N = 40_000


@pytest.mark.parametrize("categories", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_law(epsilon: Fraction, categories: int) -> None:
    mechanism = RandomizedResponse(epsilon, categories)
    weights = np.ones(categories)
    for answer in (0, categories - 1):
        weights[:] = 1
        weights[answer] = math.exp(epsilon)
        said = mechanism.respond(np.full(N, answer), SecureRandom())
        assert law_p_value(said, table_law(np.arange(categories), weights)) > 1e-9


def test_exact_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bernoulli, "MARGIN", 1 / 16)
    said = RandomizedResponse(Fraction(1), 3).respond(np.ones(20_000, dtype=np.int64), SecureRandom())
    assert law_p_value(said, table_law(np.arange(3), np.array([1, math.e, 1]))) > 1e-9


def test_every_answer_is_as_private_as_said() -> None:
    mechanism = RandomizedResponse(Fraction(2), 5)
    truth = mechanism.truth_probability
    assert truth / ((1 - truth) / 4) == pytest.approx(math.exp(2), rel=1e-14)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 1000])
def test_uniform_integers(bound: int) -> None:
    values = bernoulli.uniform_integers(bound, N, SecureRandom())
    assert law_p_value(values, table_law(np.arange(bound), np.ones(bound))) > 1e-9


@pytest.mark.parametrize("answers", [[2], [-1], [0, 1, 5]])
def test_refuses_foreign_answers(answers: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^answers="):
        RandomizedResponse(Fraction(1), 2).respond(np.array(answers), SecureRandom())


def test_refuses_bad_settings() -> None:
    for settings in [(Fraction(0), 2), (Fraction(1), 1), (Fraction(1), True), (float("nan"), 2)]:
        with pytest.raises((ValueError, TypeError), match=r"^(epsilon|categories)="):
            RandomizedResponse(*settings)  # type: ignore[arg-type]  # wrong on purpose
    assert RandomizedResponse(Fraction(1)).respond(np.empty(0, np.int64), SecureRandom()).shape == (0,)
