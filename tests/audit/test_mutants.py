"""Which test catches which mistake, and that nothing is caught where there is none (alpha = 1e-9 each).

mistake                                            caught by
noise halved, divided by root two                  test_wrong_release (HalfNoise, NoiseOverRootTwo), test_wrong_sampler
L2 sensitivity where L1 belongs                    test_wrong_release (L2ForL1)
add or remove where replace belongs, integer // 2  test_wrong_release (AddRemoveForReplace, HalvedInteger)
lower bound used twice                             test_wrong_release (LowerBoundTwice)
clamped after the sum                              test_wrong_release (ClampAfterSum)
noise on one coordinate                            test_wrong_release (NoiseOnOneCoordinate)
a party's share dropped, T shares subtracted       test_wrong_release (DroppedShare)
share scaled by 1/K with colluders                 test_wrong_release (NoiseSplitBetweenParties)
same seed at all parties, constant seed            test_wrong_release (SameSeedEverywhere, ConstantSeed)
forked generator                                   mechanisms/test_randomness.py::test_a_fork_draws_new_words
float noise: wrong law, precision of the sum       test_wrong_sampler, test_float_noise_shows_the_value_it_hides
label protection in float arithmetic               test_float_gradients_show_the_label
reuse without memo, one draw for two releases      test_wrong_release (FreshNoise..., NoiseReused...)
budget uncharged on abort                          test_a_ledger_that_charges_at_the_end_is_caught
NaN epsilon                                        mechanisms/test_accounting.py::test_nothing_bad_becomes_a_cheap...
Gaussian sigma halved, times 0.8                   mechanisms/test_audit.py::test_mu_of_gaussian_noise
sampler mistakes (12)                              test_wrong_sampler
Not of this layer: noise after truncation, the trusted-first-party provider (tests of smpc).
"""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechanisms.audit import epsilon_lower_bound, events
from mechanisms.coalition import Coalition
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.guarantee import Row
from mechanisms.laws import discrete_laplace_law, law_p_value
from mechanisms.ledger import Account, Ledger
from mechanisms.neighbours import ReplaceRecord
from mechanisms.randomness import SecureRandom
from tests.audit.mutants import MUTANTS, WRONG_SAMPLERS
from tests.audit.pipeline import RAW, Release, attack


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_wrong_release(mutant: type[Release]) -> None:
    assert attack(mutant()).value > mutant().epsilon


@pytest.mark.parametrize("colluders", [0, 1, 2])
def test_right_release_against_every_coalition(colluders: int) -> None:
    """The table's rows: server with T = colluders parties. What is left after subtracting their draws keeps epsilon."""
    bound = attack(Release(parties=3, colluders=colluders))
    assert bound.value <= 1
    if colluders == 2:
        assert bound.value > 0.8  # one honest draw is left, and the attack nearly uses it up


@pytest.mark.parametrize("colluders", [1, 2])
def test_an_honest_draw_alone_has_the_full_law(colluders: int) -> None:
    release = Release(parties=colluders + 1, colluders=colluders)
    opened, _ = release.view(RAW[0], 10_000)
    values = (opened - release.statistics(RAW[0])).ravel()
    assert law_p_value(values, discrete_laplace_law(release.scale())) > 1e-9


def test_worst_case_neighbours_attain_the_sensitivity() -> None:
    release = Release()
    change = np.abs(release.statistics(RAW[0]) - release.statistics(RAW[1])).sum()
    assert change == release.sensitivity()


def test_no_false_alarms_even_at_a_loose_level() -> None:
    assert sum(attack(Release(), runs=2_000, alpha=0.5).value > 1 for _ in range(20)) <= 4


@pytest.mark.parametrize("sampler", WRONG_SAMPLERS.values(), ids=WRONG_SAMPLERS)
def test_wrong_sampler(sampler) -> None:
    scale = Fraction(2)
    assert law_p_value(sampler(scale, 100_000), discrete_laplace_law(scale)) < 1e-9


