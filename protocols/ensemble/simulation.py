"""Paper 3's comparison in the clear: the same plans, numbers and noise as the protocols, without shares or network.

For public tables and accuracies only: counts that a job never opens are plain here. A split of a table gives test rows,
public auxiliary rows, and M voters with `own` rows each, drawn without replacement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from mechanisms import calibration
from mechanisms.minimiser import Loss
from mechanisms.randomness import RandomWords
from protocols.baselines import output_perturbation
from protocols.baselines.gnmax import UNANSWERED, confident_gnmax, gnmax
from protocols.ensemble import erm, local
from protocols.ensemble.auxiliary import Auxiliary
from protocols.ensemble.averaging import AveragingPlan
from protocols.ensemble.budget import Budget
from protocols.ensemble.paper import CONSTANTS, PaperPlan
from protocols.ensemble.statistic import StatisticPlan
from protocols.ensemble.tables import Classes, Labelled
from protocols.evaluation import words_of
from protocols.schema import Floats
from smpc.ballots.poll import Poll
from smpc.errors import InputError
from smpc.ring import Integers

REGULARISATION = Fraction(1, 10_000)  # the paper's, for voters and for the global classifier
LAMBDAS = tuple(Fraction(1, 10**power) for power in (4, 3, 2, 1))
# the paper's soft labels by what it leaves open: regularisation, and whose constants
SOFT_VARIANTS = {f"soft, lambda {float(s):g}, {c} constants": (s, c) for s in LAMBDAS for c in CONSTANTS}
COMPUTE_PARTIES = 2
DELTA = Fraction(1, 10**6)  # of Gaussian noise: below one over the number of voters
_CLEAR = Fraction(3, 4)  # of the votes: what Confident-GNMax asks for
_VOTERS_AT_ONCE = 500
_SINGLE, _SINGLE_PRIVATE = 200, 20  # voters whose own accuracy is averaged


@dataclass(frozen=True)
class Ensemble:
    """One split with its voters trained. `counts`: (width, N); `weights`: (M, width, d), one classifier a voter."""

    test: Labelled
    training: Labelled
    auxiliary: Auxiliary
    counts: Integers
    weights: Floats

    @property
    def voters(self) -> int:
        return len(self.weights)

    def accuracy(self, weights: Floats) -> float:
        """Of a classifier (width, d), on the test rows."""
        return float(np.mean(erm.predict(weights, self.test.x) == self.test.y))

    def fewer(self, voters: int) -> Ensemble:
        """The same split with the first voters only."""
        weights = self.weights[:voters]
        result = replace(self, weights=weights, counts=votes(weights, self.auxiliary.x, self.test.classes))
        result.__dict__["batch"] = self.batch  # of all rows: the same whoever votes
        return result

    @cached_property
    def poll(self) -> Poll:
        """As public facts go: keys stand for nobody."""
        seal, key = X25519PrivateKey.generate().public_key(), Ed25519PrivateKey.generate().public_key()
        voters = {f"v{i}": key for i in range(self.voters)}
        seals = {f"p{i}": seal for i in range(COMPUTE_PARTIES)}
        return Poll(bytes(32), bytes(32), seals, voters, self.auxiliary.count, self.test.classes)

    @property
    def alpha(self) -> Floats:
        """Vote shares, as the soft labels use them."""
        return np.asarray(self.counts / self.voters)

    # accuracies without privacy

    def not_private(self) -> dict[str, float]:
        """By method; `constant` always says the test rows' most frequent class."""
        single = [self.accuracy(weights) for weights in self.weights[:_SINGLE]]
        return {
            "batch": self.accuracy(self.batch),
            "soft": self.accuracy(self.soft),
            "vote": self.accuracy(self.vote),
            "avg": self.accuracy(self.weights.mean(axis=0)),
            "indiv": float(np.mean(single)),
            "constant": float(np.bincount(self.test.y).max() / len(self.test.y)),
        }

    @cached_property
    def softs(self) -> dict[Fraction, Floats]:
        """The minimisers for vote shares, by regularisation."""
        plan = PaperPlan(self.auxiliary, self.poll, Budget(Fraction(1)))
        return {strength: replace(plan, regularisation=strength).exact(self.alpha) for strength in LAMBDAS}

    @property
    def soft(self) -> Floats:
        """The minimiser for vote shares."""
        return self.softs[REGULARISATION]

    @cached_property
    def vote(self) -> Floats:
        """The minimiser for majority labels, the first of equal ones."""
        plan = PaperPlan(self.auxiliary, self.poll, Budget(Fraction(1)), labels="majority")
        two = self.poll.width == 1
        winners = (2 * self.counts[0] > self.voters).astype(np.int64) if two else self.counts.argmax(axis=0)
        return plan.exact(plan.from_labels(winners))

    @cached_property
    def batch(self) -> Floats:
        """The classifier of all voters' rows together."""
        x, y = self.training.x, self.training.y
        s = erm.statistic(x, one_hot(y, self.training.classes))
        return erm.minimise(x, s, float(REGULARISATION), certified=False).weights

    # accuracies with privacy: one release each

    def private(self, budget: Budget, random: RandomWords) -> Mapping[str, float]:
        """By method. `batch` protects one row of its 22 (or so) a voter; all others a whole voter."""
        return {
            "statistic": self.accuracy(self.statistic(budget, random)),
            "soft": self.accuracy(self.output_perturbation(budget, random, "soft")),
            "vote": self.accuracy(self.output_perturbation(budget, random, "majority")),
            "avg": self.accuracy(self.averaged(budget, random, "paper")),
            "avg, tight": self.accuracy(self.averaged(budget, random, "tight")),
            "batch, one row": self.accuracy(self.private_batch(budget, random)),
        }

    def soft_variants(self, budget: Budget, random: RandomWords) -> Mapping[str, float]:
        """Algorithm 2 by SOFT_VARIANTS, a draw each."""
        return {
            name: self.accuracy(self.output_perturbation(budget, random, "soft", constants, strength=strength))
            for name, (strength, constants) in SOFT_VARIANTS.items()
        }

    def with_delta(self, budget: Budget, random: RandomWords) -> Mapping[str, float]:
        """By method, at DELTA."""
        return {
            "statistic, Gaussian": self.accuracy(self.statistic(replace(budget, delta=DELTA), random)),
            "GNMax": self.accuracy(self.noisy_labels(budget, random, confident=False)),
            "Confident-GNMax": self.accuracy(self.noisy_labels(budget, random, confident=True)),
        }

    def statistic(self, budget: Budget, random: RandomWords) -> Floats:
        """Our release's weights."""
        plan = StatisticPlan(self.auxiliary, self.poll, budget, float(REGULARISATION))
        opened = plan.weigh(self.counts)
        for _ in range(COMPUTE_PARTIES):
            opened = opened + plan.mechanism.draw(plan.dimension, random)
        return np.asarray(plan.solve(opened, self.voters)[1])

    def output_perturbation(
        self,
        budget: Budget,
        random: RandomWords,
        labels: str,
        constants: str = "paper",
        *,
        strength: Fraction = REGULARISATION,
    ) -> Floats:
        """Algorithm 1, at the paper's regularisation, or 2."""
        plan = PaperPlan(self.auxiliary, self.poll, budget, labels, constants, strength)
        mechanism, bits = plan.mechanism(self.voters)
        exact = self.softs[strength] if labels == "soft" else self.vote
        return plan.perturbed(exact, mechanism.draw(self.weights[0].size, random), bits)

    def averaged(self, budget: Budget, random: RandomWords, constants: str) -> Floats:
        """Parameter averaging."""
        plan = self.averaging(budget, constants)
        opened = np.add.reduce([plan.encode(weights) for weights in self.weights])
        for _ in range(COMPUTE_PARTIES):
            opened = opened + plan.mechanism.draw(plan.poll.entries, random)
        return plan.mean(opened, self.voters)

    def averaging(self, budget: Budget, constants: str) -> AveragingPlan:
        """The plan of parameter averaging."""
        width, d = self.weights[0].shape
        poll = replace(self.poll, samples=width * d, classes=2)
        return AveragingPlan(poll, self.test.classes, d, budget, constants)

    def alone(self, budget: Budget, random: RandomWords) -> Mapping[str, float]:
        """What single voters could publish by themselves: one draw each, at the shorter bound."""
        plan = self.averaging(budget, "tight")
        encoded = [plan.encode(weights) for weights in self.weights[:_SINGLE_PRIVATE]]
        noisy = [plan.mean(one + plan.mechanism.draw(one.size, random), 1) for one in encoded]
        return {"indiv": float(np.mean([self.accuracy(weights) for weights in noisy]))}

    def noisy_labels(self, budget: Budget, random: RandomWords, *, confident: bool) -> Floats:
        """PATE's noisy labels at DELTA, and the minimiser for the samples that got one; zeros where none did."""
        counts = np.vstack([self.voters - self.counts, self.counts]) if self.poll.width == 1 else self.counts
        if confident:
            samples = self.auxiliary.count  # a test and an answer each: squared L2 norms 1 and 2, with equal noise
            variance = calibration.gaussian(3 * samples, counts.size + samples, budget.epsilon, DELTA).variance
            threshold = int(_CLEAR * self.voters)
            labels = confident_gnmax(counts, threshold, variance, variance, samples, DELTA, random).labels
        else:
            labels = gnmax(counts, epsilon=budget.epsilon, delta=DELTA, random=random).labels
        clear = labels != UNANSWERED
        if not clear.any():
            return np.zeros(self.weights[0].shape)
        x = self.auxiliary.x[clear]
        s = erm.statistic(x, one_hot(labels[clear], self.test.classes))
        return erm.minimise(x, s, float(REGULARISATION), certified=False).weights

    def private_batch(self, budget: Budget, random: RandomWords) -> Floats:
        """All rows at one curator, output perturbation at the sensitivity of one row."""
        flat = self.batch.reshape(-1)
        loss = Loss.SOFTMAX if self.test.classes > 2 else Loss.LOGISTIC
        l2 = output_perturbation.sensitivity(len(self.training.y), REGULARISATION, loss.length)
        noise, bits = output_perturbation.mechanism(l2, flat.size, budget.epsilon)
        return self.batch + np.ldexp(noise.draw(flat.size, random).astype(np.float64), -bits).reshape(self.batch.shape)


