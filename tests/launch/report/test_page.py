"""Whole reports: valid, complete, harmless whatever names the files hold, readable by everybody."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from launch.report import style
from launch.report.charts import coefficients
from launch.report.costs import formula_section
from launch.report.model import lead, model_section
from launch.report.page import page
from launch.report.results import Results
from mechanisms.neighbours import ReplaceParty
from smpc.cost import CostReport
from smpc.errors import InputError
from tests.launch.report.support import COEFFICIENTS, PARTIES, SHARES, Page, costs, guarantee, transcript, write_results

ATTACK = '<script>document.title="taken"</script>'
NAMES = (
    ATTACK,
    '"><img src=x onerror=alert(1)>',
    "$x_1$",
    r"$\frac{a$",
    "_hidden",
    "]]>-->",
    "年齢",
    "x" * 64,
    "a & b",
    "%s{0}",
)


def html(folder: Path, **files: Any) -> str:
    return page(Results.load(write_results(folder, **files)))


def read(folder: Path, **files: Any) -> Page:
    return Page(html(folder, **files), whole=True)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of the usual files."""
    return html(tmp_path_factory.mktemp("usual"))


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.1."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_the_usual_report(usual: str) -> None:
    found = Page(usual, whole=True)
    text = found.text
    assert "A linear model of y from 16,152 rows of ann, bob and cid, by the protocol “functional”." in text
    for name, value in COEFFICIENTS.items():
        assert f"{name} {value:g}" in text
    assert "Against the server and any one party together, one person's row is protected" in text
    for number, (_, message, learns) in enumerate(SHARES, 1):
        assert learns in text and f"{number}: {message}, from" in found.titles["lanes-1-alt"]
    assert "once, 64 numbers" in text
    assert "ann 4.0 8.0 4 1 0.125 0.062 210" in text  # kB, messages, rounds, seconds idle and in sockets, MB
    assert "dealer 20.0 8.0 20 5 0.125 0.062 210" in text
    assert "ann 0.250 1.000" in text
    assert "Every formula agrees" in text and "product 2,000 2,010 +0.50%" in text
    assert "fraction bits 15" in text


def test_it_needs_nothing_from_outside_and_no_script(usual: str) -> None:
    found = Page(usual, whole=True)
    names = {name for name, _ in found.tags}
    assert names.isdisjoint({"script", "link", "iframe", "img", "image", "object", "embed", "base", "form"})
    assert not any(key.startswith("on") or key == "src" for _, attributes in found.tags for key in attributes)
    assert "//" not in usual
    assert "@import" not in usual and "javascript:" not in usual
    assert "default-src 'none'" in next(a["content"] for n, a in found.tags if "http-equiv" in a)


def test_every_picture_has_words(usual: str) -> None:
    found = Page(usual, whole=True)
    pictures = [attributes for name, attributes in found.tags if name == "svg"]
    assert len(pictures) == 4 == len(found.titles)
    for attributes in pictures:
        assert attributes["role"] == "img" and len(found.titles[attributes["aria-labelledby"]]) > 40
        assert "width" not in attributes and "viewbox" in attributes
    assert found.titles["coefficients-alt"] == (
        "Bars of all 3 coefficients. Largest in size: v 2; u -1.25; intercept 0.5."
    )


