"""Algorithms 1 and 2: labels, exact counts at the solver alone, constants brute-forced, noise once, who sees what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from mechanisms.guarantee import INFINITE
from protocols.ensemble import erm, paper
from protocols.ensemble.auxiliary import Auxiliary
from protocols.ensemble.budget import Budget
from protocols.ensemble.paper import CONSTANTS, LABELS, SOLVER_UNSEEN, PaperPlan, release
from smpc import Cast, InputError
from smpc.transcript import table
from tests.ballots.support import Election
from tests.protocols.ensemble.support import PARTIES, SILENT, all_votes, auxiliary, election, run

STRONG = Fraction(1, 10)  # of lambda: small enough to brute-force minimisers, large enough to see the bound


def plan_of(of: Election, rows: Auxiliary, labels: str, **options: Any) -> PaperPlan:
    return PaperPlan(rows, of.poll, Budget(Fraction(1)), labels=labels, **options)


class Quiet(PaperPlan):
    """Without noise."""

    def mechanism(self, counted: int) -> Any:
        return SILENT, 40


def quiet(plan: PaperPlan) -> Quiet:
    return Quiet(**{name: getattr(plan, name) for name in PaperPlan.__dataclass_fields__})


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_docstring_tables_are_what_was_sent(labels: str, classes: int) -> None:
    of, scripts = election(4, classes), {"soft": paper._soft, "majority": paper._majority}
    _, s = run(release, plan_of(of, auxiliary(4), labels), of, all_votes(of))
    assert s.transcript.steps() == table(scripts[labels].__doc__ or "")


@pytest.mark.parametrize("classes", [2, 4])
def test_soft_labels_weigh_by_shares_and_majority_by_the_first_largest(classes: int) -> None:
    of, rows = election(12, classes, tuple(f"v{i}" for i in range(6))), auxiliary(12)
    counts = np.array([(np.array([of.labels(v) for v in of.voters]) == c).sum(axis=0) for c in range(classes)])
    winners = counts.argmax(axis=0)  # six voters: ties happen
    assert (np.sort(counts, axis=0)[-1] == np.sort(counts, axis=0)[-2]).any()
    one_hot = (winners == np.arange(classes)[:, None]).astype(float)
    for labels, alpha in (("soft", counts / 6), ("majority", one_hot)):
        found, _ = run(release, quiet(plan_of(of, rows, labels)), of, all_votes(of))
        weighted = alpha[1:] if classes == 2 else alpha
        expected = erm.minimise(rows.x, erm.statistic(rows.x, weighted), 1e-4).weights
        assert np.allclose(found.weights, expected, atol=1e-9)
        assert found.statistic is None


def all_counts(classes: int, voters: int, samples: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Counts (classes, samples) of neighbouring elections: one voter's votes are replaced."""
    votes = list(product(range(classes), repeat=samples))
    one_hot = [np.eye(classes)[list(v)].T for v in votes]
    others = one_hot if voters == 2 else [a + b for a in one_hot for b in one_hot]
    return [(rest + mine, rest + new) for rest in others for mine in one_hot for new in one_hot]


def minimiser_of(x: np.ndarray, alpha: np.ndarray, classes: int) -> np.ndarray:
    s = erm.statistic(x, alpha[1:] if classes == 2 else alpha)
    return erm.minimise(x, s, float(STRONG)).weights


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(("classes", "samples", "voters"), [(2, 2, 3), (3, 2, 2), (2, 1, 2), (3, 1, 3)])
def test_no_neighbours_minimisers_are_further_apart(labels: str, classes: int, samples: int, voters: int) -> None:
    rows = Auxiliary.of(np.array([[0.6, 0.8], [-0.8, 0.6]])[:samples])
    worst = 0.0
    for first, second in all_counts(classes, voters, samples):
        alphas = [counts / voters for counts in (first, second)]
        if labels == "majority":
            alphas = [np.eye(classes)[counts.argmax(axis=0)].T for counts in (first, second)]
        a, b = (minimiser_of(rows.x, alpha, classes) for alpha in alphas)
        worst = max(worst, float(np.linalg.norm(a - b)))
    of = Election(PARTIES, tuple(f"v{i}" for i in range(voters)), samples, classes)
    plan = plan_of(of, rows, labels, regularisation=STRONG)
    bound = float(plan.sensitivity(voters))
    assert worst <= bound
    moved = (1 if classes == 2 else 2**0.5) / (0.1 * (voters if labels == "soft" else 1))
    assert bound == pytest.approx(min(moved, 2 * (2 * np.log(classes) / 0.1) ** 0.5), rel=1e-6)
    printed = float(replace(plan, constants="paper").sensitivity(voters))
    assert printed == pytest.approx(moved * (2 if classes == 2 else 1), rel=1e-6)


