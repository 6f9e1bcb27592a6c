"""What each process of a `functional.fit` run received and knows, and which secrets can be put together from that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any
from unittest.mock import patch

import numpy as np

from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from protocols.schema import Floats
from smpc.engine import crossproduct
from smpc.engine.session import CryptenSession
from smpc.products import MASKED
from smpc.ring import Integers
from smpc.values import Held, Noise, Shared, value_of
from tests.support import held, words_of

NOISY = "reveal: noisy coefficients"
MOST = 4  # arrays that an observer adds up


@dataclass(frozen=True)
class View:
    """One process: (sender, label, array) of all it received, arrays of its own by name, and all it sent."""

    received: list[tuple[str, str, Any]]
    known: dict[str, Integers]
    sent: list[tuple[str, str, Any]]


def observed_fit(
    s: CryptenSession, values: Mapping[str, Floats], plan: Plan, leak: str | None, frames: list[Any]
) -> View:
    """`fit` in a pool process, with a leak built in if one is named."""
    start = len(frames)
    workers = [name for name in (*s.cast.parties, s.cast.server) if name != s.me]
    for name in workers:  # so that everything behind a peer's "ready" belongs to this run
        s.network.send(name, "ready", np.zeros(0))
    for name in workers:
        s.network.receive(name, "ready", np.float64, (0,))
    s._own_random = words_of(s.me)
    known: dict[str, Integers] = {}
    with ExitStack() as patches:
        if leak is not None:
            LEAKS[leak](s, patches)
        _keep(s, known, patches)
        fit(s, held(s, values), plan)
    since = {s.cast.dealer: start}
    for place, (way, peer, frame) in enumerate(frames):
        if (way, frame.label) == ("received", "ready"):
            since[peer] = place + 1
    received = [
        (peer, frame.label, frame.payload)
        for place, (way, peer, frame) in enumerate(frames)
        if way == "received" and place >= since[peer]
    ]
    sent = [
        (peer, frame.label, frame.payload)
        for way, peer, frame in frames[start:]
        if way == "sent" and frame.label != "ready"
    ]
    return View(received, known, sent)


def _keep(s: CryptenSession, known: dict[str, Integers], patches: ExitStack) -> None:
    """Note what a process makes itself: masks, pads, draws, its shares before they are opened."""

    def wrapped(function: Callable[..., Any], name: str, number: int | None = None) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            result = function(*arguments)
            kept = result if number is None else arguments[number]
            kept = kept.share if isinstance(kept, Shared) else kept
            if kept is not None:
                known[f"{name} {len(known)}"] = np.asarray(getattr(kept, "share", kept)).copy()
            return result

        return call

    for name in ("mask", "pad"):
        patches.enter_context(patch.object(crossproduct, name, wrapped(getattr(crossproduct, name), name)))
    if s.is_party:
        patches.enter_context(patch.object(s, "_reveal", wrapped(s._reveal, "share", 0)))
        add_noise = s._add_noise

        def noted(share: Any, noise: Noise) -> Any:
            known["before noise"] = s._integers(share).copy()
            known["noise"] = np.asarray(value_of(noise.draws[s.me])).copy()
            return add_noise(share, noise)

        patches.enter_context(patch.object(s, "_add_noise", noted))


# leaky variants


def _reveal_without_resharing(s: CryptenSession, patches: ExitStack) -> None:
    if s.is_party:
        patches.enter_context(patch.object(s._sharing, "zero", lambda shape: np.zeros(shape, dtype=np.int64)))


def _noise_after_opening(s: CryptenSession, patches: ExitStack) -> None:
    reveal, late = s._reveal, []

    def add_noise(share: Any, noise: Noise) -> Any:
        late.append(noise)
        return share

    def opened(shared: Shared, to: str) -> Held[Integers]:
        result = reveal(shared, to)
        if s.is_party:
            s.network.send(to, NOISY, late.pop().draws[s.me]._value)
            return result
        draws = [s.network.receive(party, NOISY, np.int64, shared.shape) for party in s.cast.parties]
        return Held(to, np.add.reduce([result._value, *draws]))

    patches.enter_context(patch.object(s, "_add_noise", add_noise))
    patches.enter_context(patch.object(s, "_reveal", opened))


def _masks_of_zero(s: CryptenSession, patches: ExitStack) -> None:
    def nothing(seed: bytes, number: int, rows: slice, width: int) -> Integers:
        return np.zeros((width, rows.stop - rows.start), dtype=np.int64)

    patches.enter_context(patch.object(crossproduct, "mask", nothing))


def _data_to_the_dealer(s: CryptenSession, patches: ExitStack) -> None:
    gram = s._gram

    def told(columns: Any, rows: int, widths: Any, one: int) -> Any:
        if s.me == s.cast.parties[1]:
            s.network.send(str(s.cast.dealer), MASKED, value_of(columns[s.me]))
        return gram(columns, rows, widths, one)

    patches.enter_context(patch.object(s, "_gram", told))


LEAKS: dict[str, Callable[[CryptenSession, ExitStack], None]] = {
    "reveal without re-sharing": _reveal_without_resharing,
    "noise after opening": _noise_after_opening,
    "masks of zero": _masks_of_zero,
    "data to the dealer": _data_to_the_dealer,
}

# what can be put together


def readable(view: View, me: str, columns: Mapping[str, Integers]) -> Iterator[tuple[str, Integers]]:
    """Every received array, what products of it with own arrays give, and sums and differences of up to four arrays.

    One array of each sum was received; the others may be the observer's own.
    """
    arrays = {
        f"received {n}: {label} of {peer}": a for n, (peer, label, a) in enumerate(view.received) if a.dtype == np.int64
    }
    for name, masked in list(arrays.items()):
        if MASKED in name:
            own = {"own columns": columns[me], **{n: a for n, a in view.known.items() if n.startswith("mask")}}
            for other, array in own.items():
                arrays[f"received, times {other}: {name}"] = masked @ array.T
                arrays[f"received, turned, times {other}: {name}"] = array @ masked.T
    everything = {**arrays, **view.known}
    for shape in {array.shape for array in arrays.values()}:
        alike = {name: array for name, array in everything.items() if array.shape == shape}
        for count in range(1, MOST + 1):
            for names in combinations(alike, count):
                if not any(name in arrays for name in names):
                    continue
                for signs in product((1, -1), repeat=count - 1):
                    total = alike[names[0]].copy()
                    for sign, name in zip(signs, names[1:], strict=True):
                        total += sign * alike[name]
                    yield " | ".join(names), total


def hidden(
    me: str, views: Mapping[str, View], columns: Mapping[str, Integers], plan: Plan
) -> dict[str, tuple[Any, Any]]:
    """What `me` must not read, as (array, where it is a secret): others' columns, un-noised blocks and coefficients,
    any single party's noise, any single party's share."""
    secrets: dict[str, tuple[Any, Any]] = {}
    for k, own in columns.items():
        if k != me:
            secrets[f"columns of {k}"] = own, True
        for l, other in columns.items():
            if k != l or k != me:
                secrets[f"block of {k} and {l}"] = own @ other.T, True
    rows = plan.schema.rows
    full = np.vstack([np.full((1, rows), 1 << plan.bits, dtype=np.int64), *columns.values()])
    gram = full @ full.T
    (group,) = plan.groups
    first, second = plan.coefficients.first[group.entries], plan.coefficients.second[group.entries]
    owner = np.array(["", *(party for party, own in columns.items() for _ in own)], dtype=object)
    mine = np.isin(owner[first], ("", me)) & np.isin(owner[second], ("", me))
    secrets["un-noised coefficients"] = gram[first, second], ~mine
    shares = {party: next(a for name, a in views[party].known.items() if name.startswith("share")) for party in columns}
    opened = np.add.reduce(list(shares.values()))
    for party in columns:
        if party != me:
            noise = views[party].known.get("noise", np.zeros(group.size, dtype=np.int64))
            secrets[f"noise of {party}"] = noise, noise != 0
            secrets[f"share of {party}"] = shares[party], (shares[party] != 0) & (shares[party] != opened)
    return secrets


def assert_nothing_else_is_read(
    views: Mapping[str, View], columns: Mapping[str, Integers], plan: Plan, dealer: str
) -> None:
    """No process can put together a single entry of what it must not read; the dealer is sent requests only."""
    for me, view in views.items():
        secrets = hidden(me, views, columns, plan)
        for name, found in readable(view, me, columns):
            for secret, (array, where) in secrets.items():
                for turned in (array, array.T):
                    if found.shape == turned.shape:
                        place = where if where is True or turned.ndim == 1 else where.T
                        assert not np.any((found == turned) & place), f"{me} reads the {secret} from {name}"
        for peer, label, payload in view.sent:
            if peer == dealer:
                assert label == "request", f"{me} sent '{label}' to the dealer"
                assert set(json.loads(payload.tobytes())) <= {"kind", "number", "rows", "widths", "blocks"}
