"""The part of a job file that says how the protocol computes and protects: epsilon, options, bottom-up budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from launch.jobfile.fields import Fields, JobError
from mechanisms import validate
from protocols.functional.options import (
    EXPANSIONS,
    LOSSES,
    MECHANISMS,
    RELEASES,
    REPAIRS,
    SENSITIVITIES,
    WEIGHTS,
    Options,
    Pair,
)
from smpc.errors import InputError

_CHOICES = {
    "loss": LOSSES,
    "sensitivity": SENSITIVITIES,
    "release": RELEASES,
    "mechanism": MECHANISMS,
    "expansion": EXPANSIONS,
    "repair": REPAIRS,
    "weights": WEIGHTS,
}
OPTION_KEYS = ("epsilon", "allow_weak", "delta", "margin", *_CHOICES)


def read_epsilon(table: Fields, key: str) -> Fraction:
    """The exact fraction that the file spells: 0.1 is 1/10."""
    allow_weak = table.switch("allow_weak") if key == "epsilon" else False
    value = table.get(key)
    try:
        return validate.epsilon(_text(value), allow_weak=allow_weak)
    except (TypeError, ValueError):
        raise table.fail(
            key,
            f"a number above 0 and up to {validate.WEAK_EPSILON} like 0.1 or '1/3' (allow_weak = true lifts the limit)",
        ) from None


def _text(value: Any) -> object:
    """Decimals as `mechanisms.validate` takes them."""
    return str(value) if isinstance(value, Decimal) else value


def read_delta(job: Fields) -> Fraction:
    """The exact fraction that the file spells."""
    value = job.get("delta")
    try:
        return validate.delta(_text(value))
    except (TypeError, ValueError):
        raise job.fail("delta", "a number between 0 and 1 like 1e-6, under one over the number of people") from None


def read_options(where: str, job: Fields, budgets: Mapping[Pair, Fraction]) -> Options:
    """The choices in [job]; each has a default."""
    chosen = {key: job.text(key, among=known) for key, known in _CHOICES.items() if job.has(key)}
    delta = read_delta(job) if job.has("delta") else None
    margin = job.number("margin", 4, 0.01, 100)
    try:
        return Options(**chosen, delta=delta, margin=margin, budgets=dict(budgets))
    except InputError as error:
        raise JobError(f"{where}: {error}") from None


def read_budgets(top: Fields, parties: Sequence[str]) -> dict[Pair, Fraction]:
    """[budgets]: `ann = 1` for a party's own block, `"ann+bob" = 0.5` for a pair's, each pair in either order."""
    if not top.has("budgets"):
        return {}
    pairs: dict[str, Pair] = {party: (party, party) for party in parties}
    pairs |= {f"{k}+{l}": (k, l) if parties.index(k) < parties.index(l) else (l, k) for k in parties for l in parties}
    table = top.inner("budgets", [key for key in pairs if key not in {f"{p}+{p}" for p in parties}])
    budgets: dict[Pair, Fraction] = {}
    for key in table.names:
        if pairs[key] in budgets:
            raise JobError(f"{table.where}: {key} is given twice, in both orders; leave one out")
        budgets[pairs[key]] = read_epsilon(table, key)
    return budgets


def option_facts(options: Options) -> dict[str, str]:
    """The options as public facts of a handshake."""
    facts = {key: getattr(options, key) for key in _CHOICES}
    facts |= {"delta": str(options.delta or 0), "margin": repr(options.margin)}
    facts["number of budgets"] = str(len(options.budgets))
    return facts | {
        f"budget of {k} and {l}" if k != l else f"budget of {k}": str(e) for (k, l), e in options.budgets.items()
    }
