"""Paper 3's Algorithms 1 and 2: the solver gets exact labels or vote shares and perturbs the minimiser.

`soft` (Algorithm 2): the loss of every sample is weighted by the share of the votes. `majority` (Algorithm 1): the
label of a sample is the class with most votes, the first of equal ones. The solver minimises, and adds noise of density
exp(-epsilon |b| / sensitivity), or Gaussian noise, to the weights. The paper trusts whoever holds votes and minimiser;
here votes stay secret-shared up to the labels or counts, which the solver still sees. `protocols.ensemble.statistic`
opens neither and needs far less noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechanisms import calibration, minimiser
from mechanisms.coalition import Coalition, required
from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.gamma_norm import GammaNorm
from mechanisms.guarantee import COMPUTATIONAL, DEALER_APART, INFINITE, OPENED_BEFORE_NOISE, SEMI_HONEST, Guarantee, Row
from mechanisms.minimiser import Loss
from mechanisms.neighbours import ReplaceParty
from protocols.baselines.output_perturbation import lattice_bits
from protocols.ensemble import erm
from protocols.ensemble.auxiliary import Auxiliary
from protocols.ensemble.budget import Budget
from protocols.ensemble.release import PUBLIC, EnsembleRelease, voters
from protocols.ensemble.statistic import check_regularisation
from protocols.schema import Floats
from smpc.ballots.box import Box
from smpc.ballots.counting import Tally, tally
from smpc.ballots.poll import Poll
from smpc.cast import Cast
from smpc.errors import InputError
from smpc.fixedpoint import encode
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, Shared

LABELS = ("soft", "majority")
CONSTANTS = ("tight", "paper")
PRIVATE_AUXILIARY = (
    "who was counted is public; who is replaced is a counted voter with one auxiliary sample at most, which the "
    "other voters and the solver know"
)

SOLVER_UNSEEN = (
    "nobody sees how long the solver takes, or that it gives up: its steps depend on votes before their noise"
)


@dataclass(frozen=True)
class PaperPlan:
    """`constants`: the paper's; or `tight`, half of them with two classes (the logistic loss), and never more than
    twice the longest minimiser, which with majority labels is much less.

    `private_auxiliary`: a replaced party may have contributed one of the auxiliary samples as well (the paper's factor
    (N + M - 1) / N of soft labels).
    """

    auxiliary: Auxiliary
    poll: Poll
    budget: Budget
    labels: str = "soft"
    constants: str = "tight"
    regularisation: Fraction = Fraction(1, 10_000)
    private_auxiliary: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (("labels", self.labels, LABELS), ("constants", self.constants, CONSTANTS)):
            if value not in known:
                raise InputError(f"{name} = {value!r}: must be one of {', '.join(known)}")
        if self.poll.samples != self.auxiliary.count:
            raise InputError(f"the poll is on {self.poll.samples} samples, there are {self.auxiliary.count}")
        check_regularisation(float(self.regularisation))

    @property
    def shape(self) -> tuple[int, int]:
        return self.poll.width, self.auxiliary.columns

    @property
    def loss(self) -> Loss:
        if self.poll.classes > 2:
            return Loss.SOFTMAX
        return Loss.MARGIN if self.constants == "paper" else Loss.LOGISTIC

    def sensitivity(self, counted: int) -> Fraction:
        """L2, of the minimiser that Newton's method finds: within TOLERANCE / lambda of the exact one, either side."""
        change = minimiser.gradient_change(
            self.loss,
            parties=counted if self.labels == "soft" else None,
            points=self.auxiliary.count,
            own_points=int(self.private_auxiliary),
        )
        found = minimiser.exact_minimiser(change, self.regularisation)
        if self.constants == "tight":
            found = min(found, 2 * minimiser.longest_minimiser(self.poll.classes, self.regularisation))
        return found + minimiser.exact_minimiser(2 * Fraction(erm.TOLERANCE), self.regularisation)

    def mechanism(self, counted: int) -> tuple[GammaNorm | DiscreteGaussian, int]:
        """The noise on weights in units of 2^-bits, and bits."""
        l2, dimension = self.sensitivity(counted), self.poll.width * self.auxiliary.columns
        bits = lattice_bits(l2, dimension)
        return self.budget.noise(calibration.lattice_l2(l2, dimension, bits), dimension), bits

    def solve(self, alpha: Floats, noise: Integers, bits: int) -> Floats:
        """The perturbed minimiser, shape (width, d), for label weights (width, samples)."""
        return self.perturbed(self.exact(alpha), noise, bits)

    def exact(self, alpha: Floats) -> Floats:
        """The minimiser before its noise."""
        s = erm.statistic(self.auxiliary.x, alpha)
        return erm.minimise(self.auxiliary.x, s, float(self.regularisation)).weights

    def perturbed(self, exact: Floats, noise: Integers, bits: int) -> Floats:
        """On the lattice of 2^-bits, with noise."""
        noisy = encode(exact.reshape(-1), bits) + noise
        return np.ldexp(noisy.astype(np.float64), -bits).reshape(self.shape)

    def from_counts(self, counts: Integers, counted: int) -> Floats:
        return np.asarray(counts / counted)

    def from_labels(self, labels: Integers) -> Floats:
        """One-hot label weights of class numbers."""
        if self.poll.width == 1:
            return labels[None].astype(np.float64)
        return np.asarray(labels == np.arange(self.poll.width)[:, None], dtype=np.float64)

    def guarantee(self, cast: Cast, counted: int) -> Guarantee:
        """The solver sees labels or counts before the noise: only those who see nothing but the model are held off."""
        model = Row(
            Coalition(frozenset(), len(cast.parties) - 1),
            ReplaceParty(),
            self.budget.epsilon,
            self.budget.delta or Fraction(0),
            str(self.mechanism(counted)[0]),
            self.budget.accountant,
            (
                *(SEMI_HONEST, COMPUTATIONAL, DEALER_APART, SOLVER_UNSEEN, voters(counted)),
                PRIVATE_AUXILIARY if self.private_auxiliary else PUBLIC,
            ),
        )
        exposed = replace(
            model, epsilon=INFINITE, delta=Fraction(0), accountant="none", assumptions=(OPENED_BEFORE_NOISE,)
        )
        rows = [replace(exposed, coalition=c) for c in required(cast.parties, cast.server, cast.dealer)]
        return Guarantee(cast.parties, cast.server, cast.dealer, (*rows, model))


