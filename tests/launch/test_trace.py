"""trace.json: the documented format, nested lanes, an arrow for every message, counters that agree with the sockets."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launch.trace import RECEIVED, SENT, STEPS, merged, trace_json
from protocols.functional import protocol as functional
from smpc.engine import recorder as recording
from smpc.engine.recorder import Recorder
from smpc.transcript import table
from tests.launch.jobs import write_job
from tests.launch.processes import PATIENCE, SMPC, Shells, environment, job_of, write_tables

EVERYBODY = ("p1", "p2", "server", "dealer")
KEYS = {  # by kind of event, of the "Trace Event Format"
    "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
    "s": {"name", "cat", "ph", "ts", "pid", "tid", "id"},
    "f": {"name", "cat", "ph", "ts", "pid", "tid", "id", "bp"},
    "C": {"name", "ph", "ts", "pid", "args"},
    "M": {"name", "ph", "pid", "tid", "args"},
}
METADATA = {
    "process_name": "name",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "process_labels": "labels",
}
ON_THE_WIRE = 24 + 2 * 8 + len("masked columns") + 3 * 2 * 8 + 22  # header, dimensions, label, payload, TLS record
Event = dict[str, Any]


def checked(text: str) -> list[Event]:
    """The events, once they are what the format says and readers can draw."""
    document = json.loads(text)
    assert set(document) == {"displayTimeUnit", "traceEvents"} and document["displayTimeUnit"] in ("ms", "ns")
    events: list[Event] = document["traceEvents"]
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        assert set(event) == KEYS[event["ph"]], event
        assert isinstance(event["name"], str) and event["name"]
        assert all(
            type(event[key]) is int and event[key] >= 0 for key in ("ts", "dur", "pid", "tid", "id") if key in event
        )
        assert event.get("id", 0) < 2**53  # as a float64 has it
        if event["ph"] == "X":
            lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}
        elif event["ph"] == "C":
            assert all(type(value) is int for value in event["args"].values())
        else:
            assert event.get("bp", "e") == "e"
    for spans in lanes.values():  # within a lane, spans are apart or one inside the other
        open_ends: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)
    for arrow in (event for event in events if event["ph"] in "sf"):  # it starts and ends inside a span of its lane
        at = arrow["pid"], arrow["tid"]
        assert any(start <= arrow["ts"] < end for start, end in lanes[at]), arrow
    return events


def kind(events: list[Event], ph: str) -> list[Event]:
    return [event for event in events if event["ph"] == ph]


def lane(events: list[Event], pid: int, tid: int) -> list[Event]:
    return [event for event in kind(events, "X") if (event["pid"], event["tid"]) == (pid, tid)]


def one_message() -> tuple[Recorder, Recorder]:
    ann, bob = Recorder("ann"), Recorder("bob")
    payload = np.zeros((3, 2), dtype=np.int64)
    ann.step("gram: masked columns")
    ann.sent("bob", "masked columns", payload)
    bob.received("ann", "masked columns", payload)
    return ann, bob


def write(folder: Path, *recorders: Recorder) -> list[Path]:
    paths = []
    for own in recorders:
        paths.append(folder / own.me)
        paths[-1].write_text(trace_json(own, ("ann", "bob")))
    return paths


def test_a_message_is_an_arrow_between_two_lanes(tmp_path: Path) -> None:
    events = checked(merged(write(tmp_path, *one_message())))
    ((start,), (end,)) = kind(events, "s"), kind(events, "f")
    assert (start["id"], start["name"], start["cat"]) == (end["id"], end["name"], end["cat"])
    assert (start["pid"], start["tid"], end["pid"], end["tid"]) == (1, SENT, 2, RECEIVED)
    assert lane(events, 1, SENT)[0]["args"] == {"bytes": ON_THE_WIRE, "from": "ann", "to": "bob"}
    assert lane(events, 2, RECEIVED)[0]["args"] == {"bytes": ON_THE_WIRE, "from": "ann", "to": "bob"}
    assert [event["args"] for event in kind(events, "C")] == [{"bob": ON_THE_WIRE}]
    assert min(event["ts"] for event in events if "ts" in event) == 0


def test_one_participant_alone_and_arrows_with_one_end(tmp_path: Path) -> None:
    ann, _ = one_message()
    (path,) = write(tmp_path, ann)
    assert len(kind(checked(path.read_text()), "s")) == 1
    assert kind(checked(merged([path])), "s") == []


def test_messages_in_both_directions_are_counted_apart(tmp_path: Path) -> None:
    ann, bob = Recorder("ann"), Recorder("bob")
    for label, (sender, receiver) in {"x": (ann, bob), "y": (bob, ann), "z": (ann, bob), "w": (bob, ann)}.items():
        sender.sent(receiver.me, label, np.zeros(1))
    for label, (sender, receiver) in {"y": (bob, ann), "w": (bob, ann), "x": (ann, bob), "z": (ann, bob)}.items():
        receiver.received(sender.me, label, np.zeros(1))
    events = checked(merged(write(tmp_path, ann, bob)))
    starts, ends = ({event["id"]: event["name"] for event in kind(events, ph)} for ph in "sf")
    assert starts == ends and sorted(starts.values()) == ["w", "x", "y", "z"]


def test_messages_of_one_moment_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = Recorder("ann")
    moment = ann.now()
    monkeypatch.setattr(ann, "now", lambda: moment)
    for number in range(500):
        ann.sent("bob", f"m{number}", np.zeros(1))
    events = checked(trace_json(ann, ("ann", "bob")))
    assert [event["name"] for event in lane(events, 1, SENT)] == [f"m{number}" for number in range(500)]
    assert len({event["id"] for event in kind(events, "s")}) == len({event["ts"] for event in kind(events, "s")}) == 500


def test_steps_have_the_names_of_the_tables() -> None:
    ann = Recorder("ann")
    for step in ("plan: (15, 'x: y')", "reveal: noisy sums", "request 0 (product)"):
        ann.step(step)
    spans = lane(checked(trace_json(ann, ("ann",))), 1, STEPS)
    assert [(span["name"], span["args"]["verb"]) for span in spans] == [
        ("start", ""),
        ("plan", "agree"),
        ("noisy sums", "reveal"),
        ("request 0 (product)", ""),
    ]


def test_waits_lie_inside_their_steps_and_short_ones_are_not_drawn() -> None:
    ann = Recorder("ann")
    ann.step("reveal: x")
    begun = ann.now()
    while ann.now() < begun + 3_000_000:
        pass
    ann.waited("bob", "x", 2e-3)
    ann.waited("bob", "x", 1e-6)
    ann.step("goodbye")
    spans = lane(checked(trace_json(ann, ("ann", "bob"))), 1, STEPS)
    waits = [span for span in spans if span["name"] == "waits for bob"]
    assert len(waits) == 1 and 1999 <= waits[0]["dur"] <= 2001 and waits[0]["args"] == {"message": "x"}


def test_a_long_run_keeps_the_first_messages_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_MESSAGES", 3)
    ann = Recorder("ann")
    for _ in range(5):
        ann.sent("bob", "x", np.zeros(1))
        ann.received("bob", "y", np.zeros(1))
    events = checked(trace_json(ann, ("ann", "bob")))
    assert len(kind(events, "s")) == len(kind(events, "f")) == 3
    assert [event["args"]["labels"] for event in events if event["name"] == "process_labels"] == [
        "4 later messages are left out"
    ]


def test_the_clock_is_the_hosts_and_goes_forward() -> None:
    import time

    ann = Recorder("ann")
    assert abs(ann.now() - time.time_ns()) < 50_000_000
    times = [ann.now() for _ in range(1000)]
    assert times == sorted(times)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of `smpc run --trace` over two parties."""
    folder = tmp_path_factory.mktemp("traced")
    job = write_job(folder, job_of(write_tables(folder, 5000, 2)))
    command = [*SMPC, "run", str(job), "--out", "results", "--trace"]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return folder / "results"


