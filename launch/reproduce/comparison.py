"""Methods compared on one data set at several epsilons: repeated errors as a table, a panel, and ratios."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from launch.reproduce.figure import Line, Panel
from launch.reproduce.page import Table
from launch.reproduce.trial import Trial
from protocols.evaluation import Summary, summarise

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(10))

Method = Callable[[Trial, Fraction], float]
Level = Callable[[Trial], float]


@dataclass(frozen=True)
class Comparison:
    """Summaries of test errors: of `private` by method and epsilon, of `levels` by name."""

    title: str
    private: Mapping[str, Mapping[Fraction, Summary]]
    levels: Mapping[str, Summary]

    def table(self) -> Table:
        epsilons = list(next(iter(self.private.values())))
        rows = [(name, *(str(results[e]) for e in epsilons)) for name, results in self.private.items()]
        rows += [(name, str(result), *[""] * (len(epsilons) - 1)) for name, result in self.levels.items()]
        return Table((self.title, *(f"epsilon {float(e):g}" for e in epsilons)), tuple(rows))

    def panel(self, methods: Sequence[str], levels: Sequence[str]) -> Panel:
        lines = [Line(m, tuple(map(float, self.private[m])), tuple(self.private[m].values())) for m in methods]
        return Panel(self.title, tuple(lines), {name: self.levels[name].median for name in levels})


def compare(
    title: str,
    trials: Iterable[Trial],
    methods: Mapping[str, Method],
    levels: Mapping[str, Level],
    epsilons: Sequence[Fraction] = EPSILONS,
) -> Comparison:
    """Every method at every epsilon on the same trials, each with draws of its own."""
    private: dict[str, dict[Fraction, list[float]]] = {name: {e: [] for e in epsilons} for name in methods}
    fixed: dict[str, list[float]] = {name: [] for name in levels}
    for trial in trials:
        for name, method in methods.items():
            for epsilon in epsilons:
                private[name][epsilon].append(method(trial, epsilon))
        for name, level in levels.items():
            fixed[name].append(level(trial))
    return Comparison(
        title,
        {name: {e: summarise(results) for e, results in by.items()} for name, by in private.items()},
        {name: summarise(results) for name, results in fixed.items()},
    )


@dataclass(frozen=True)
class Ratio:
    """Our median error over the paper's, and the same of what either is above the error without privacy."""

    title: str
    epsilon: Fraction
    ours: float
    paper: float
    exact: float

    @property
    def error(self) -> float:
        """Infinite where the paper's is 0."""
        return self.ours / self.paper if self.paper else float("inf")

    @property
    def excess(self) -> float:
        """Infinite where the paper's has none."""
        above = self.paper - self.exact
        return (self.ours - self.exact) / above if above > 0 else float("inf")


def ratios(found: Comparison, ours: str, paper: Sequence[str], exact: str) -> list[Ratio]:
    """`paper`: its variants, of which the best at each epsilon counts, by test error: it is given the benefit."""
    return [
        Ratio(found.title, e, result.median, min(found.private[p][e].median for p in paper), found.levels[exact].median)
        for e, result in found.private[ours].items()
    ]


def ratio_table(found: Sequence[Ratio]) -> Table:
    rows = [
        (r.title, f"{float(r.epsilon):g}", f"{r.ours:.4g}", f"{r.paper:.4g}", f"{r.error:.3f}", f"{r.excess:.2f}")
        for r in found
    ]
    return Table(("data set", "epsilon", "ours", "paper's best", "error ratio", "excess ratio"), tuple(rows))


def verdict(found: Sequence[Ratio]) -> str:
    lower, half = sum(r.error < 1 for r in found), sum(r.excess <= 0.5 for r in found)
    missed = ", ".join(f"{r.title} at {float(r.epsilon):g}" for r in found if r.error >= 1)
    return (
        f"Lower median error on {lower} of {len(found)}{f' (not on {missed})' if missed else ''}; "
        f"at most half the excess error on {half} of {len(found)}."
    )
