"""Parameter averaging (Pathak, Rane and Raj 2010, paper 3's `avg`): the mean of the voters' own weights, with noise.

A voter sends the weights of a regularised classifier of its own samples instead of votes. They are summed on shares and
every compute party adds exact noise before the sum is opened. Replacing a voter moves the sum by twice the longest
weights that a minimiser can have: `paper`, |l'| <= 1 (softmax sqrt 2) over lambda; `tight`, at most sqrt(2 ln C /
lambda), too, because the minimiser's objective is at most that of w = 0, ln C. Longer weights are shortened by the
voter. Nobody checks others' weights: a voter that sends longer ones spoils the mean, not another voter's privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gamma_norm import GammaNorm
from mechanisms.guarantee import Guarantee
from mechanisms.minimiser import Loss, averaged_parameters, longest_minimiser
from mechanisms.neighbours import ReplaceParty
from protocols.ensemble.budget import Budget, tail
from protocols.ensemble.paper import CONSTANTS
from protocols.ensemble.release import PUBLIC, EnsembleRelease, voters
from protocols.ensemble.statistic import check_regularisation
from protocols.schema import Floats
from smpc.ballots.box import Box
from smpc.ballots.counting import tally
from smpc.ballots.poll import Poll
from smpc.cast import Cast
from smpc.errors import InputError
from smpc.fixedpoint import SAFE_BITS
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held

BITS = 20


@dataclass(frozen=True)
class AveragingPlan:
    """`poll.samples` counts the weights, `columns` of them a class (two classes: of class 1 alone); classes stay 2."""

    poll: Poll
    classes: int
    columns: int
    budget: Budget
    constants: str = "tight"
    regularisation: Fraction = Fraction(1, 10_000)

    def __post_init__(self) -> None:
        if self.constants not in CONSTANTS:
            raise InputError(f"constants = {self.constants!r}: must be one of {', '.join(CONSTANTS)}")
        check_regularisation(float(self.regularisation))
        width = 1 if self.classes == 2 else self.classes
        if self.poll.classes != 2 or self.poll.samples != width * self.columns:
            raise InputError(f"the poll has {self.poll.entries} entries, there are {width * self.columns} weights")
        parties = len(self.poll.parties)
        highest = len(self.poll.voters) * self.longest + parties * tail(self.mechanism, self.poll.entries, parties)
        if highest >= 2**SAFE_BITS:
            raise InputError(
                f"epsilon = {self.budget.epsilon}: noise this large leaves the ring (2^{SAFE_BITS}); raise epsilon"
            )

    @cached_property
    def longest(self) -> Fraction:
        """The L2 norm that a voter's integers keep to."""
        loss = Loss.SOFTMAX if self.classes > 2 else Loss.LOGISTIC
        bound: Fraction = averaged_parameters(loss, self.regularisation, parties=1) / 2
        if self.constants == "tight":
            bound = min(bound, longest_minimiser(self.classes, self.regularisation))
        return bound * (1 << BITS)

    @cached_property
    def mechanism(self) -> GammaNorm | DiscreteGaussian:
        return self.budget.noise(2 * self.longest, self.poll.entries)

    def encode(self, weights: Floats) -> Integers:
        """A voter's integers, shape (entries,): `weights` shortened to the bound where longer, rounded towards zero."""
        flat = np.asarray(weights, dtype=np.float64).reshape(-1)
        if flat.shape != (self.poll.entries,) or not np.isfinite(flat).all():
            raise InputError(f"weights of shape {np.shape(weights)}: need {self.poll.entries} finite numbers")
        scaled = flat * float(1 << BITS)
        scaled *= min(1.0, float(self.longest) / max(float(np.linalg.norm(scaled)), 1.0))
        while sum(int(v) ** 2 for v in scaled) > self.longest**2:  # float64 may err by an ulp
            scaled *= 1 - 2.0**-30
        return np.trunc(scaled).astype(np.int64)

    def mean(self, opened: Integers, counted: int) -> Floats:
        """Weights, shape (width, columns)."""
        return np.ldexp(opened.astype(np.float64), -BITS).reshape(-1, self.columns) / counted

    def guarantee(self, cast: Cast, counted: int) -> Guarantee:
        return Guarantee.for_release(
            order="shares",
            epsilon=self.budget.epsilon,
            parties=cast.parties,
            server=cast.server,
            dealer=cast.dealer,
            mechanism=str(self.mechanism),
            delta=self.budget.delta or Fraction(0),
            neighbours=ReplaceParty(),
            accountant=self.budget.accountant,
            assumptions=(PUBLIC, voters(counted)),
        )


def release(s: Session, boxes: Mapping[str, Held[Box]], plan: AveragingPlan) -> EnsembleRelease:
    """The mean of the voters' weights, differentially private for one voter's whole data.

    step  from -> to      message         the receiver learns
    1     P_k -> all      next ballots    whose ballots the first party has: public
    2     P_k -> P_l      ballot digests  digests of the sealed shares of all: no weight
    3     P_k -> all      ballots held    which of them are here and the same: public
    4     P_k -> server   noisy sum       the sum with a full noise vector of every party, epsilon-DP; no single share
    5     server -> all   model           post-processing of step 4
    """
    s.agree("plan", plan.mechanism, plan.poll.id)
    everything = np.ones(plan.poll.entries, dtype=np.bool_)
    noise = s.draw_noise(plan.mechanism, dict.fromkeys(s.cast.parties, everything))
    result = tally(s, boxes, plan.poll, checked=False)  # 1 to 3 for every batch
    exact = s.linear(result.counts, np.ravel, everything.shape, bits=BITS)
    opened = s.reveal(s.add_noise(exact, noise), to=s.cast.server, message="noisy sum")  # 4
    counted = len(result.counted)
    mean = s.at(s.cast.server, plan.mean, opened, counted)
    weights = s.publish(mean, shape=(plan.poll.entries // plan.columns, plan.columns), message="model")  # 5
    guarantee = plan.guarantee(s.cast, counted)
    return EnsembleRelease(weights, None, guarantee, result.counted, result.rejected, result.missing)
