"""The fixtures we ship: a real broker for other people's tests."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from angarium import Client
from angarium.testing.broker import BrokerThread

if TYPE_CHECKING:
    from angarium import SyncClient

# Who names the plugin as well as having it installed gets it once.
pytest_plugins = ["angarium.testing.pytest_plugin"]


def test_a_synchronous_test_has_a_client_and_an_empty_broker(angarium_client: SyncClient) -> None:
    assert angarium_client.list_topics() == ()
    assert angarium_client.publish("orders", b"tea").offset == 0
    assert [record.value for record in angarium_client.fetch("orders")] == [b"tea"]


def test_an_asynchronous_test_brings_its_own_client(angarium_broker: BrokerThread) -> None:
    async def main() -> None:
        async with Client(*angarium_broker.addresses) as client:
            await client.create_topic("orders")
            async with client.subscribe("orders") as records:
                await client.publish("orders", b"tea")
                async for record in records:
                    assert record.value == b"tea"
                    break

    asyncio.run(main())


def test_the_process_is_left_as_it_was() -> None:
    before = sys.getswitchinterval()
    with BrokerThread():
        assert sys.getswitchinterval() <= 0.0005
    assert sys.getswitchinterval() == before
