"""Result folders as runs write them, and an HTML parser that complains."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from launch.outputs import cost_json
from mechanisms.guarantee import Guarantee
from protocols.functional import protocol as functional
from smpc.cost import CostReport
from smpc.transcript import Message, Transcript, full_table

PARTIES = ("ann", "bob", "cid")
COEFFICIENTS = {"intercept": 0.5, "u": -1.25, "v": 2.0}
SHARES = full_table(functional.script("shares").__doc__ or "")
VOID = {"meta", "br", "img", "link"}


def guarantee(**changes: Any) -> Guarantee:
    usual: dict[str, Any] = {
        "order": "shares",
        "epsilon": Fraction(1, 3),
        "parties": PARTIES,
        "server": "server",
        "dealer": "dealer",
        "mechanism": "discrete Laplace, scale 7",
        "per_party": {"bob": Fraction(1, 4)},
    }
    return Guarantee.for_release(**(usual | changes))


def transcript(steps: Sequence[tuple[str, ...]], shape: tuple[int, ...] = (64,)) -> Transcript:
    """Messages as these steps (from -> to, message) say."""
    return Transcript([Message("send", *step[0].split(" -> "), step[1], shape) for step in steps])


def costs(names: Sequence[str]) -> dict[str, CostReport]:
    """Of participant i: 1000 i bytes to each other one, i seconds of product, and a formula that is 0.5 % off."""
    return {
        name: CostReport(
            name,
            {to: 2000 for to in names if to != name},
            {to: 1000 * i for to in names if to != name},
            {to: i for to in names if to != name},
            rounds=i,
            seconds={"local": 0.25, "product": float(i)},
            waited=0.125,
            sockets=0.0625,
            peak_memory=210_000_000,
            predicted={"product": 2000},
            counted={"product": 2010},
        )
        for i, name in enumerate(names, 1)
    }


def write_results(
    folder: Path,
    *,
    model: Mapping[str, Any] | None = None,
    promise: Guarantee | None = None,
    record: Transcript | None = None,
    reports: Mapping[str, CostReport] | None = None,
) -> Path:
    """A result folder of the functional protocol, with these files in place of the usual ones."""
    about = {
        "job": "test",
        "protocol": "functional",
        "loss": "linear",
        "rows": 16152,
        "label": "y",
        "fraction_bits": 15,
    }
    folder.mkdir(exist_ok=True)
    (folder / "model.json").write_text(json.dumps(about | {"coefficients": COEFFICIENTS} | dict(model or {})))
    (folder / "guarantee.json").write_text((promise or guarantee()).to_json())
    (folder / "transcript.jsonl").write_text((record or transcript(SHARES)).to_jsonl())
    reports = costs((*PARTIES, "server", "dealer")) if reports is None else reports
    (folder / "cost.json").write_text(cost_json({name: report.to_dict() for name, report in reports.items()}))
    return folder


class Page(HTMLParser):
    """What a page consists of. AssertionError where it is not balanced or, whole, refers to nothing."""

    def __init__(self, text: str, *, whole: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.ids: list[str] = []
        self.titles: dict[str, str] = {}  # of drawings, by id
        self.feed(text)
        self.close()
        assert self.open == [], self.open
        assert len(set(self.ids)) == len(self.ids), "an id is there twice"
        for name, attributes in self.tags if whole else ():
            for key in ("aria-labelledby", "aria-describedby"):
                assert all(reference in self.ids for reference in attributes.get(key, "").split()), (name, attributes)
            for key in ("href", "clip-path", "fill", "stroke"):
                value = attributes.get(key, "")
                if key == "href":
                    assert value == "" or (value.startswith("#") and value[1:] in self.ids), value
                elif "url(" in value:
                    assert value.removeprefix("url(#").removesuffix(")") in self.ids, value

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len({key for key, _ in attributes}) == len(attributes), (tag, attributes)
        told = {key: value or "" for key, value in attributes}
        self.tags.append((tag, told))
        if "id" in told:
            self.ids.append(told["id"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.open, f"<{tag}/> outside a drawing"
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, f"</{tag}>"

    def handle_data(self, data: str) -> None:
        if "style" in self.open or ("title" in self.open and "svg" not in self.open):
            return
        if self.open and self.open[-1] == "title":
            self.titles[self.ids[-1]] = data
        elif "svg" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        """All words that stand in the page, drawings apart."""
        return " ".join(" ".join(self.words).split())
