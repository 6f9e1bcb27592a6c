"""A party that dies or freezes while CrypTen's own protocols run ends all others in time, each naming it and the step.

CrypTen catches RuntimeError in a conversion and tries again in another way; a loss must not be taken for that.
"""

from __future__ import annotations

import os
import re
import signal
import time
from typing import Any

import pytest

from launch.pool import Pool
from smpc.engine.session import CryptenSession
from smpc.errors import PeerError
from tests.engine.crypten_tasks import PRIMITIVES, secret_operands
from tests.harness import cast_of

pytestmark = pytest.mark.mpc

DEADLINE = 4.0
SLACK = 4.0  # two cores may be busy with other tests


def compare_once(s: CryptenSession) -> None:
    if s.is_party:
        x, y = secret_operands(PRIMITIVES["gt"], s.cast.parties.index(s.me))
        (x > y).reveal()


def compare_for_ever(s: CryptenSession) -> None:
    """Comparisons until somebody is lost; the server waits for the bit that comes after them."""
    s.network.enter("check_zero: agreement")
    if not s.is_party:
        s.network.receive("p0", "bit", "int64", (1,))
    x, y = secret_operands(PRIMITIVES["gt"], s.cast.parties.index(s.me))
    while True:
        (x > y).reveal()


def test_a_loss_is_no_runtime_error() -> None:
    assert not issubclass(PeerError, RuntimeError)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_party_is_named_by_all_others(number: signal.Signals) -> None:
    with Pool(cast_of(3), deadline=DEADLINE) as pool:
        others = ("p0", "p2", "server")
        pool.run(compare_once)  # all have started
        for name in ("p1", *others):
            pool._pipes[name].send((compare_for_ever, {}))
        assert not pool._pipes["p2"].poll(2.0), "nobody is lost yet"
        start = time.monotonic()
        os.kill(pool.processes["p1"].pid, number)
        lines: dict[str, Any] = {}
        for name in others:
            assert pool._pipes[name].poll(DEADLINE + SLACK), f"{name} still waits"
            good, text = pool._pipes[name].recv()
            lines[name] = text.strip().splitlines()[-1]
            assert not good
        pool.processes["dealer"].join(DEADLINE + SLACK)
        assert pool.processes["dealer"].exitcode is not None
        assert time.monotonic() - start < 2 * (DEADLINE + SLACK)
        for line in lines.values():
            assert line.startswith("smpc.errors.PeerError: ")
            assert re.search(r"\bp1\b.* at '(check_zero: agreement|request \d+ \(\w+\))'$", line), line
        pool.processes["p1"].kill()
