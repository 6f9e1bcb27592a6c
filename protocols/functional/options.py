"""The choices of the functional mechanism: each is named in the job and shows in the guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from mechanisms import validate
from smpc.errors import InputError

LOSSES = ("linear", "logistic")
SENSITIVITIES = ("tight", "paper")
RELEASES = ("symmetric", "ordered")
MECHANISMS = ("laplace", "gaussian", "gamma-norm")
EXPANSIONS = ("taylor", "chebyshev")
REPAIRS = ("ridge", "adassp", "spectral", "none", "posterior", "rescaled")
WEIGHTS = ("equal", "balanced")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Options:
    """How the objective is built, perturbed and repaired.

    sensitivity: `tight` is exact for the released sums; `paper` is the source's constant. release: each unordered pair
    of columns once (`symmetric`), or both orders with noise of their own, averaged (`ordered`, the source's count).
    expansion of the logistic loss: order-2 Taylor at 0, or the least-squares quadratic on margins in [-margin, margin].
    weights: how noise is spread over the sums, `equal` or `balanced` (`protocols.functional.weights`). repair of a
    noisy form: see `protocols.functional.quadratic`. budgets: bottom-up, an epsilon for every party's own block, keyed
    (p, p), and for every pair's, keyed (p, q) in the parties' order; then epsilon is their sum.
    """

    loss: str = "linear"
    sensitivity: str = "tight"
    release: str = "symmetric"
    mechanism: str = "laplace"
    expansion: str = "taylor"
    margin: float = 4.0
    repair: str = "ridge"
    weights: str = "equal"
    delta: Fraction | None = None
    budgets: Mapping[Pair, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, known in (
            ("loss", LOSSES),
            ("sensitivity", SENSITIVITIES),
            ("release", RELEASES),
            ("mechanism", MECHANISMS),
            ("expansion", EXPANSIONS),
            ("repair", REPAIRS),
            ("weights", WEIGHTS),
        ):
            if getattr(self, name) not in known:
                raise InputError(f"{name} = {getattr(self, name)!r}: must be one of {', '.join(known)}")
        if isinstance(self.margin, bool) or not (math.isfinite(self.margin) and 0 < self.margin <= 100):
            raise InputError(f"margin = {self.margin}: must be a number above 0 and up to 100")
        self._check_combinations()

    def _check_combinations(self) -> None:
        if self.release == "ordered" and self.sensitivity != "paper":
            raise InputError("release = 'ordered' exists to reproduce the source: it needs sensitivity = 'paper'")
        if self.sensitivity == "paper" and self.mechanism != "laplace":
            raise InputError(f"mechanism = {self.mechanism!r}: the source's constants are for 'laplace'; say 'tight'")
        if self.weights == "balanced" and (self.sensitivity, self.mechanism, bool(self.budgets)) != (
            "tight",
            "laplace",
            False,
        ):
            raise InputError(
                "weights = 'balanced' needs sensitivity = 'tight', mechanism = 'laplace', no budgets; or leave it out"
            )
        if self.expansion == "chebyshev" and (self.loss != "logistic" or self.sensitivity == "paper"):
            raise InputError("expansion = 'chebyshev' is for loss = 'logistic' with sensitivity = 'tight'")
        if (self.mechanism == "gaussian") != (self.delta is not None):
            told = "delta is missing" if self.delta is None else f"delta = {self.delta}"
            raise InputError(f"{told}: mechanism = 'gaussian' needs one in (0, 1), the others have none")
        if self.delta is not None:
            try:
                validate.delta(self.delta)
            except (TypeError, ValueError) as error:
                raise InputError(str(error)) from None
        if self.budgets and (self.mechanism != "laplace" or self.sensitivity != "tight"):
            raise InputError("bottom-up budgets need mechanism = 'laplace' and sensitivity = 'tight'")