def test_right_sampler() -> None:
    values = DiscreteLaplace(Fraction(2)).draw(100_000, SecureRandom())
    assert law_p_value(values, discrete_laplace_law(Fraction(2))) > 1e-9


def outcomes_of_float_noise(value: float, n: int) -> np.ndarray:
    """Units of 2^-34 in value + float noise: a large value leaves no room for fine digits (Mironov 2012)."""
    return np.floor((value + np.random.default_rng().laplace(0, 2.0**20, n)) * 2.0**34).astype(np.int64)


def test_float_noise_shows_the_value_it_hides() -> None:
    registered = events(0, 2.0**54)
    small, large = (outcomes_of_float_noise(value, 20_000) for value in (0.0, 2.0**20))
    found = epsilon_lower_bound(small, large, registered)
    assert found.value > 1
    assert "mod" in found.event
    integers = DiscreteLaplace(Fraction(2**20))
    exact = [v + integers.draw(20_000, SecureRandom()) for v in (0, 2**20)]
    assert epsilon_lower_bound(exact[0], exact[1], events(2**19, 2.0**20)).value <= 1


def gradients(label: int, epsilon: float, n: int, on_label: bool) -> np.ndarray:
    """1 if the released gradient is one that the attacker's label 1 explains exactly, shape (n,); dimension 16."""
    generator = np.random.default_rng()
    g = generator.normal(size=(2, n, 16))
    if on_label:  # t = y + noise on a lattice first, then a function of t only
        t = label + DiscreteLaplace(Fraction(2**10) / Fraction(epsilon)).draw(n, SecureRandom()) / 2**10
        released = g[0] + t[:, None] * (g[1] - g[0])
    else:
        u = generator.laplace(0, 1 / epsilon, (n, 1))
        released = g[label] + u * (g[1 - label] - g[label])
    explained = np.zeros((2, n))
    for guess in (0, 1):
        step = g[1 - guess] - g[guess]
        u = np.median((released - g[guess]) / step, axis=1)[:, None]
        explained[guess] = np.sum(g[guess] + u * step == released, axis=1)
    return (explained[1] > explained[0]).astype(int)


def test_float_gradients_show_the_label() -> None:
    registered = events(0, 1.0)
    wrong = [gradients(label, 0.1, 20_000, on_label=False) for label in (0, 1)]
    assert epsilon_lower_bound(wrong[0], wrong[1], registered).value > 0.1
    right = [gradients(label, 0.1, 20_000, on_label=True) for label in (0, 1)]
    assert epsilon_lower_bound(right[0], right[1], registered).value <= 0.1


class ChargesAtTheEnd(Ledger):
    """The mistake: `reserve` only looks, the charge follows when the job has ended well."""

    def reserve(self, data_set: str, row: Row, *, job: str) -> Account:
        return self.accounts()[0]


@pytest.mark.parametrize(("kind", "charged"), [(Ledger, True), (ChargesAtTheEnd, False)])
def test_a_ledger_that_charges_at_the_end_is_caught(kind: type[Ledger], charged: bool, tmp_path: Path) -> None:
    ledger = kind(tmp_path / "ledger")
    ledger.cap("patients", "record", 1)
    row = Row(Coalition(frozenset({"server"})), ReplaceRecord(), Fraction(1, 10), Fraction(0), "noise", "pure sum")
    for _ in range(2):  # a job that is aborted, and its retry
        ledger.reserve("patients", replace(row, epsilon=Fraction(1, 5)), job="monday")
    assert (ledger.accounts()[0].spent_epsilon == Fraction(2, 5)) == charged


def test_audit_of_label_protection_matches_theory() -> None:
    """Laplace noise on a label at epsilon = 1: the sign of t - 1/2 guesses right with 1 - exp(-1/2) / 2 = 0.697."""
    t = DiscreteLaplace(Fraction(2**20)).draw(50_000, SecureRandom())
    assert np.mean(t > -(2**19)) == pytest.approx(1 - math.exp(-0.5) / 2, abs=0.02)