def release(s: Session, boxes: Mapping[str, Held[Box]], plan: PaperPlan) -> EnsembleRelease:
    """A perturbed minimiser from the ballots in the parties' boxes."""
    s.agree("plan", plan.budget, plan.labels, plan.constants, plan.regularisation, plan.poll.id)
    return script(plan.labels)(s, boxes, plan)


def script(labels: str) -> Callable[[Session, Mapping[str, Held[Box]], PaperPlan], EnsembleRelease]:
    """The protocol's text for these labels."""
    return {"soft": _soft, "majority": _majority}[labels]


def _soft(s: Session, boxes: Mapping[str, Held[Box]], plan: PaperPlan) -> EnsembleRelease:
    """Algorithm 2.

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
    11    P_k -> server   exact counts      the votes for every class of every sample: no privacy against it
    12    server -> all   model             the minimiser with noise, epsilon-DP
    """
    result = tally(s, boxes, plan.poll)  # 1 to 10 for every batch
    opened = s.reveal(result.counts, to=s.cast.server, message="exact counts", unprotected=True)  # 11
    alpha = s.at(s.cast.server, plan.from_counts, opened, len(result.counted))
    return _perturbed(s, alpha, result, plan)  # 12


def _majority(s: Session, boxes: Mapping[str, Held[Box]], plan: PaperPlan) -> EnsembleRelease:
    """Algorithm 1. The majority is found on shares: the solver sees labels, not how clear they are.

    step  from -> to      message             the receiver learns
    1     P_k -> all      next ballots        whose ballots the first party has: public
    2     P_k -> P_l      ballot digests      digests of the sealed shares of all: no vote
    3     P_k -> all      ballots held        which of them are here and the same: public
    4     P_k -> P_l      commitment          nothing: perfectly hiding
    5     P_k -> P_l      echo                the commitments of step 4
    6     P_k -> P_l      opening             the coin, tossed after the ballots are fixed
    7     dealer -> P_k   corrections         nothing: uniform
    8     P_k -> P_l      masked entries      nothing: uniform without the dealer's seeds
    9     P_l -> P_k      check values        zeros of a vote; 40 sums of the defects of a ballot that is none
    10    P_k -> all      ballots accepted    whose ballots are votes: public
    11    dealer -> P_k   corrections         nothing: uniform
    12    P_k -> P_l      masked comparisons  nothing: uniform without the dealer's seeds
    13    P_k -> server   exact labels        the class with most votes of every sample: no privacy against it
    14    server -> all   model               the minimiser with noise, epsilon-DP
    """
    result = tally(s, boxes, plan.poll)  # 1 to 10 for every batch
    winners = s.argmax(every_class(s, result, plan.poll))  # 11, 12
    opened = s.reveal(winners, to=s.cast.server, message="exact labels", unprotected=True)  # 13
    return _perturbed(s, s.at(s.cast.server, plan.from_labels, opened), result, plan)  # 14


def every_class(s: Session, result: Tally, poll: Poll) -> Shared:
    """Shares of the votes for every class, shape (classes, samples): with two, those for class 0 are what is left."""
    if poll.width > 1:
        return result.counts
    shape = (2, poll.samples)
    first = s.cast.parties[0]
    everybody = np.vstack([np.full(poll.samples, len(result.counted)), np.zeros(poll.samples)]).astype(np.int64)
    return s.total([s.linear(result.counts, _both, shape), s.share(s.at(first, np.copy, everybody), shape)])


def _both(counts: Integers) -> Integers:
    return np.vstack([-counts, counts])


def _perturbed(s: Session, alpha: Held[Floats], result: Tally, plan: PaperPlan) -> EnsembleRelease:
    server, counted = s.cast.server, len(result.counted)
    mechanism, bits = plan.mechanism(counted)
    noise = s.draw_noise(mechanism, {server: np.ones(plan.poll.width * plan.auxiliary.columns, dtype=np.bool_)})
    solved = s.at(server, plan.solve, alpha, noise.draws[server], bits)
    weights = s.publish(solved, shape=plan.shape, message="model")
    guarantee = plan.guarantee(s.cast, counted)
    return EnsembleRelease(weights, None, guarantee, result.counted, result.rejected, result.missing)