def ensemble(table: Labelled, *, voters: int, own: int, auxiliary: int, test: int, seed: int) -> Ensemble:
    """A split by a public seed. Raises InputError where the table has too few rows."""
    needed = test + auxiliary + voters * own
    if needed > len(table.y):
        raise InputError(f"{voters} voters with {own} rows, {auxiliary} and {test}: {needed} rows, has {len(table.y)}")
    order = np.argsort(words_of("ensemble", seed).words(len(table.y)), kind="stable")
    parts = np.split(order[:needed], [test, test + auxiliary])
    training = replace(table, x=table.x[parts[2]], y=table.y[parts[2]])
    weights = train_all(training, voters, own)
    public = Auxiliary.of(table.x[parts[1]])
    counts = votes(weights, public.x, table.classes)
    return Ensemble(replace(table, x=table.x[parts[0]], y=table.y[parts[0]]), training, public, counts, weights)


def train_all(rows: Labelled, voters: int, own: int) -> Floats:
    """Every voter's classifier of its `own` consecutive rows: shape (voters, width, d)."""
    x, y = rows.x.reshape(voters, own, -1), rows.y.reshape(voters, own)
    strength = float(REGULARISATION)
    if rows.classes > 2:
        return np.array([local.train(a, b, rows.classes, strength) for a, b in zip(x, y, strict=True)])
    pieces = range(0, voters, _VOTERS_AT_ONCE)
    return np.concatenate(
        [local.train_many(x[i : i + _VOTERS_AT_ONCE], y[i : i + _VOTERS_AT_ONCE], strength) for i in pieces]
    )[:, None, :]


def votes(weights: Floats, x: Floats, classes: int) -> Integers:
    """The counts (width, N) of the voters' predictions on rows `x`."""
    width = 1 if classes == 2 else classes
    counts = np.zeros((width, len(x)), dtype=np.int64)
    for start in range(0, len(weights), _VOTERS_AT_ONCE):
        part = weights[start : start + _VOTERS_AT_ONCE]
        if width == 1:
            counts[0] += (x @ part[:, 0].T > 0).sum(axis=1)
        else:
            for one in part:
                counts += one_hot(erm.predict(one, x), classes).astype(np.int64)
    return counts


def one_hot(y: Classes, classes: int) -> Floats:
    """Label weights (width, n) of class numbers."""
    return np.asarray(y[None] == (np.arange(classes)[:, None] if classes > 2 else 1), dtype=np.float64)
