"""The methods of paper 1's comparisons: the paper's mechanism in its variants, ours, and the baselines."""

from __future__ import annotations

from fractions import Fraction

from launch.reproduce.comparison import Level, Method
from launch.reproduce.trial import Trial
from protocols.baselines import adassp, central_fm, dpfw, dpsgd, logistic, ols, trivial
from protocols.functional.options import Options

PAPER = ("paper: trimmed", "paper: ridge 4, trimmed", "paper: ridge 5, trimmed")
OURS = "ours"
JOINT = "ours, joint noise (delta)"
GAUSSIAN = "ours, Gaussian (delta)"
DPSGD, DPFW, ADASSP = "DP-SGD (delta)", "DPFW (delta)", "AdaSSP (delta)"
PER_STEP = "the paper's DP-SGD: Laplace, pure sum"
ZERO, EXACT = "predict zero", "not private"
MOST_STEPS = 200  # of DPFW: its own (n epsilon)^(2/3) are thousands


def best(loss: str) -> Options:
    """The pure variant that we take, by the loss alone."""
    return Options(loss=loss, weights="balanced", repair="posterior" if loss == "linear" else "rescaled")


def delta(trial: Trial) -> Fraction:
    """1 / n, as the paper has it for DPFW."""
    return Fraction(1, len(trial.train))


def protocol_methods(loss: str, parties: tuple[int, ...]) -> dict[str, Method]:
    """The paper's mechanism and ours, by `functional.fit`; ours with shares of noise for every number of parties."""
    paper = Options(loss=loss, sensitivity="paper", release="ordered", repair="spectral")
    repair = best(loss).repair

    def gaussian(trial: Trial, epsilon: Fraction) -> float:
        return trial.protocol(epsilon, Options(loss=loss, mechanism="gaussian", delta=delta(trial), repair=repair))

    def ours(count: int) -> Method:
        return lambda trial, epsilon: trial.protocol(epsilon, best(loss), parties=count)

    methods: dict[str, Method] = {
        PAPER[0]: lambda trial, epsilon: trial.protocol(epsilon, paper, noise="paper", categories=False),
        **{name: _central(loss, c) for name, c in zip(PAPER[1:], central_fm.CONSTANTS, strict=True)},
        "tight sensitivity, each sum once": lambda trial, epsilon: trial.protocol(
            epsilon, Options(loss=loss), categories=False
        ),
        OURS: ours(parties[0]),
    }
    methods |= {f"{OURS}, K = {count}": ours(count) for count in parties[1:]}
    return methods | {
        JOINT: lambda trial, epsilon: trial.protocol(epsilon, best(loss), noise="joint"),
        GAUSSIAN: gaussian,
    }


def _central(loss: str, constants: str) -> Method:
    """The mechanism with one curator: the law of the protocol's, with the articles' ridge before trimming."""

    def method(trial: Trial, epsilon: Fraction) -> float:
        name = f"functional mechanism, {constants}, {epsilon}"
        return trial.baseline(
            name,
            lambda x, y, words: central_fm.fit(x, y, loss=loss, epsilon=epsilon, random=words, constants=constants),
        )

    return method


def logistic_methods(parties: tuple[int, ...]) -> dict[str, Method]:
    def sgd(trial: Trial, epsilon: Fraction) -> float:
        return trial.baseline(
            f"DP-SGD, {epsilon}",
            lambda x, y, words: dpsgd.fit(x, y, loss="logistic", epsilon=epsilon, delta=delta(trial), random=words),
            signed=False,  # shorter rows: less is clipped
        )

    def per_step(trial: Trial, epsilon: Fraction) -> float:
        return trial.baseline(
            f"per-step Laplace, {epsilon}",
            lambda x, y, words: dpsgd.fit_laplace(x, y, loss="logistic", epsilon=epsilon, random=words),
            signed=False,
        )

    return {
        **protocol_methods("logistic", parties),
        DPSGD: sgd,
        PER_STEP: per_step,
    }


def linear_methods() -> dict[str, Method]:
    def frank_wolfe(trial: Trial, epsilon: Fraction) -> float:
        steps = min(MOST_STEPS, dpfw.default_steps(len(trial.train), epsilon))
        return trial.baseline(
            f"DPFW, {epsilon}",
            lambda x, y, words: dpfw.fit(
                x, y, loss="linear", epsilon=epsilon, delta=delta(trial), random=words, steps=steps
            ),
        )

    def ssp(trial: Trial, epsilon: Fraction) -> float:
        return trial.baseline(
            f"AdaSSP, {epsilon}",
            lambda x, y, words: adassp.fit(x, y, epsilon=epsilon, delta=delta(trial), random=words),
        )

    return {**protocol_methods("linear", (2,)), DPFW: frank_wolfe, ADASSP: ssp}


def zero(trial: Trial) -> float:
    return trial.baseline(ZERO, lambda x, y, words: trivial.zero(x.shape[1]))


LOGISTIC_LEVELS: dict[str, Level] = {
    ZERO: zero,
    "predict the majority": lambda trial: trial.baseline("majority", lambda x, y, words: trivial.majority(x, y)),
    EXACT: lambda trial: trial.baseline("logistic", lambda x, y, words: logistic.fit(x, y)),
}
LINEAR_LEVELS: dict[str, Level] = {
    ZERO: zero,
    "predict the mean": lambda trial: trial.baseline("mean", lambda x, y, words: trivial.mean(x, y)),
    EXACT: lambda trial: trial.baseline("least squares", lambda x, y, words: ols.fit(x, y)),
}
