"""Long-lived sessions of every number of parties: an example costs milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness import Sessions


@pytest.fixture(scope="module", params=[2, 3, 4, 5], ids="K={}".format)
def sessions(request: pytest.FixtureRequest) -> Iterator[Sessions]:
    with Sessions(request.param) as running:
        yield running
