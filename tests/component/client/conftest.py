"""Every test of the client runs on both event loops, against brokers in memory."""

from __future__ import annotations

import pytest
from tests.component.wire.running import LOOPS, Runner


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Runner:
    return Runner(request.param)
