"""A participant that sends anything at any time: all others end, each with one line that names it, or end well.

Which lines name it: all, but those of a wait that took too long. Who then names whom depends on whose patience ends
first, and is tested in `test_patience`.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from smpc.engine.dealer import Dealer
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.start import join
from smpc.engine.tls import Contexts, Identity, listen
from smpc.errors import PeerError
from smpc.values import Held
from tests.engine.rogue import Rogue, take_over
from tests.harness import ArraySession, cast_of, keys

CAST = cast_of(3)
MESSAGES = 35  # a first party sends 24
ROWS = 20_000  # three messages of masked columns
PATIENCE = 1.0
LIMIT = 15.0  # seconds for all others to end


def whole_job(network: Network, agreement: Agreement) -> None:
    """A product, an opening, a message, a publication, a goodbye."""
    if network.me == CAST.dealer:
        Dealer(network, agreement, CAST.parties).serve()
    else:
        s = ArraySession(CAST, network, agreement)
        columns = {p: Held(p, np.full((2, ROWS), 3, dtype=np.int64) if p == s.me else None) for p in CAST.parties}
        gram = s.gram(columns, rows=ROWS, widths=dict.fromkeys(CAST.parties, 2), bits=1)
        s.reveal(gram, to="server", message="gram", unprotected=True)
        s.send(s.at("p0", np.arange, 3), to="p2", shape=(3,), message="numbers")
        s.publish(s.at("server", np.zeros, 2), shape=(2,), message="model")
    network.finish()


def outcomes(name: str, rogue: Rogue) -> dict[str, Any]:
    """What all others end with: None or an exception."""
    listeners = {member: listen(("127.0.0.1", 0)) for member in CAST.everyone}
    addresses = {member: listener.getsockname() for member, listener in listeners.items()}
    certificates = {member: keys(member)[1] for member in CAST.everyone}
    over = threading.Event()

    def part(me: str) -> Any:
        network = None
        try:
            identity, listener = Identity(me, *keys(me)), listeners[me]
            network, agreement = join(
                CAST, Contexts(identity, certificates), addresses, listener, {}, deadline=5.0, start_deadline=20.0
            )
            network.patience = PATIENCE
            whole_job(network, agreement)
        except Exception as error:
            if isinstance(error, Rogue) and error.then == "keeps still":
                over.wait(LIMIT)
            if network is not None:
                network.abort(error)
            return error
        return None

    with ThreadPoolExecutor(len(CAST.everyone)) as threads:
        running = {member: threads.submit(part, member) for member in CAST.everyone}
        try:
            return {member: future.result(timeout=LIMIT) for member, future in running.items() if member != name}
        finally:
            over.set()


def check(name: str, found: Mapping[str, Any]) -> None:
    lines = {member: str(outcome) for member, outcome in found.items() if outcome is not None}
    assert all(isinstance(found[member], PeerError) for member in lines), found
    assert all(line.isprintable() and len(line) < 600 for line in lines.values()), lines
    if not any(re.search(r" did not (send|take|say) ", line) for line in lines.values()):
        assert all(re.search(rf"\b{name}\b", line) for line in lines.values()), lines


def one(seed: int, patch: pytest.MonkeyPatch) -> None:
    name = random.Random(seed).choice(CAST.everyone)
    rogue = Rogue(seed, MESSAGES)
    take_over(name, rogue, patch.setattr)
    start = time.monotonic()
    try:
        found = outcomes(name, rogue)
        check(name, found)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {name} {rogue}") from error
    assert time.monotonic() - start < LIMIT + 5


def test_the_job_ends_well_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outcomes("nobody", Rogue(0, MESSAGES))
    assert found == dict.fromkeys(CAST.everyone)


@pytest.mark.parametrize("seed", range(24))
def test_all_others_end_with_one_line_that_names_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one(seed, monkeypatch)


@pytest.mark.long
def test_so_they_do_for_many_others() -> None:
    start = random.SystemRandom().randrange(10**9)
    for seed in range(start, start + 400):
        with pytest.MonkeyPatch.context() as patch:
            one(seed, patch)
