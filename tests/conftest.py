"""Real processes for all tests marked `mpc`: one pool for each number of parties, renewed after a failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from launch.pool import Pool, TaskFailed
from smpc.cast import Cast

# how busy the machine is says nothing about the code
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


class Pools:
    """`run(parties, task)` in long-lived processes; with `record`, tasks get their process's frames, too."""

    def __init__(self) -> None:
        self._pools: dict[tuple[int, bool], Pool] = {}

    def run(self, parties: int, task: Any, *, record: bool = False, **arguments: Any) -> dict[str, Any]:
        key = parties, record
        if key not in self._pools:
            self._pools[key] = Pool(Cast(tuple(f"p{rank}" for rank in range(parties))), record=record)
        try:
            return self._pools[key].run(task, **arguments)
        except TaskFailed:
            self._pools.pop(key).close()
            raise

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


@pytest.fixture(scope="session")
def pools() -> Iterator[Pools]:
    running = Pools()
    yield running
    running.close()
