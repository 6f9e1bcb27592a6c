"""`smpc reproduce functional`: paper 1's comparisons, measured."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from launch.reproduce.figure import Figure, Line, Panel
from launch.reproduce.page import Page, Table
from mechanisms.randomness import RandomWords
from protocols import datasets
from protocols.baselines import central_fm, ols, trivial
from protocols.baselines.inputs import with_ones
from protocols.evaluation import mean_squared_error, repeat, split

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(10))


def page(quick: bool, say: Callable[[str], None]) -> Page:
    """Errors on randhie, which comes with statsmodels."""
    seeds = range(10 if quick else 50)
    x, y = datasets.randhie().scaled()
    x = with_ones(x)
    train, test = split(len(y), 0)

    def error_at(epsilon: Fraction) -> Callable[[RandomWords], float]:
        def error(words: RandomWords) -> float:
            model = central_fm.fit(x[train], y[train], loss="linear", epsilon=epsilon, random=words, constants="author")
            return mean_squared_error(y[test], model.score(x[test]))

        return error

    results = []
    for epsilon in EPSILONS:
        say(f"randhie, epsilon {float(epsilon):g}")
        results.append(repeat(error_at(epsilon), seeds))
    zero = mean_squared_error(y[test], trivial.zero(x.shape[1]).score(x[test]))
    exact = mean_squared_error(y[test], ols.fit(x[train], y[train]).score(x[test]))
    levels = {"predict zero": zero, "not private": exact}
    line = Line("functional mechanism, author's constants", tuple(map(float, EPSILONS)), tuple(results))
    rows = [(f"epsilon {float(e):g}", str(result)) for e, result in zip(EPSILONS, results, strict=True)]
    rows += [(name, f"{np.round(level, 4):g}") for name, level in levels.items()]
    return Page(
        "functional",
        "Functional mechanism, measured",
        (
            "Mean squared error, label scaled to [-1, 1]: median [95 % interval].",
            Table(("randhie", "error"), tuple(rows)),
            Figure("linear", "epsilon", "mean squared error", (Panel("randhie", (line,), levels),)),
        ),
    )
