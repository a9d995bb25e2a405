"""One real node in the test's own process: what is quicker to see here than across processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from angarium.api import Interest, PublishRequest, Start, TopicConfig
from angarium.batch import encode
from angarium.doors.wire.door import WireDoor
from angarium.errors import NotFound
from angarium.modes import DeliveryMode
from angarium.node.config import NodeConfig
from angarium.node.node import Node
from angarium.service.broker import Service

if TYPE_CHECKING:
    from pathlib import Path


async def started(folder: Path) -> tuple[Node, Service]:
    """Return a node that has formed a cluster of its own."""
    node = Node(NodeConfig(data_directory=folder, wire_port=0, form=True))
    service = Service(node)
    node.welcome = WireDoor(node, service, service.dispatcher).welcome
    await node.start()
    async with asyncio.timeout(10):
        while not node.catalog.machine.nodes.by_id:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
    return node, service


def test_a_topic_that_was_just_made_serves_at_once(tmp_path: Path) -> None:
    # "latest" is answered by the leader only, once it knows that everything before it is settled.
    async def scene() -> None:
        node, service = await started(tmp_path)
        try:
            for number in range(20):
                name = f"new-{number}"
                await service.create_topic(name, partitions=1, config=TopicConfig())
                assert await service.find_offset(name, 0, Start()) == 0
        finally:
            await node.stop()

    asyncio.run(scene())


def test_a_subscription_to_a_deleted_topic_ends_with_not_found(tmp_path: Path) -> None:
    async def scene() -> None:
        node, service = await started(tmp_path)
        try:
            await service.create_topic("gone", partitions=1, config=TopicConfig())
            subscription = await service.subscribe([Interest(topic="gone", partition=0)])
            reading = asyncio.ensure_future(anext(aiter(subscription)))
            await asyncio.sleep(0)
            await service.delete_topic("gone")
            with pytest.raises(NotFound):
                async with asyncio.timeout(10):
                    await reading
        finally:
            await node.stop()

    asyncio.run(scene())


def test_what_is_handed_on_without_being_stored_is_counted(tmp_path: Path) -> None:
    async def scene() -> None:
        node, service = await started(tmp_path)
        try:
            await service.create_topic("live", partitions=1, config=TopicConfig())
            batches = (encode([b"1", b"2"]), encode([b"3"]))
            request = PublishRequest(
                topic="live", partition=0, batches=batches, mode=DeliveryMode.PERFORMANCE
            )
            await service.publish(request)
            (partition,) = (await service.describe_topic("live")).partitions
            assert (partition.handed_on, partition.end_offset) == (3, 0)
        finally:
            await node.stop()

    asyncio.run(scene())
