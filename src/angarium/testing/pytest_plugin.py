"""Fixtures for tests of programs that use Angarium: a real broker, ready in well under 100 ms.

pytest finds them by itself wherever the package is installed:

    def test_an_order_is_announced(angarium_client):
        place_order(angarium_client)
        assert angarium_client.fetch("orders")[0].value == b"..."

The broker runs in a thread of its own, so tests may be synchronous or not; asynchronous ones make
a `Client(*angarium_broker.addresses)` on their own event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.client import SyncClient
    from angarium.testing.broker import BrokerThread


@pytest.fixture
def angarium_broker() -> Iterator[BrokerThread]:
    """A broker of one node, empty, for this test alone."""
    from angarium.testing.broker import BrokerThread  # noqa: PLC0415 (only for tests that use it)

    with BrokerThread() as broker:
        yield broker


@pytest.fixture
def angarium_client(angarium_broker: BrokerThread) -> Iterator[SyncClient]:
    """A client connected to `angarium_broker`."""
    from angarium.client import SyncClient  # noqa: PLC0415 (only for tests that use it)

    with SyncClient(*angarium_broker.addresses) as client:
        yield client