@pytest.mark.mpc
def test_a_run_is_traced(traced: Path) -> None:
    events = checked((traced / "trace.json").read_text())
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == dict(enumerate(EVERYBODY, 1))
    costs = json.loads((traced / "cost.json").read_text())["participants"]
    steps = [message for _, message in table(functional.script("shares").__doc__ or "")]
    for pid, name in names.items():
        messages = lane(events, pid, SENT)
        for peer, count in costs[name]["messages_sent"].items():
            assert sum(message["args"]["to"] == peer for message in messages) == count
        spans = [span["name"] for span in lane(events, pid, STEPS)]
        if name != "dealer":
            assert [span for span in spans if span in steps] == steps
        # all that was sent on purpose after TLS, the handshake's messages included: beyond it heartbeats and TLS itself
        total = sum(message["args"]["bytes"] for message in messages)
        written = sum(costs[name]["bytes_sent"].values()) + sum(costs[name]["handshake_bytes"].values())
        assert 0 <= written - total <= 0.01 * total + 1000
    starts, ends = ({event["id"]: event for event in kind(events, ph)} for ph in "sf")
    assert starts.keys() == ends.keys() and len(starts) == sum(
        sum(report["messages_sent"].values()) for report in costs.values()
    )
    for number, start in starts.items():
        assert (start["name"], start["cat"]) == (ends[number]["name"], ends[number]["cat"])
        assert start["ts"] - 1000 <= ends[number]["ts"]  # the processes' clocks agree to a millisecond
    server = lane(events, 3, STEPS)
    assert any(span["name"].startswith("waits for p") for span in server)


@pytest.mark.mpc
def test_a_trace_loads_into_perfetto(traced: Path) -> None:
    """Where its trace processor is: the Python package alone fetches that program when it is first used."""
    shell = shutil.which("trace_processor_shell")
    if importlib.util.find_spec("perfetto") is None or shell is None:
        pytest.skip("no perfetto package, or no trace_processor_shell on PATH: other tests check the format")
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(trace=str(traced / "trace.json"), config=TraceProcessorConfig(bin_path=shell)) as processor:
        arrows = len(kind(json.loads((traced / "trace.json").read_text())["traceEvents"], "s"))
        assert next(iter(processor.query("select count(*) as n from flow"))).n == arrows
        errors = "select count(*) as n from stats where severity = 'error' and value > 0"
        assert next(iter(processor.query(errors))).n == 0


@pytest.mark.mpc
def test_participants_on_hosts_of_their_own_trace_themselves(tmp_path: Path) -> None:
    (tmp_path / "shells").mkdir()
    with Shells(tmp_path / "shells", job_of(write_tables(tmp_path, 100, 2))) as shells:
        shells.start("p1", "dealer", arguments=("--trace",))
        shells.start("p2", "server")
        shells.all_end(shells.names, PATIENCE)
        assert {shells.code(name) for name in shells.names} == {0}
        own = {name: folder / "out" / "trace.json" for name, folder in shells.folders.items()}
    assert [name for name in own if own[name].exists()] == ["p1", "dealer"]
    together = checked(merged([own["p1"], own["dealer"]]))
    routes = {(event["args"]["from"], event["args"]["to"]) for event in kind(together, "X") if "to" in event["args"]}
    assert ("p1", "dealer") in routes and ("p2", "p1") in routes
    assert {event["id"] for event in kind(together, "s")} == {event["id"] for event in kind(together, "f")}
