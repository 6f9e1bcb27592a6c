"""`smpc reproduce split`: paper 4's Tables 1-3 and Figure 5, measured on the tables at hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from launch.reproduce.figure import Figure, Line, Panel
from launch.reproduce.page import Page, Table
from protocols.evaluation import Summary, summarise
from protocols.raw_tables import data_directory
from protocols.split import tables
from protocols.split.baselines import isotropic_gaussian, marvell, max_norm
from protocols.split.experiment import Method, Outcome, Setting, measure
from protocols.split.perturb import perturbation
from protocols.split.tables import Coded

EPSILONS = ("0.25", "0.5", "1", "2", "4", "8")
RATIOS = (0.5, 2.0, 8.0)  # isotropic noise over the batch's largest norm
SEEDS = 10
PLAIN, LAPLACE, DISCRETE, POSTERIOR, GAUSSIAN = (
    "no protection",
    "Laplace",
    "discrete",
    "Laplace, posterior mean",
    "Gaussian, isotropic",
)
SHOWN = ("norm", "spectral", "shortest distance, normalised", "shortest distance", "direction", "hint", "model")
DISTANCE = SHOWN[2]
_ABOUT = """
Two parties in one process, the protocol's own text, replayable noise: {seeds} seeds, each with its own split (a fifth
for testing), starting weights and draws; median [95 % interval, the range of what is measured where seeds are few].
AUC everywhere. Attacks see all batches of the last epoch, pooled; norm and spectral, whose sign says nothing, as
max(AUC, 1 - AUC). `form`: what the normalised shortest-distance attack reaches by its closed form. The tables are what
could be had of the paper's: subsets, named so; numbers are not the paper's. Gaussian (isotropic), max-norm and Marvell
have no privacy proof.
"""


@dataclass(frozen=True)
class Measured:
    """One method's outcomes over seeds; `epsilon` is "" where there is none, `strength` where it has another number."""

    family: str
    epsilon: str
    strength: str
    outcomes: tuple[Outcome, ...]

    @property
    def test(self) -> Summary:
        return summarise(outcome.test for outcome in self.outcomes)

    def attack(self, name: str) -> Summary:
        return summarise(outcome.attacks[name] for outcome in self.outcomes)


def page(quick: bool, say: Callable[[str], None]) -> Page:
    """All tables; quick: the one that comes with statsmodels, epsilon 1, two seeds. Raises InputError without data."""
    torch.set_num_threads(1)  # small products: more threads only wait for each other
    seeds = range(2 if quick else SEEDS)
    parts: list[str | Table | Figure] = [_ABOUT.format(seeds=len(seeds))]
    utility, trade = list[Panel](), list[Panel]()
    for table, setting, choices in _tables(quick):
        measured = [_measured(table, setting, choice, seeds, say) for choice in choices]
        parts += _section(table, setting, measured)
        if len({m.epsilon for m in measured}) > 2:
            utility.append(_against_epsilon(table, measured))
            trade.append(_against_attack(table, measured))
    if utility:
        parts += ["## Figure 5", Figure("utility", "epsilon", "test AUC", tuple(utility))]
        parts.append(Figure("trade", "attack AUC (shortest distance, normalised)", "test AUC", tuple(trade), log=""))
    return Page("split", "Label-private split learning, measured", tuple(parts))


@dataclass(frozen=True)
class Choice:
    """A method of a family at one strength."""

    family: str
    method: Method
    epsilon: str = ""
    strength: str = ""


def _private(epsilons: Sequence[str]) -> list[Choice]:
    found = []
    for family, law, post in (
        (LAPLACE, "laplace", "none"),
        (DISCRETE, "discrete", "none"),
        (POSTERIOR, "laplace", "posterior"),
    ):
        for epsilon in epsilons:
            method = Method(f"{family} {epsilon}", perturbation(law, epsilon), post)
            found.append(Choice(family, method, epsilon))
    return found


