"""Sensitivities of minimisers: gradients by brute force over labels, minimisers by solving worst cases."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms import minimiser
from mechanisms.minimiser import Loss


def slope(z: float) -> float:
    """l'(z) of the logistic loss."""
    return -1 / (1 + math.exp(z))


def share_gradient(z: float, share: float) -> float:
    return share * slope(z) - (1 - share) * slope(-z)


@pytest.mark.parametrize("parties", [1, 2, 5])
def test_logistic_gradient_changes_by_one_over_the_parties(parties: int) -> None:
    largest = max(
        abs(share_gradient(z, (k + 1) / parties) - share_gradient(z, k / parties))
        for z in np.linspace(-30, 30, 61)
        for k in range(parties)
    )
    assert largest == pytest.approx(float(minimiser.gradient_change(Loss.LOGISTIC, parties=parties)), rel=1e-12)
    assert minimiser.gradient_change(Loss.MARGIN, parties=parties) == Fraction(2, parties)
    assert minimiser.gradient_change(Loss.MARGIN) == 2


def test_softmax_gradient_changes_by_root_two() -> None:
    one_hot = np.eye(4)
    largest = max(np.linalg.norm(a - b) for a, b in product(one_hot, one_hot))
    bound = minimiser.gradient_change(Loss.SOFTMAX)
    assert bound**2 >= 2
    assert float(bound) == pytest.approx(largest, rel=1e-15)


def minimise(
    points: np.ndarray, shares: np.ndarray, strength: float, steps: int = 4000, step: float = 1.0
) -> np.ndarray:
    weights = np.zeros(points.shape[1])
    for _ in range(steps):
        z = points @ weights
        gradient = (shares * -1 / (1 + np.exp(z)) + (1 - shares) / (1 + np.exp(-z))) @ points / len(points)
        weights = weights - step * (gradient + strength * weights)
    return weights


@pytest.mark.parametrize("strength", [Fraction(1, 10), Fraction(1)])
def test_minimisers_move_by_the_bound_at_most_and_nearly_reach_it(strength: Fraction) -> None:
    bound = float(minimiser.exact_minimiser(minimiser.gradient_change(Loss.LOGISTIC, parties=20), strength))
    points = np.full((5, 2), math.sqrt(0.5)) * 1.0
    moved = np.linalg.norm(
        minimise(points, np.full(5, 0.5), float(strength)) - minimise(points, np.full(5, 0.55), float(strength))
    )
    assert moved <= bound
    assert moved >= bound * float(strength) / (float(strength) + 0.25) * 0.99


def test_gradient_descent_stays_within_its_bound() -> None:
    strength, step = Fraction(1, 10), Fraction(2)
    points = np.full((3, 1), 1.0)
    for iterations in (1, 3, 20, 500):
        bound = minimiser.gradient_descent(
            minimiser.gradient_change(Loss.LOGISTIC, parties=10),
            strength,
            smoothness=Fraction(1, 4),
            step=step,
            iterations=iterations,
            dimension=1,
            rounding=Fraction(0),
        )
        moved = abs(
            minimise(points, np.full(3, 0.5), 0.1, iterations, 2.0)
            - minimise(points, np.full(3, 0.6), 0.1, iterations, 2.0)
        )[0]
        assert moved <= float(bound) * (1 + 1e-12)
        assert bound <= minimiser.exact_minimiser(Fraction(1, 10), strength) * (1 + Fraction(1, 2**100))
        if iterations == 1:
            assert moved == pytest.approx(float(bound), rel=1e-9)


def test_published_numbers() -> None:
    """Rounding costs 3.05 against 10: steps of 2^-16, lambda 1e-4, d = 100, step 1; here M = 1000, T unlimited."""
    parts = {"smoothness": Fraction(1, 4), "step": Fraction(1), "iterations": 10**6, "dimension": 100}
    exact = minimiser.gradient_descent(Fraction(1, 1000), Fraction(1, 10**4), rounding=Fraction(0), **parts)
    rounded = minimiser.gradient_descent(Fraction(1, 1000), Fraction(1, 10**4), rounding=Fraction(1, 2**16), **parts)
    assert float(exact) == pytest.approx(10, rel=1e-9)
    assert float(rounded - exact) == pytest.approx(3.0518, rel=1e-4)


