"""A barrier for measurements."""

from __future__ import annotations

import numpy as np

from smpc.engine.session import CryptenSession


def together(s: CryptenSession) -> None:
    """Nobody starts before everybody is ready: a barrier at the server."""
    token = np.zeros(1, dtype=np.int64)
    if s.is_party:
        s.network.send(s.cast.server, "ready", token)
        s.network.receive(s.cast.server, "go", np.int64, (1,))
        return
    for name in s.cast.parties:
        s.network.receive(name, "ready", np.int64, (1,))
    for name in s.cast.parties:
        s.network.send(name, "go", token)
