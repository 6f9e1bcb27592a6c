"""The public numbers of a split-learning job: who holds what, law, coupling, order of batches, guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms import validate
from mechanisms.guarantee import Guarantee
from mechanisms.neighbours import FlipLabel
from protocols.evaluation import words_of
from protocols.split.perturb import MAX_CLASSES, Perturbation
from protocols.split.post import check_post
from smpc.cast import Cast
from smpc.engine.frames import MAX_PAYLOAD
from smpc.errors import InputError, UnprotectedError

COUPLINGS = ("coupled", "independent")
LABELS_ONLY = "labels only: what f makes of the features is sent as it is, and the model itself predicts labels"
ONE_ROW = "one row a record, and a memo that is kept: other rows of one person cost again"

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Plan:
    """Everything about a job that both parties know. Raises InputError, UnprotectedError without a law or the word.

    features, labels: the parties' names. cut: width of what f gives. law None: Algorithm 1, which hides nothing.
    coupling: one draw a record for both uses (epsilon), or two independent ones (Algorithm 3 as printed, 2 epsilon).
    ahead: batches that the feature party sends before it needs the first one's gradient; its updates are that late.
    checkpoint: batches between checkpoints. seed: of the public starting weights and order of batches.
    """

    features: str
    labels: str
    rows: int
    cut: int
    law: Perturbation | None
    classes: int = 2
    coupling: str = "coupled"
    post: str = "none"
    bound: float = 0.0
    epochs: int = 1
    batch: int = 256
    ahead: int = 0
    checkpoint: int = 100
    learning_rate: float = 1e-3
    seed: int = 0
    unprotected: bool = False

    def __post_init__(self) -> None:
        try:
            for name, low in (("rows", 1), ("cut", 1), ("epochs", 1), ("batch", 1), ("ahead", 0), ("checkpoint", 1)):
                validate.integer(name, getattr(self, name), low=low)
            if validate.integer("classes", self.classes, low=2) > MAX_CLASSES:
                raise ValueError(f"classes = {self.classes}: at most {MAX_CLASSES}")
            validate.integer("seed", self.seed)
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from None
        rate = self.learning_rate
        if isinstance(rate, bool) or not (math.isfinite(rate) and 0 < rate <= 10):
            raise InputError(f"learning_rate = {rate}: must be above 0 and up to 10")
        if self.coupling not in COUPLINGS:
            raise InputError(f"coupling = {self.coupling!r}: must be one of {', '.join(COUPLINGS)}")
        if self.law is None and not self.unprotected:
            raise UnprotectedError("training without a law shows every label: give one, or say unprotected=True")
        if self.law is not None and (self.unprotected or self.law.classes != self.classes):
            raise InputError(
                f"law for {self.law.classes} classes, classes = {self.classes}, unprotected = {self.unprotected}: "
                "a law needs the job's number of classes and no unprotected"
            )
        if self.law is None and self.coupling == "independent":
            raise InputError("coupling = 'independent' is about two draws: training without a law has none")
        check_post(self.law, self.post, self.bound)
        _check_fits("a batch's embeddings", (min(self.batch, self.rows), self.cut), 4, "choose a smaller batch")

    @property
    def width(self) -> int:
        """Logits a record: one for two classes, unless the law has a value for each class."""
        if self.law is not None:
            return self.law.width
        return 1 if self.classes == 2 else self.classes

    @property
    def copies(self) -> int:
        """Draws a record."""
        return 2 if self.coupling == "independent" else 1

    @property
    def cast(self) -> Cast:
        """The two parties; nobody else takes part."""
        roles = {self.features: "P_N", self.labels: "P_L"}
        return Cast((self.features, self.labels), server="", dealer=None, roles=roles)

    @property
    def guarantee(self) -> Guarantee:
        """For the change of one label, against the other party; epochs and resumed runs use the same draws."""
        law = self.law
        return Guarantee.for_release(
            order="none" if law is None else "shares",
            epsilon=Fraction(1) if law is None else self.copies * law.epsilon,
            delta=Fraction(0) if law is None else self.copies * law.delta,
            parties=(self.features, self.labels),
            server=None,
            dealer=None,
            mechanism="none" if law is None else str(law),
            neighbours=FlipLabel(),
            accountant="pure sum",
            assumptions=(LABELS_ONLY, ONE_ROW),
        )

    @property
    def batches_an_epoch(self) -> int:
        return -(-self.rows // self.batch)

    @property
    def total_batches(self) -> int:
        return self.epochs * self.batches_an_epoch

    def batches(self, start: int = 0) -> Iterator[tuple[int, Rows]]:
        """From batch number `start` on: (number, record numbers). Every record once an epoch, in a public order."""
        for epoch in range(start // self.batches_an_epoch, self.epochs):
            words = words_of("split learning", self.seed, epoch, self.rows).words(self.rows)
            order = np.argsort(words, kind="stable").astype(np.int64)
            for number in range(epoch * self.batches_an_epoch, (epoch + 1) * self.batches_an_epoch):
                if number >= start:
                    place = (number - epoch * self.batches_an_epoch) * self.batch
                    yield number, order[place : place + self.batch]


def check_one_shot(plan: Plan) -> None:
    """Raises InputError for a plan whose perturbed labels are not one message."""
    if plan.copies != 1:
        raise InputError("coupling = 'independent' has two draws a label; one message needs coupling = 'coupled'")
    _check_fits("perturbed labels", (plan.rows, plan.width), 8, "leave one_shot out")


def _check_fits(what: str, shape: tuple[int, ...], item: int, instead: str) -> None:
    """`item`: bytes of an entry."""
    size = item * math.prod(shape)
    if size > MAX_PAYLOAD:
        raise InputError(f"{what} of shape {shape} take {size} bytes, one message {MAX_PAYLOAD}: {instead}")