def test_headings_language_and_width_for_readers_and_phones(usual: str) -> None:
    found = Page(usual, whole=True)
    levels = [int(name[1]) for name, _ in found.tags if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert ("html", {"lang": "en"}) in found.tags
    assert any(a.get("name") == "viewport" and "width=device-width" in a["content"] for _, a in found.tags)
    assert all(a.get("aria-label") for _, a in found.tags if a.get("class") == "scroll")


def test_names_can_do_no_harm(tmp_path: Path) -> None:
    promise = guarantee(parties=(ATTACK, "$b$", "c"), server="</svg><script>", per_party={"$b$": Fraction(1, 9)})
    everybody = (*promise.parties, "</svg><script>", "dealer")
    record = transcript([*SHARES, ("P_k -> P_l", f"{ATTACK}]]>")])
    model = {"job": ATTACK, "label": ATTACK, "protocol": ATTACK, "loss": "</style>", f"{ATTACK}key": ATTACK}
    model |= {"coefficients": dict.fromkeys(NAMES, 1.5), "more": "c\u202ed"}
    text = html(tmp_path, model=model, promise=promise, record=record, reports=costs(everybody))
    found = Page(text, whole=True)
    assert {"script", "img", "image"}.isdisjoint(name for name, _ in found.tags)
    assert "<script" not in text.lower() and "onerror=alert" not in re.sub(r"&lt;.*?&gt;", "", text)
    assert all(name in "".join(found.words) for name in NAMES)  # but they are told
    assert "c?d" in found.text and "\u202e" not in text


def test_what_is_in_a_drawing_is_text_as_it_was() -> None:
    """Not an interpreted formula, not left out for an underscore at its beginning."""
    drawn = coefficients({"$x_1$": 1.0, "_hidden": -2.0, "a<b": 3.0})
    for name in ("$x_1$", "_hidden", "a&lt;b"):
        assert re.search(f">{re.escape(name)}</text>", drawn)


def test_equal_files_make_equal_pages(usual: str, tmp_path: Path) -> None:
    assert html(tmp_path) == usual and str(tmp_path) not in usual


def test_a_formula_that_is_off_is_a_warning() -> None:
    reports = costs(("ann", "bob"))
    reports["bob"].compare("product", 0, 90)
    text = Page(formula_section(reports)).text
    assert "bob: product took 2100 bytes, its formula says 2000" in text and "+5.00%" in text
    assert "agrees" not in text


def test_noise_that_left_no_minimum_is_a_warning() -> None:
    assert "without a minimum in 3 directions" in model_section({"indefinite": 3})
    assert "without a minimum" not in model_section({"indefinite": 0})


def test_what_was_computed_in_one_sentence() -> None:
    def told(**model: object) -> str:
        return lead(Results(model, None, {}, transcript([])))

    assert told(loss="logistic", label="y", rows=1234) == "A logistic model of y from 1,234 rows."
    assert told(loss="ensemble", label="a, b", protocol="ensemble") == (
        "An ensemble model of a, b, by the protocol “ensemble”."
    )
    assert told(rows="many") == "A result."


def test_coefficients_that_are_no_numbers() -> None:
    found = Page(model_section({"coefficients": {"u": float("nan"), "v": 1.0}}))
    assert "this model cannot be used" in found.text and found.titles == {}
    assert "no coefficients" in model_section({"coefficients": {"u": [1]}})


def test_many_coefficients_and_participants(tmp_path: Path) -> None:
    names = tuple(f"p{i}" for i in range(60))
    promise = guarantee(parties=names, per_party=None, neighbours=ReplaceParty(), dealer=None)
    model = {"coefficients": {f"c{i}": float(i) for i in range(1000)}}
    found = read(tmp_path, model=model, promise=promise, reports=costs(names))
    assert "the 40 largest of 1000 coefficients" in found.titles["coefficients-alt"] and "c999 999" in found.text
    assert "the first 40 of 60 participants" in found.text and "p59" in found.text
    assert "60 parties" in found.text and found.titles["lanes-1-alt"].startswith("4 lanes: P_k, P_l, server, dealer.")


def test_a_participant_that_has_its_own_files_only(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "dealer")
    for name in ("model.json", "guarantee.json", "transcript.jsonl"):
        (folder / name).unlink()
    found = Page(page(Results.load(folder)), whole=True)
    assert "no model" in found.text and "no guarantee" in found.text and "no transcript" in found.text
    assert "ann 4.0 8.0 4 1 0.125" in found.text


def test_a_protocol_without_server_or_coefficients(tmp_path: Path) -> None:
    promise = guarantee(parties=("x", "y"), server=None, dealer=None, per_party=None)
    steps = [("P_N -> P_L", "embeddings"), ("P_L -> P_N", "gradients")] * 50
    folder = write_results(tmp_path, promise=promise, record=transcript(steps, (128, 16)), reports=costs(("x", "y")))
    (folder / "model.json").write_text(json.dumps({"job": "net", "protocol": "split", "rows": 7, "layers": [1, 2]}))
    found = Page(page(Results.load(folder)), whole=True)
    assert "A result from 7 rows of x and y, by the protocol “split”." in found.text
    assert "50 times, 128 by 16 numbers" in found.text and "2 lanes: P_N, P_L." in found.titles["lanes-1-alt"]


def test_colours_can_be_told_from_paper(usual: str) -> None:
    for colour in (style.TEXT, style.MUTED, style.LINK, style.GOOD, style.BAD):
        assert contrast(colour, style.PAPER) >= 4.5, colour
    assert contrast(style.WARNING, style.WARNING_PAPER) >= 4.5
    assert all(contrast(colour, style.PAPER) >= 3 for colour in (*style.SERIES, *style.SHADES))
    assert len(set(style.SERIES)) == len(style.SERIES)
    assert contrast("#000000", "#ffffff") == pytest.approx(21) and contrast("#777777", "#ffffff") < 4.5
    known = {*style.SERIES, style.TEXT, style.MUTED, style.PAPER, style.RULE, "#ffffff"}
    drawn = re.findall("<svg.*?</svg>", usual, re.DOTALL)
    assert set(re.findall("#[0-9a-f]{6}", "".join(drawn))) <= known


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.json", "[1]"),
        ("model.json", "{"),
        ("model.json", "\xff"),
        ("model.json", "{}"),
        ("guarantee.json", '{"parties": ["a"], "server": null, "dealer": null, "rows": []}'),
        ("guarantee.json", "null"),
        ("cost.json", '{"participants": {"a": {"speed": 1}}}'),
        ("cost.json", '{"participants": {"a": {"party": "a", "rounds": -1}}}'),
        ("cost.json", '{"participants": {"a": {"party": "a", "waited": NaN}}}'),
        ("cost.json", '{"participants": {"a": {"party": "a", "predicted": {"x": 1}}}}'),
        ("cost.json", '{"participants": {"a": {"party": "a", "bytes_sent": {"b": "1"}}}}'),
        ("cost.json", '{"participants": [1]}'),
        ("model.json", '{"rows": %s}' % ("1" * 400)),
        ("cost.json", '{"participants": {"a": {"party": "a", "rounds": %s}}}' % ("1" * 400)),
        ("transcript.jsonl", '{"verb": "x"}'),
        ("transcript.jsonl", '{"verb": 1, "sender": "a", "receiver": "b", "message": "m", "shape": [1], "noise": []}'),
        (
            "transcript.jsonl",
            '{"verb": "v", "sender": "a", "receiver": "b", "message": "m", "shape": ["1"], "noise": []}',
        ),
    ],
)
def test_files_that_no_run_wrote_are_refused(tmp_path: Path, name: str, content: str) -> None:
    folder = write_results(tmp_path)
    (folder / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        Results.load(folder)
    assert str(caught.value) == f"{folder / name}: is not the result file of a run of this version; run the job again"


def test_folders_that_are_no_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no model"):
        Results.load(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        Results.load(tmp_path / "nothing")
    (tmp_path / "model.json").mkdir()
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"):
        Results.load(tmp_path)
    (tmp_path / "cost.json").touch()
    (tmp_path / "model.json").rmdir()
    with open(tmp_path / "model.json", "wb") as file:
        file.truncate(1 << 27)
    with pytest.raises(InputError, match="has 134,217,728 bytes; result files have at most 67,108,864"):
        Results.load(tmp_path)


def test_costs_are_read_as_they_were_written(tmp_path: Path) -> None:
    loaded = Results.load(write_results(tmp_path))
    assert loaded.costs == costs((*PARTIES, "server", "dealer")) and isinstance(loaded.costs["ann"], CostReport)
    assert loaded.guarantee == guarantee() and loaded.transcript == transcript(SHARES)
