"""`smpc reproduce data_release`: paper 2's figures 2 and 3 and table 1, measured, beside our gram release."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from launch.reproduce import release_figure2 as figure2
from launch.reproduce import release_tables as tables
from launch.reproduce.figure import Panel, Points
from launch.reproduce.page import Page, Table
from launch.reproduce.release_synthetic import DGM, EPSILONS, joint_epsilon, measure
from launch.reproduce.release_tables import Errors
from protocols.averages import mean
from protocols.raw_tables import data_directory
from smpc.errors import InputError

Say = Callable[[str], None]
QUICK_SIZES = (10**4, 3 * 10**4, 10**5)
SEEDS = {True: 20, False: 1000}
TABLE_SEEDS = {True: 5, False: 40}
QUICK_TABLES = ("insurance", "bike", "MSD-12")
SCATTER = 10**6


def page(quick: bool, say: Say) -> Page:
    """The whole page; `quick`: few seeds, fewer records, small tables."""
    sizes = QUICK_SIZES if quick else figure2.SIZES
    found = measure(sizes, SEEDS[quick], say)
    real = _real_tables(quick, say)
    closer, verdict = figure2.closer(found, sizes)
    scatter = figure2.eigenvalue_scatter(found, sizes[-1] if quick else SCATTER, _scatter(real))
    return Page(
        "data_release",
        "Multi-party data release: the paper's comparisons, measured",
        (
            _introduction(quick),
            "## Figure 2: distance to the true weights",
            *(figure2.distances(found, epsilon, sizes) for epsilon in EPSILONS),
            figure2.agreement(found, sizes),
            *figure2.curves(found, sizes),
            figure2.probabilities(found, sizes),
            _DIVERGENCE,
            "## Records and mixed rows drawn from normal laws",
            figure2.check_of_normal_rows(found),
            "## The rate in n, and rules for k",
            _SLOPES,
            figure2.slopes(found, sizes),
            figure2.rule_table(sizes),
            "## What the printed settings cost a whole record",
            _joint(),
            "## Our gram release at the same guarantee for a whole record",
            f"Times closer to the true weights than the official RMGM (than the best of all rules for k). {verdict}",
            closer,
            "## Figure 3: small eigenvalues",
            scatter,
            *_table1(real),
        ),
    )


def _introduction(quick: bool) -> str:
    return f"""