def test_private_points() -> None:
    """The paper's factor (N + M - 1) / N is right for its constant 2; the logistic constant 1 needs more than that."""
    n, m = 12, 5
    own = {"points": n, "own_points": 1}
    assert minimiser.gradient_change(Loss.MARGIN, parties=m, **own) == Fraction(2, m) * (n + m - 1) / n
    assert minimiser.gradient_change(Loss.LOGISTIC, parties=m, **own) == Fraction(n - 1, n * m) + Fraction(2, n)
    assert minimiser.gradient_change(Loss.LOGISTIC, parties=m, **own) > Fraction(1, m) * (n + m - 1) / n


def test_private_points_are_covered() -> None:
    """Own point replaced and every share moved: the worst change of the mean gradient over a grid."""
    n, m = 4, 3
    values = np.linspace(-1, 1, 5)
    worst = 0.0
    for weight in (-6.0, 0.0, 6.0):
        others = max(abs(x * (share_gradient(weight * x, 1.0) - share_gradient(weight * x, 1 - 1 / m))) for x in values)
        gradients = [x * share_gradient(weight * x, share) for x in values for share in (0.0, 1.0)]
        worst = max(worst, ((n - 1) * others + max(gradients) - min(gradients)) / n)
    bound = float(minimiser.gradient_change(Loss.LOGISTIC, parties=m, points=n, own_points=1))
    assert 0.6 * bound < worst <= bound


def test_averaged_parameters() -> None:
    assert minimiser.averaged_parameters(Loss.LOGISTIC, Fraction(1, 10), parties=4) == 5
    assert float(minimiser.averaged_parameters(Loss.SOFTMAX, Fraction(1), parties=1)) == pytest.approx(2 * math.sqrt(2))


@pytest.mark.parametrize(
    "changes",
    [{"step": Fraction(9)}, {"step": Fraction(0)}, {"rounding": Fraction(-1)}, {"iterations": -1}, {"dimension": 0}],
)
def test_refuses_steps_that_do_not_contract(changes: dict[str, object]) -> None:
    good = {
        "smoothness": Fraction(1, 4),
        "step": Fraction(1),
        "iterations": 10,
        "dimension": 2,
        "rounding": Fraction(0),
    }
    with pytest.raises(ValueError, match=r"^\w+=.*: .+$"):
        minimiser.gradient_descent(Fraction(1), Fraction(1, 10), **{**good, **changes})


def test_refuses_more_own_points_than_points() -> None:
    with pytest.raises(ValueError, match="own_points=3 is above points=2"):
        minimiser.gradient_change(Loss.LOGISTIC, parties=3, points=2, own_points=3)
    with pytest.raises(TypeError, match="points=None"):
        minimiser.gradient_change(Loss.LOGISTIC, parties=3, own_points=1)


@pytest.mark.parametrize("strength", [Fraction(1, 10_000), Fraction(1, 10), Fraction(3)])
def test_no_minimiser_is_longer_than_its_objective_allows(strength: Fraction) -> None:
    """One point of length 1 with a certain label pulls hardest: w solves sigmoid(-w) = lambda w."""
    low, high = 0.0, min(500.0, 1 / float(strength))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 / (1 + math.exp(middle)) > float(strength) * middle else (low, middle)
    bound = minimiser.longest_minimiser(2, strength)
    assert low <= float(bound) == pytest.approx(math.sqrt(2 * math.log(2) / float(strength)), rel=1e-14)


@pytest.mark.parametrize("classes", [3, 10])
def test_more_classes_start_higher(classes: int) -> None:
    """One point of length 1, its label certain: gradient descent on the softmax objective."""
    w, strength = np.zeros(classes), 0.05
    for _ in range(4000):
        p = np.exp(w) / np.exp(w).sum()
        w = w - (p - np.eye(classes)[0] + strength * w)
    bound = float(minimiser.longest_minimiser(classes, Fraction(1, 20)))
    assert 0 < np.linalg.norm(w) <= bound == pytest.approx(math.sqrt(2 * math.log(classes) / strength), rel=1e-14)
