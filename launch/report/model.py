"""What was computed, from how many rows, and the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from launch.noise_share import noise_of
from launch.report.charts import coefficients
from launch.report.markup import Markup, element, facts, figure, join, table
from launch.report.results import Results
from launch.report.words import listing

# Keys that are told in words.
_TOLD = ("job", "protocol", "loss", "label", "rows", "coefficients", "indefinite", "noise_share", "expected_explained")
_UNITS = "Columns have different units: a longer bar is not a stronger one."
_CAPTIONS = {
    "linear": f"What one unit of a column adds to the prediction. {_UNITS}",
    "logistic": f"What one unit of a column adds to the log-odds. {_UNITS}",
}


def lead(results: Results) -> str:
    """One sentence: what was computed, from what, by whom."""
    model = results.model
    loss = str(model.get("loss", ""))
    what = f"A{'n' * loss.startswith(tuple('aeiou'))} {loss} model" if loss else "A result"
    what += f" of {model['label']}" if "label" in model else ""
    rows = f" from {model['rows']:,} rows" if isinstance(model.get("rows"), int) else ""
    parties = results.guarantee.parties if results.guarantee else ()
    who = f" of {listing(parties)}" if 0 < len(parties) <= 6 else f" of {len(parties)} parties" if parties else ""
    protocol = f", by the protocol “{model['protocol']}”" if "protocol" in model else ""
    return f"{what}{rows}{who}{protocol}."


def model_section(model: Mapping[str, Any]) -> Markup:
    """Coefficients as picture and table, and whatever else model.json says in single values."""
    return join(_parts(model))


def _parts(model: Mapping[str, Any]) -> Iterator[Markup]:
    found = model.get("coefficients")
    if isinstance(found, Mapping) and found and all(map(_is_number, found.values())):
        values = {str(name): float(value) for name, value in found.items()}
        if all(map(math.isfinite, values.values())):
            yield figure(coefficients(values), _CAPTIONS.get(str(model.get("loss")), "The model's weights."))
        else:
            yield element("p", "Some coefficients are not finite numbers: this model cannot be used.", class_="warning")
        yield table("Coefficients", ("column", "coefficient"), [(n, f"{v:.6g}") for n, v in values.items()])
    else:
        yield element("p", "These files hold no coefficients.")
    if noise := noise_of(model):
        line, too_much = noise
        yield element("p", f"{line.capitalize()}.", class_="warning" if too_much else "")
    if model.get("indefinite"):
        text = f"The noise had left the objective without a minimum in {model['indefinite']} directions before repair."
        yield element("p", f"{text} More rows or a larger epsilon make a better model.", class_="warning")
    other = [(str(key).replace("_", " "), _shown(value)) for key, value in model.items() if key not in _TOLD]
    told = [(name, value) for name, value in other if value]
    if told:
        yield facts(told)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    """A single value as text; nothing for lists and tables."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value) if isinstance(value, str | int) else ""
