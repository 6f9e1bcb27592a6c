"""trace.json: a run's steps, messages and waits in the JSON trace format of Chrome, which ui.perfetto.dev reads.

Format: "Trace Event Format" (Google), JSON object form, times in microseconds. A participant is a process with three
lanes: its steps with the waits inside, what it sent, what it received. An arrow is a pair of flow events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from smpc.engine.recorder import MOST_MESSAGES, Passed, Recorder

NAME = "trace.json"
STEPS, SENT, RECEIVED = 1, 2, 3  # lanes
Event = dict[str, Any]
_NUMBERS = 10 * MOST_MESSAGES  # above the number of any message


def trace_json(recorder: Recorder, everyone: Sequence[str]) -> str:
    """One participant's trace up to now. `everyone` are all participants, in the order in which they are shown."""
    return _document(list(_events(recorder, {name: number for number, name in enumerate(everyone, 1)})))


def merged(paths: Sequence[Path]) -> str:
    """The traces of several participants as one, which begins at 0. Arrows with one end only are left out."""
    events = [event for path in paths for event in json.loads(path.read_text())["traceEvents"]]
    begin = min((event["ts"] for event in events if "ts" in event), default=0)
    ends: dict[str, set[int]] = {"s": set(), "f": set()}
    for event in events:
        if "ts" in event:
            event["ts"] -= begin
        if event["ph"] in ends:
            ends[event["ph"]].add(event["id"])
    whole = ends["s"] & ends["f"]
    return _document([event for event in events if event["ph"] not in ends or event["id"] in whole])


def _document(events: Sequence[Event]) -> str:
    lines = ",\n".join(json.dumps(event) for event in events)
    return f'{{"displayTimeUnit": "ms", "traceEvents": [\n{lines}\n]}}\n'


def _events(recorder: Recorder, pids: Mapping[str, int]) -> Iterator[Event]:
    pid, end = pids[recorder.me], _micro(recorder.now())
    yield _about("process_name", pid, 0, name=recorder.me)
    yield _about("process_sort_index", pid, 0, sort_index=pid)
    for lane, name in ((STEPS, "steps"), (SENT, "sent"), (RECEIVED, "received")):
        yield _about("thread_name", pid, lane, name=name)
    if recorder.left_out:
        yield _about("process_labels", pid, 0, labels=f"{recorder.left_out:,} later messages are left out")
    starts = [_micro(at) for at, _ in recorder.steps]
    for (_, step), start, stop in zip(recorder.steps, starts, [*starts[1:], end], strict=True):
        name, verb = _named(step)
        yield _slice(name, pid, STEPS, start, stop - start, verb=verb)
    for begun, until, peer, label in recorder.waits:
        begun, until = _micro(begun), _micro(until)
        yield _slice(f"waits for {peer}", pid, STEPS, begun, until - begun, message=label)
    yield from _messages(recorder.sendings, recorder.me, pids, SENT)
    yield from _messages(recorder.arrivals, recorder.me, pids, RECEIVED)


def _messages(messages: Sequence[Passed], me: str, pids: Mapping[str, int], lane: int) -> Iterator[Event]:
    """Each message a slice of its own microsecond, with its end of the arrow; bytes sent so far as counters."""
    totals: dict[str, int] = {}
    pid, last = pids[me], 0
    for message in messages:
        last = max(_micro(message.at), last + 1)
        sender, receiver = (me, message.peer) if lane == SENT else (message.peer, me)
        arrow = {"cat": "message", "name": message.label, "pid": pid, "tid": lane, "ts": last}
        # a number, as the format's readers take text for hexadecimal; exact in a float64
        arrow["id"] = (pids[sender] * (len(pids) + 1) + pids[receiver]) * _NUMBERS + message.number
        size = {"bytes": message.bytes, "from": sender, "to": receiver}
        yield _slice(message.label, pid, lane, last, 1, **size)
        yield {"ph": "s", **arrow} if lane == SENT else {"ph": "f", "bp": "e", **arrow}
        if lane == SENT:
            totals[message.peer] = totals.get(message.peer, 0) + message.bytes
            yield {"ph": "C", "name": "bytes sent", "pid": pid, "ts": last, "args": dict(totals)}


def _named(step: str) -> tuple[str, str]:
    """The message of a step as a protocol's table names it, and the verb. What is agreed on is no message."""
    verb, _, message = step.partition(": ")
    if not message:
        return step, ""
    return (verb, "agree") if message.startswith("(") else (message, verb)


def _slice(name: str, pid: int, tid: int, start: int, length: int, /, **args: object) -> Event:
    return {"ph": "X", "cat": "smpc", "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args}


def _about(name: str, pid: int, tid: int, /, **args: object) -> Event:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _micro(nanoseconds: int) -> int:
    return nanoseconds // 1000
