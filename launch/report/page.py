"""The report of a finished run: one HTML file that needs no network and no script."""

from __future__ import annotations

from launch.report.costs import cost_section, formula_section
from launch.report.flow import flow_section
from launch.report.markup import Markup, element, join
from launch.report.model import lead, model_section
from launch.report.results import Results
from launch.report.style import CSS
from launch.report.words import exact_section, guarantee_section

# No script runs and nothing is fetched, whatever the page holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(results: Results, local: Markup | None = None) -> str:
    """The HTML of `results`; `local` is the part about a table that only the reader has. Equal files, equal text."""
    title = str(results.model.get("job", "A run"))
    missing = element("p", "These files hold no guarantee. Each participant's own folder may.", class_="warning")
    sections = [
        ("Model", model_section(results.model) if results.model else element("p", "These files hold no model.")),
        ("Who is protected against whom", guarantee_section(results.guarantee) if results.guarantee else missing),
        ("Who sent what to whom", flow_section(results)),
    ]
    if results.costs:
        sections += [("Cost", cost_section(results.costs)), ("Formula and sockets", formula_section(results.costs))]
    if results.guarantee:
        sections.append(("The guarantee, row by row", exact_section(results.guarantee)))
    if local is not None:
        sections.insert(1, ("On the reader's own table", local))
    body = [element("section", element("h2", name), content) for name, content in sections]
    main = element("main", element("h1", title), element("p", lead(results), class_="lead"), *body)
    head = [
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element("title", f"{title}: report"),
        element("style", Markup(CSS)),
    ]
    return f"<!DOCTYPE html>\n{element('html', element('head', join(head)), element('body', main), lang='en')}\n"
