"""Who sent what to whom: a lane for every participant, a line for every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launch.report.drawing import canvas, colour, picture, shortened
from launch.report.markup import Markup
from launch.report.steps import Step
from launch.report.style import PAPER, RULE
from mechanisms.guarantee import Guarantee
from smpc.transcript import ALL, DEALER, OTHER_PARTY, PARTY, SERVER

CAPTION = "● sends   ▶ ◀ receives   ◆ each of them sends to each other"
_MOST_LANES = 6
_NAMED = {PARTY, OTHER_PARTY, SERVER, DEALER}  # roles whose participants a guarantee names
_ROW = 0.55  # inches
_LETTER = 0.085  # inches, of a lane's name


def lanes_of(steps: Sequence[Step], guarantee: Guarantee | None) -> dict[str, tuple[str, ...]]:
    """The lanes in order, each with the roles that its participant plays; lanes are roles where names are not known."""
    roles = [role for step in steps for role in (step.sender, step.receiver) if role != ALL]
    if guarantee is not None and len(guarantee.parties) + 2 <= _MOST_LANES and set(roles) <= _NAMED:
        named: dict[str, tuple[str, ...]] = dict.fromkeys(guarantee.parties, (PARTY, OTHER_PARTY))
        outside = ((guarantee.server, SERVER), (guarantee.dealer, DEALER))
        return named | {name: (role,) for name, role in outside if name and (role == SERVER or role in roles)}
    order = sorted(dict.fromkeys(roles), key=lambda role: (role == DEALER, role == SERVER))
    return {role: (role,) for role in order}


def swim_lanes(name: str, steps: Sequence[Step], lanes: Mapping[str, tuple[str, ...]]) -> Markup:
    """The picture of `steps`; ids start with `name`."""
    names = list(lanes)
    longest = max(map(len, names))
    upright = longest * _LETTER * len(names) > 4
    head = _LETTER * min(longest, 20) + 0.15 if upright else 0.3
    told = " ".join(f"{step.number}: {step.message}, from {step.sender} to {step.receiver}." for step in steps)
    with canvas(head + _ROW * len(steps) + 0.1) as figure:
        frame = figure.subplots()
        frame.set_axis_off()
        frame.set_xlim(-0.5, len(names) - 0.5)
        frame.set_ylim(len(steps) + 0.2, 0)
        for place, lane in enumerate(names):
            frame.axvline(place, color=RULE, linewidth=1, zorder=0)
            frame.text(
                place, -0.1, shortened(lane, 20), ha="center", va="bottom", rotation=90 if upright else 0, weight="bold"
            )
        for height, step in enumerate(steps):
            senders, receivers = _ends(step, lanes)
            _draw_step(frame, height + 0.8, step, senders, receivers, colour(height))
        return picture(figure, name, f"{len(names)} lanes: {', '.join(names)}. Steps: {told}")


def _ends(step: Step, lanes: Mapping[str, tuple[str, ...]]) -> tuple[list[int], list[int]]:
    """The places of senders and receivers."""
    places = list(enumerate(lanes.values()))
    senders = [place for place, roles in places if step.sender in roles]
    if step.receiver == ALL:
        return senders, [place for place, roles in places if place not in senders and DEALER not in roles]
    return senders, [place for place, roles in places if step.receiver in roles]


def _draw_step(frame: Any, y: float, step: Step, senders: list[int], receivers: list[int], ink: str) -> None:
    ends = sorted({*senders, *receivers})
    frame.plot([ends[0], ends[-1]], [y, y], color=ink, linewidth=1.5)
    both = set(senders) & set(receivers)
    for place in ends:
        if place in both:
            marker = "D"
        elif place in senders:
            marker = "o"
        else:
            marker = ">" if place > min(senders) else "<"
        frame.plot([place], [y], marker=marker, color=ink, markersize=7)
    frame.text(
        -0.45,
        y - 0.36,
        f"{step.number}  {shortened(step.message, 40)}",
        va="center",
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.5},
    )