Made by `smpc reproduce data_release --out DIR{" --quick" if quick else ""}`, the real tables with SMPC_DATA set.
Means over {SEEDS[quick]} seeds (real tables: {TABLE_SEEDS[quick]}), with 95 % intervals; delta = 1e-5. Up to n = 1e5
records and the sign matrix B are real; above, X'X is drawn from the normal law that its sums tend to, and mixed rows
from N(0, X'X). Noise is drawn from its exact second-moment law (`launch/reproduce/release_simulation.py`). `official`:
k = 10 sqrt(n) / sigma as in the authors' code; `printed`: sqrt(n) / sigma as in the article; `theorem`: its rate;
`balanced`: ours, from public numbers only.
"""


_DIVERGENCE = """
DGM has no mean that could be measured: where the noise leaves an eigenvalue near zero its weights are of any size. Its
median is what a user gets. BGM is the zero predictor but for a few percent, and so is its distance.
"""
_SLOPES = """
The theorem's exponent grows with sqrt(n) min(beta, beta^2): distances below 1 fall as n^(-1/4) at least. Its rule for k
does better here, as the label has no error of its own. `balanced` expects a label as spread as its declared range; this
one is thirty times less so, and at epsilon 0.3 and 0.1 the rule mixes too few rows for it.
"""


def _joint() -> Table:
    rows = [(f"{float(e):g}", f"{float(joint_epsilon(e)):.3f}") for e in EPSILONS]
    return Table(("epsilon of each of six parties, as printed", "of a whole record, analytic"), tuple(rows))


def _real_tables(quick: bool, say: Say) -> dict[str, Errors]:
    try:
        directory = data_directory()
    except InputError:
        say("SMPC_DATA is not set: without the real tables")
        return {}
    measured = {}
    for name, load in tables.TABLES.items():
        if quick and name not in QUICK_TABLES:
            continue
        table = tables.Table(load(directory))
        say(f"{name}: {table.records:,} training rows, {table.features} features, {table.parties} parties")
        measured[name] = tables.measure(table, TABLE_SEEDS[quick])
    return measured


def _scatter(real: dict[str, Errors]) -> Panel | None:
    if not real:
        return None
    name, errors = next(reversed(real.items()))
    points = Points(DGM, tuple(errors.eigenvalues), tuple(errors.official[DGM, EPSILONS[0]]))
    return Panel(f"{name}, epsilon 1", (), points=(points,))


def _table1(real: dict[str, Errors]) -> list[str | Table]:
    if not real:
        return ["## Table 1\n\nNot measured: SMPC_DATA was not set."]
    return [
        "## Table 1, official metric: clipped, k by test error",
        _official_table(real),
        _official_verdict(real),
        "## Table 1, honest metric: nothing chosen on test rows",
        _honest_table(real),
        _honest_verdict(real),
    ]


def _official_table(real: dict[str, Errors]) -> Table:
    rows = []
    for name, errors in real.items():
        fixed = [f"{np.mean(errors.official[level, None]):.4g}" for level in (tables.OLS, tables.ZERO)]
        for e in EPSILONS:
            k = errors.best_rows(e)
            cells = [str(mean(errors.official[m, e])) for m in (tables.BGM, tables.DGM)]
            rows.append((f"{name}, {float(e):g}", *cells, f"{mean(errors.mixed[e, k])}", f"{k:,}", *fixed))
    return Table(("table, epsilon", "BGM", "DGM", "RMGM", "its k", "OLS", "predict zero"), tuple(rows))


def _official_verdict(real: dict[str, Errors]) -> str:
    cells = [(name, e) for name in real for e in EPSILONS]
    ours = {(name, e): float(np.mean(real[name].mixed[e, real[name].best_rows(e)])) for name, e in cells}
    lowest = [c for c in cells if ours[c] < min(_means(real[c[0]].official, (tables.BGM, tables.DGM), c[1]))]
    zero = [c for c in cells if ours[c] < float(np.mean(real[c[0]].official[tables.ZERO, None]))]
    ties = [
        (name, e)
        for name, e in cells
        if (name, e) not in lowest
        and mean(real[name].mixed[e, real[name].best_rows(e)]).low < mean(real[name].official[tables.BGM, e]).high
    ]
    return (
        f"RMGM is the lowest of BGM, DGM and RMGM in {len(lowest)} of {len(cells)} cells (the paper: 12 of 15)"
        f"{_but(cells, lowest)}; below the zero predictor in {len(zero)}. In {len(ties)} of the cells that it loses "
        "its interval and BGM's overlap: both are the zero predictor with noise, and which is lower is chance. The "
        "authors' coding of the columns is not published; ours has public bounds and categories."
    )


def _honest_table(real: dict[str, Errors]) -> Table:
    methods = (tables.BGM, tables.FLOOR, tables.RMGM, tables.SHRUNK, tables.GRAM, tables.POSTERIOR)
    rows = []
    for name, errors in real.items():
        fixed = [f"{np.mean(errors.honest[level, None]):.4g}" for level in (tables.OLS, tables.MIDDLE)]
        rows += [
            (f"{name}, {float(e):g}", *(str(mean(errors.honest[m, e])) for m in methods), *fixed) for e in EPSILONS
        ]
    return Table(("table, epsilon", *methods, "OLS", "predict the middle"), tuple(rows))


def _honest_verdict(real: dict[str, Errors]) -> str:
    cells = [(name, e) for name in real for e in EPSILONS]

    def error(cell: tuple[str, Fraction], *methods: str) -> float:
        return min(_means(real[cell[0]].honest, methods, cell[1]))

    def middle(cell: tuple[str, Fraction]) -> float:
        return float(np.mean(real[cell[0]].honest[tables.MIDDLE, None]))

    ours = (tables.RMGM, tables.SHRUNK)
    lowest = {m: [c for c in cells if error(c, m) < error(c, tables.BGM, tables.FLOOR)] for m in ours}
    useful = {m: [c for c in cells if error(c, m) < middle(c)] for m in ours}
    gram = [c for c in cells if error(c, tables.GRAM) < error(c, *ours)]
    return (
        f"Lower than BGM and DGM with a floor: RMGM by least squares in {len(lowest[tables.RMGM])} of {len(cells)} "
        f"cells, shrunk in {len(lowest[tables.SHRUNK])}{_but(cells, lowest[tables.SHRUNK])}; lower than predicting the "
        f"middle of the label's range: {len(useful[tables.RMGM])} and {len(useful[tables.SHRUNK])}. The gram release "
        f"with AdaSSP, at the same epsilon for a whole record, has a lower error than both in {len(gram)} of "
        f"{len(cells)} cells{_but(cells, gram)}."
    )


def _means(
    errors: dict[tuple[str, Fraction | None], list[float]], methods: tuple[str, ...], e: Fraction
) -> list[float]:
    return [float(np.mean(errors[method, e])) for method in methods]


def _but(cells: list[tuple[str, Fraction]], good: list[tuple[str, Fraction]]) -> str:
    missed = ", ".join(f"{name} at {float(e):g}" for name, e in cells if (name, e) not in good)
    return f" (not {missed})" if missed else ""