def test_the_bound_of_the_gradient_is_attained() -> None:
    """One sample of length 1, unanimous votes turned round by one voter of one: the gradient moves by 1 = 1 / M."""
    x = np.array([[1.0]])
    change = erm.statistic(x, np.array([[1.0]])) - erm.statistic(x, np.array([[0.0]]))
    assert abs(change[0, 0]) == 1.0


def test_private_auxiliary_samples_cost_the_papers_factor() -> None:
    of, rows = election(40, 2, tuple(f"v{i}" for i in range(10))), auxiliary(40)
    plan = plan_of(of, rows, "soft", constants="paper")
    factor = replace(plan, private_auxiliary=True).sensitivity(10) / plan.sensitivity(10)
    assert float(factor) == pytest.approx((40 + 10 - 1) / 10 / 40 * 10, rel=1e-6)
    majority = replace(plan, labels="majority")
    assert replace(majority, private_auxiliary=True).sensitivity(10) == majority.sensitivity(10)
    notes = [
        n for row in replace(plan, private_auxiliary=True).guarantee(Cast(PARTIES), 10).rows for n in row.assumptions
    ]
    assert any("one auxiliary sample" in note for note in notes) and not any("samples and who" in n for n in notes)


@pytest.mark.parametrize("labels", LABELS)
def test_the_solver_is_not_held_off_and_the_parties_are(labels: str) -> None:
    of, rows = election(4, 2), auxiliary(4)
    found, s = run(release, plan_of(of, rows, labels), of, all_votes(of))
    epsilons = {str(row.coalition): row.epsilon for row in found.guarantee.rows}
    assert epsilons.pop("any 1 party") == Fraction(1)
    assert set(epsilons.values()) == {INFINITE} and "server" in epsilons
    assert all(SOLVER_UNSEEN in row.assumptions for row in found.guarantee.rows if row.epsilon != INFINITE)
    shown = {m.message for m in s.transcript.messages if m.verb == "reveal" and m.receiver == "server"}
    assert shown == {"exact counts" if labels == "soft" else "exact labels"}


def test_noise_is_drawn_once_for_the_whole_vector() -> None:
    of, rows = election(4, 3), auxiliary(4, 3)
    plan = plan_of(of, rows, "soft")
    mechanism, bits = plan.mechanism(5)
    assert float(mechanism.scale) == pytest.approx(float(plan.sensitivity(5)) * 2**bits, rel=2e-3)  # type: ignore[union-attr]
    runs = [run(release, plan, of, all_votes(of))[0].weights for _ in range(2)]
    exact = run(release, quiet(plan), of, all_votes(of))[0].weights
    assert runs[0].shape == (3, 4) and not np.any(runs[0] == exact)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: replace(p, labels="hard"), "labels = 'hard': must be one of soft, majority"),
        (lambda p: replace(p, constants="loose"), "constants"),
        (lambda p: replace(p, regularisation=Fraction(0)), "regularisation"),
        (lambda p: replace(p, auxiliary=auxiliary(5)), "4 samples, there are 5"),
    ],
)
def test_unfit_plans_are_refused(change: Callable[[PaperPlan], PaperPlan], message: str) -> None:
    plan = plan_of(election(4, 2), auxiliary(4), "soft", constants=CONSTANTS[0])
    with pytest.raises(InputError, match=message):
        change(plan)
