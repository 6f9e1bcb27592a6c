"""How much noise there is in a functional model, in words: against the largest sum that its rows can have."""

from __future__ import annotations

TOO_MUCH = 0.03
# What a share does to a model on the public tables of docs/protocols/functional.md; between them by ratio.
_VERDICTS = (
    (0.003, "it hardly shows in common values and strong columns"),
    (TOO_MUCH, "coefficients of common values and strong columns may be off by a fifth, rare and weak ones are noise"),
    (float("inf"), "the model says next to nothing; take more rows, fewer columns or a larger epsilon"),
)


def noise_line(deviation: float, rows: int) -> str:
    """One line: the noise's standard deviation `deviation` as a share of `rows`, the largest possible sum."""
    share = deviation / rows
    verdict = next(words for most, words in _VERDICTS if share < most)
    return f"noise: {share:.2g} of the largest possible sum of {rows:,} rows: {verdict}"
