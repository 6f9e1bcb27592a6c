"""Who sent what to whom, and what each receiver learned from it."""

from __future__ import annotations

from collections.abc import Sequence

from launch.report.lanes import CAPTION, lanes_of, swim_lanes
from launch.report.markup import Markup, element, figure, join
from launch.report.results import Results
from launch.report.steps import Step, described, scripts
from launch.report.words import listing
from smpc.transcript import ALL, OTHER_PARTY, PARTY

_MOST_NAMES = 12


def flow_section(results: Results) -> Markup:
    """For each table that the run followed a picture and the table, with what was recorded."""
    groups = described(results.transcript, scripts(), str(results.model.get("protocol", "")))
    if not groups:
        return element("p", "These files hold no transcript.")
    parts = [element("p", _who(results, groups))]
    for number, steps in enumerate(groups, 1):
        lanes = lanes_of(steps, results.guarantee)
        parts.append(figure(swim_lanes(f"lanes-{number}", steps, lanes), CAPTION))
        parts += [element("h3", "What each step tells its receiver"), element("ol", *map(_told, steps))]
    return join(parts)


def _who(results: Results, groups: Sequence[Sequence[Step]]) -> str:
    roles = {role for steps in groups for step in steps for role in (step.sender, step.receiver)}
    told = []
    parties = results.guarantee.parties if results.guarantee else ()
    if parties and roles & {PARTY, OTHER_PARTY}:
        names = listing(parties) if len(parties) <= _MOST_NAMES else f"{len(parties)} parties"
        told.append(f"{PARTY} and {OTHER_PARTY} are any two of {names}.")
    if ALL in roles:
        told.append("“all” is everybody else but a dealer.")
    told.append("The record holds steps and sizes, no contents.")
    return " ".join(told)


def _told(step: Step) -> Markup:
    route = element("span", f" ({step.route}; {_recorded(step)}): ", class_="aside")
    return element("li", element("strong", step.message), route, step.learns)


def _recorded(step: Step) -> str:
    """How many messages of which sizes; a size that changed from message to message by its first."""
    times = "once" if step.count == 1 else f"{step.count:,} times"
    sizes = [" by ".join(f"{size:,}" for size in shape) for shape in step.shapes if shape]
    more = " and other sizes" if len(sizes) > 1 else ""
    return f"{times}, {sizes[0]} numbers{more}" if sizes else times