def _tables(quick: bool) -> list[tuple[Coded, Setting, list[Choice]]]:
    none = Choice(PLAIN, Method(PLAIN))
    if quick:
        return [(tables.fair(), Setting(3, 64), [none, *_private(["1"])])]
    baselines = [
        *(
            Choice(GAUSSIAN, Method(f"{GAUSSIAN} {r}", change=isotropic_gaussian(r)), strength=f"ratio {r:g}")
            for r in RATIOS
        ),
        Choice("max-norm", Method("max-norm", change=max_norm)),
        *(Choice("Marvell", Method(f"Marvell {s}", change=marvell(s)), strength=f"power {s:g}") for s in (1.0, 4.0)),
    ]
    everything = [none, *_private(EPSILONS), *baselines]
    folder = data_directory()
    return [
        (tables.avazu(folder), Setting(1, 64), everything),
        (tables.criteo(folder), Setting(1, 64), everything),
        (tables.fair(), Setting(3, 64), everything),
        (tables.adult(folder), Setting(2, 256), everything),
        (tables.kdd99(folder), Setting(1, 1024), [none, *_private(["1"])]),
    ]


def _measured(
    table: Coded, setting: Setting, choice: Choice, seeds: Sequence[int], say: Callable[[str], None]
) -> Measured:
    say(f"{table.name}: {choice.method.name}")
    outcomes = tuple(measure(table, setting, choice.method, seed) for seed in seeds)
    return Measured(choice.family, choice.epsilon, choice.strength, outcomes)


def _section(table: Coded, setting: Setting, measured: Sequence[Measured]) -> list[str | Table | Figure]:
    epochs = "one epoch" if setting.epochs == 1 else f"{setting.epochs} epochs"
    rows = len(table.labels)
    title = f"## {table.name}: {rows:,} rows, {table.labels.mean():.3f} positive, {epochs}, batches of {setting.batch}"
    columns = ("method", "epsilon", "test", *SHOWN, "form")
    cells = [
        (
            m.family,
            m.epsilon or m.strength or "-",
            _cell(m.test),
            *(_cell(m.attack(name)) for name in SHOWN),
            _form(m),
        )
        for m in measured
    ]
    plain = next(m for m in measured if m.family == PLAIN)
    lost = []
    for m in measured:
        if m.epsilon == "1":
            points = summarise(
                100 * (own.test - other.test) for own, other in zip(plain.outcomes, m.outcomes, strict=True)
            )
            lost.append(f"{m.family} {points.median:.2f} [{points.low:.2f}, {points.high:.2f}]")
    told = "Points of test AUC lost at epsilon 1, seed by seed: " + "; ".join(lost) + "."
    return [title, Table(columns, tuple(cells)), told]


def _cell(result: Summary) -> str:
    return f"{result.median:.3f} [{result.low:.3f}, {result.high:.3f}]"


def _form(measured: Measured) -> str:
    """The closed form, where gradients are those of t itself."""
    if measured.family not in (LAPLACE, DISCRETE):
        return "-"
    e = float(measured.epsilon)
    discrete = math.exp(e) / (1 + math.exp(e))
    return f"{discrete if measured.family == DISCRETE else 1 - (1 + e / 2) * math.exp(-e) / 2:.3f}"


def _lines(measured: Sequence[Measured], families: Sequence[str]) -> list[list[Measured]]:
    return [own for family in families if (own := [m for m in measured if m.family == family])]


def _against_epsilon(table: Coded, measured: Sequence[Measured]) -> Panel:
    lines = [
        Line(own[0].family, tuple(float(m.epsilon) for m in own), tuple(m.test for m in own))
        for own in _lines(measured, (LAPLACE, DISCRETE, POSTERIOR))
    ]
    plain = next(m for m in measured if m.family == PLAIN)
    return Panel(table.name, tuple(lines), {PLAIN: plain.test.median})


def _against_attack(table: Coded, measured: Sequence[Measured]) -> Panel:
    lines = []
    for own in _lines(measured, (LAPLACE, DISCRETE, GAUSSIAN)):
        ordered = sorted(own, key=lambda m: m.attack(DISTANCE).median)
        x = tuple(m.attack(DISTANCE).median for m in ordered)
        lines.append(Line(ordered[0].family, x, tuple(m.test for m in ordered)))
    return Panel(table.name, tuple(lines))
