"""Votes leave the computation as one noisy linear statistic; the classifier is made of it in the clear.

With a logistic or softmax loss the votes enter the objective through S = (1/N) sum_i alpha_i (x) x_i alone
(`protocols.ensemble.erm`). S is a public linear map of the vote counts, so it is computed on their shares, gets exact
noise there, and only then is opened. Counts are never opened, minimising is post-processing, for any regularisation,
and needs no exact minimiser: the noise is that of S (L2 sensitivity at most 1/M, sqrt 2 / M with more than two
classes, in the directions of `protocols.ensemble.whitening`), where output perturbation needs that divided by lambda.
Paper 3 (Hamm, Cao, Belkin) has the setting.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gamma_norm import GammaNorm
from mechanisms.guarantee import Guarantee
from mechanisms.neighbours import ReplaceParty
from mechanisms.vote_statistic import vote_statistic
from protocols.ensemble import erm
from protocols.ensemble.auxiliary import Auxiliary
from protocols.ensemble.budget import Budget, tail
from protocols.ensemble.release import PUBLIC, EnsembleRelease, voters
from protocols.ensemble.whitening import Whitened
from protocols.schema import Floats
from smpc.ballots.box import Box
from smpc.ballots.counting import tally
from smpc.ballots.poll import Poll
from smpc.cast import Cast
from smpc.errors import InputError
from smpc.fixedpoint import SAFE_BITS
from smpc.ring import Integers, inner
from smpc.session import Session
from smpc.values import Held


@dataclass(frozen=True)
class StatisticPlan:
    """Everything that is decided before a vote is seen. `regularisation` is lambda, > 0, of the published model."""

    auxiliary: Auxiliary
    poll: Poll
    budget: Budget
    regularisation: float = 1e-4

    def __post_init__(self) -> None:
        if self.poll.samples != self.auxiliary.count:
            raise InputError(f"the poll is on {self.poll.samples} samples, there are {self.auxiliary.count}")
        check_regularisation(self.regularisation)
        highest = len(self.poll.voters) * int(np.abs(self.whitened.rows).sum(axis=0).max())
        parties = len(self.poll.parties)
        if highest + parties * tail(self.mechanism, self.dimension, parties) >= 2**SAFE_BITS:
            raise InputError(
                f"epsilon = {self.budget.epsilon}: noise this large leaves the ring (2^{SAFE_BITS}); raise epsilon, or "
                "take fewer samples"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Of S and of the model."""
        return self.poll.width, self.auxiliary.columns

    @property
    def dimension(self) -> int:
        return self.poll.width * self.auxiliary.columns

    @cached_property
    def whitened(self) -> Whitened:
        return Whitened.of(self.auxiliary)

    @cached_property
    def l2(self) -> Fraction:
        """The sensitivity of the integers M N 2^bits S T, whatever M is."""
        try:
            return vote_statistic(self.whitened.rows, self.poll.classes)
        except ValueError as error:
            raise InputError(str(error)) from None

    @cached_property
    def mechanism(self) -> GammaNorm | DiscreteGaussian:
        return self.budget.noise(self.l2, self.dimension)

    def noise_share(self, counted: int) -> float:
        """Standard deviation of each number of S T, all parties' draws, of the largest length that S T can have."""
        if isinstance(self.mechanism, GammaNorm):
            one = self.mechanism.standard_deviation(self.dimension)
        else:
            one = self.mechanism.standard_deviation
        longest = counted * float(self.l2)  # of `counted` equal ballots: they are no further from 0 than from others
        if self.poll.classes > 2:  # from 0 nearer by sqrt 2
            longest /= math.sqrt(2)
        return one * math.sqrt(len(self.poll.parties)) / longest

    def weigh(self, counts: Integers) -> Integers:
        """Counts (width, samples), or shares of them, to a vector of width d."""
        return inner(counts, np.ascontiguousarray(self.whitened.rows.T)).reshape(-1)

    def statistic(self, opened: Integers, counted: int) -> Floats:
        """The noisy S. With more than two classes its sum over them is known, the mean row: that part is put right."""
        total = np.ldexp(opened.astype(np.float64), -self.whitened.bits).reshape(self.shape)
        noisy = self.whitened.back(total / (counted * self.auxiliary.count))
        if self.poll.width > 1:
            noisy = noisy - (noisy.sum(axis=0) - self.auxiliary.x.mean(axis=0)) / self.poll.width
        return noisy

    def solve(self, opened: Integers, counted: int) -> Floats:
        """The noisy S and the model, shape (2, width, d)."""
        s = self.statistic(opened, counted)
        return np.stack([s, erm.minimise(self.auxiliary.x, s, self.regularisation, certified=False).weights])

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


def check_regularisation(value: float) -> None:
    """Raises InputError for what is no regularisation."""
    if isinstance(value, bool) or not (np.isfinite(value) and 0 < value <= 100):
        raise InputError(f"regularisation = {value}: must be a number above 0 and up to 100")


def release(s: Session, boxes: Mapping[str, Held[Box]], plan: StatisticPlan) -> EnsembleRelease:
    """A linear classifier from the ballots in the parties' boxes, differentially private for one voter's whole data.

    step  from -> to      message           the receiver learns
    1     P_k -> all      next ballots      whose ballots the first party has: public
    2     P_k -> P_l      ballot digests    digests of the sealed shares of all: no vote
    3     P_k -> all      ballots held      which of them are here and the same: public
    4     P_k -> P_l      commitment        nothing: perfectly hiding
    5     P_k -> P_l      echo              the commitments of step 4
    6     P_k -> P_l      opening           the coin, tossed after the ballots are fixed
    7     dealer -> P_k   corrections       nothing: uniform
    8     P_k -> P_l      masked entries    nothing: uniform without the dealer's seeds
    9     P_l -> P_k      check values      zeros of a vote; 40 sums of the defects of a ballot that is none
    10    P_k -> all      ballots accepted  whose ballots are votes: public
    11    P_k -> server   noisy statistic   S with a full noise vector of every party, epsilon-DP; no single share
    12    server -> all   statistic, model  post-processing of step 11
    """
    rows = hashlib.sha256(plan.whitened.rows.astype("<i8").tobytes()).hexdigest()
    s.agree("plan", plan.mechanism, plan.regularisation, plan.poll.id, rows)
    everything = np.ones(plan.dimension, dtype=np.bool_)
    noise = s.draw_noise(plan.mechanism, dict.fromkeys(s.cast.parties, everything))
    result = tally(s, boxes, plan.poll)  # 1 to 10 for every batch
    exact = s.linear(result.counts, plan.weigh, (plan.dimension,), bits=plan.whitened.bits)
    noisy = s.add_noise(exact, noise)
    opened = s.reveal(noisy, to=s.cast.server, message="noisy statistic")  # 11
    counted = len(result.counted)
    solved = s.at(s.cast.server, plan.solve, opened, counted)
    statistic, weights = s.publish(solved, shape=(2, *plan.shape), message="statistic, model")  # 12
    guarantee = plan.guarantee(s.cast, counted)
    return EnsembleRelease(weights, statistic, guarantee, result.counted, result.rejected, result.missing)
