"""Perturbed labels: exact laws, epsilon by brute force over the lattice, the papers' forms, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.gaussian_privacy import GaussianLoss, analytic_delta, zcdp_epsilon
from mechanisms.laws import discrete_laplace_law, law_p_value
from mechanisms.randomness import SecureRandom
from protocols.split.perturb import LATTICE, AddedNoise, Perturbation, on_lattice, perturbation
from smpc.errors import InputError

RANDOM = SecureRandom()
FALSE_ALARM = 1e-9
SIX = [("laplace", 2), ("discrete", 2), ("multiclass-laplace", 2), ("discrete", 3), ("multiclass-laplace", 10)]


def of(law: str, classes: int, epsilon: object = 1) -> Perturbation:
    return perturbation(law, epsilon, classes)


@pytest.mark.parametrize("epsilon", ["1/4", "1", "8"])
@pytest.mark.parametrize("label", [0, 1])
def test_laplace_noise_follows_the_discrete_law(epsilon: str, label: int) -> None:
    law = perturbation("laplace", epsilon)
    released = law.draw(np.full(10_000, label), RANDOM)
    assert released.shape == (10_000, 1)
    noise = released[:, 0] - label * LATTICE
    assert law_p_value(noise, discrete_laplace_law(LATTICE / Fraction(epsilon))) > FALSE_ALARM


def test_each_class_of_the_vector_gets_noise_of_its_own_at_twice_the_scale() -> None:
    law = perturbation("multiclass-laplace", 1, 3)
    labels = np.arange(9_000) % 3
    noise = law.draw(labels, RANDOM) - on_lattice(labels, 3, 3)
    for column in noise.T:
        assert law_p_value(column, discrete_laplace_law(Fraction(2 * LATTICE))) > FALSE_ALARM
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.1


def binomial_p(count: int, trials: int, probability: float) -> float:
    from scipy import stats

    return float(stats.binomtest(count, trials, probability).pvalue)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_response_tells_the_truth_as_often_as_epsilon_allows(classes: int) -> None:
    law = of("discrete", classes)
    labels = np.full(20_000, classes - 1)
    released = law.draw(labels, RANDOM)
    answers = released[:, 0] // LATTICE if classes == 2 else released.argmax(axis=1)
    assert (released.sum(axis=1) // LATTICE <= 1).all() and set(np.unique(released)) <= {0, LATTICE}
    for answer in range(classes):
        probability = (math.e if answer == classes - 1 else 1) / (math.e + classes - 1)
        assert binomial_p(int((answers == answer).sum()), 20_000, probability) > FALSE_ALARM


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_a_label_moves_the_lattice_by_what_the_scale_is_for(classes: int) -> None:
    """Brute force: the largest L1 distance of two labels' images, over epsilon, is the noise's scale."""
    for law in (of("laplace", 2), of("multiclass-laplace", classes)):
        assert isinstance(law, AddedNoise) and isinstance(law.mechanism, DiscreteLaplace)
        images = on_lattice(np.arange(law.classes), law.classes, law.width)
        most = max(int(np.abs(a - b).sum()) for a in images for b in images)
        assert Fraction(most) / law.epsilon == law.mechanism.scale


@pytest.mark.parametrize(("name", "classes"), SIX)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_log_likelihoods_differ_by_epsilon_at_most_and_reach_it(name: str, classes: int, epsilon: Fraction) -> None:
    law = of(name, classes, epsilon)
    released = law.draw(np.arange(4_000) % classes, RANDOM)
    if isinstance(law, AddedNoise):  # the corners, where all classes but one are far off
        corners = np.eye(law.width, dtype=np.int64) * 9 * LATTICE - 4 * LATTICE
        released = np.concatenate([released, corners, -corners])
    found = law.log_likelihood(released)
    assert found.shape == (len(released), classes)
    spread = (found.max(axis=1) - found.min(axis=1)).max()
    assert spread == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize(("name", "classes"), SIX)
def test_posterior_from_log_likelihoods_is_calibrated(name: str, classes: int) -> None:
    """Among records whose posterior says q, a share q has the class: under a uniform prior."""
    law = of(name, classes, 2)
    labels = np.arange(30_000) % classes
    weights = np.exp(law.log_likelihood(law.draw(labels, RANDOM)))
    posterior = weights[:, 0] / weights.sum(axis=1)
    for low, high in ((0, 0.3), (0.3, 0.7), (0.7, 1)):
        chosen = (posterior >= low) & (posterior < high)
        if chosen.sum() > 1_000:
            assert np.mean(labels[chosen] == 0) == pytest.approx(posterior[chosen].mean(), abs=0.05)


@pytest.mark.parametrize(("name", "classes"), SIX)
def test_unbiased_values_have_the_label_as_their_mean(name: str, classes: int) -> None:
    law = of(name, classes, 2)
    values = law.unbiased(law.draw(np.full(40_000, classes - 1), RANDOM))
    expected = on_lattice(np.array([classes - 1]), classes, law.width)[0] / LATTICE
    deviation = values.std(axis=0) / math.sqrt(40_000)
    assert (np.abs(values.mean(axis=0) - expected) < 6.5 * deviation + 1e-12).all()


def test_the_lattice_gives_the_papers_gradients() -> None:
    """g_y + u (g_{1-y} - g_y) with u = (1 - 2y) noise, and g_y + sum u_j g_j, from t and s."""
    rng = np.random.default_rng(0)
    g = rng.normal(size=(3, 5))
    for y in (0, 1):
        u = rng.normal()
        t = y + (1 - 2 * y) * u
        assert np.allclose(g[y] + u * (g[1 - y] - g[y]), g[0] + t * (g[1] - g[0]))
    for y in range(3):
        noise = rng.normal(size=3)
        paper = g[y] + noise @ g
        corrected = (1 + noise.sum()) * g[y] + sum(noise[j] * (g[j] - g[y]) for j in range(3) if j != y)
        assert np.allclose(paper, (np.eye(3)[y] + noise) @ g)
        assert np.allclose(corrected, paper)
        for i in range(3):  # randomised response: u = e_i - e_y
            assert np.allclose(g[y] + (np.eye(3)[i] - np.eye(3)[y]) @ g, g[i])


def test_gaussian_noise_holds_its_epsilon_and_delta_and_wastes_little() -> None:
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    law = perturbation("gaussian", epsilon, delta=delta)
    assert isinstance(law, AddedNoise)
    variance = law.mechanism.variance  # type: ignore[union-attr]  # "gaussian" draws from this law
    loss = GaussianLoss(Fraction(LATTICE**2), variance, 1)
    assert analytic_delta(epsilon, [loss]) <= delta or zcdp_epsilon(loss.rho, delta) <= epsilon
    assert math.sqrt(variance) / LATTICE == pytest.approx(4.225, abs=0.01)  # the analytic Gaussian's sigma
    released = law.draw(np.zeros(2_000, dtype=np.int64), RANDOM) / LATTICE
    assert released.std() == pytest.approx(4.225, rel=0.15)


BAD: list[tuple[dict[str, object], str]] = [
    ({"law": "laplace", "epsilon": 0}, "epsilon=0 is not above 0"),
    ({"law": "laplace", "epsilon": float("nan")}, "not finite"),
    ({"law": "laplace", "epsilon": True}, "bool"),
    ({"law": "laplace", "epsilon": 51}, "above 50"),
    ({"law": "laplace", "epsilon": 1, "classes": 3}, "say 'multiclass-laplace'"),
    ({"law": "discrete", "epsilon": 1, "classes": 1}, "below 2"),
    ({"law": "discrete", "epsilon": 1, "classes": 10**6}, "at most 1000"),
    ({"law": "gaussian", "epsilon": 1}, "needs one in"),
    ({"law": "laplace", "epsilon": 1, "delta": "1e-6"}, "the others have none"),
    ({"law": "gaussian", "epsilon": 1, "delta": 1}, "not in"),
    ({"law": "gauss", "epsilon": 1}, "must be one of laplace, discrete"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_choices_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        perturbation(**arguments)  # type: ignore[arg-type]  # wrong types are the point


@pytest.mark.parametrize("labels", [np.array([0, 2]), np.array([-1]), np.array([0.0, 1.0]), np.zeros((2, 2), np.int64)])
@pytest.mark.parametrize("name", ["laplace", "discrete"])
def test_labels_that_are_no_class_are_refused(labels: npt.NDArray[np.int64], name: str) -> None:
    with pytest.raises(InputError, match="labels"):
        of(name, 2).draw(labels, RANDOM)
