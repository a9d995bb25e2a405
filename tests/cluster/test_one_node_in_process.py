"""One real node in the test's own process: what is quicker to see here than across processes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from angarium.api import Interest, PublishRequest, Start, TopicConfig
from angarium.batch import encode
from angarium.doors.intake.once import Once
from angarium.doors.wire.door import WireDoor
from angarium.errors import InvalidArgument, NotFound, PreconditionFailed
from angarium.ids import NodeId
from angarium.machine.catalog.commands import Form
from angarium.modes import DeliveryMode
from angarium.node.catalog import NodeCatalog
from angarium.node.config import NodeConfig
from angarium.node.joining import Asking, ask_to_join, cluster_name
from angarium.node.node import Node
from angarium.service.access import Access
from angarium.service.metering import MeteredService

if TYPE_CHECKING:
    from pathlib import Path


async def started(folder: Path) -> tuple[Node, MeteredService]:
    """Return a node that has formed a cluster of its own."""
    node = Node(NodeConfig(data_directory=folder, wire_port=0, form=True))
    service = MeteredService(node)
    node.welcome = WireDoor(node, service, Access(service)).welcome
    await node.start()
    async with asyncio.timeout(60):
        while not node.catalog.machine.nodes.by_id:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(0.01)
    return node, service


@pytest.mark.parametrize("has_a_name", [False, True])
def test_whoever_comes_before_the_founder_is_known_waits_and_is_not_called_like_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_a_name: bool
) -> None:
    may_introduce = asyncio.Event()
    introduce = NodeCatalog._introduce

    async def introduce_late(catalog: NodeCatalog) -> None:
        if has_a_name and not catalog.machine.cluster:
            await catalog.submit(Form(cluster=cluster_name(catalog._node.folder_identity), level=1))
        await may_introduce.wait()
        await introduce(catalog)

    monkeypatch.setattr(NodeCatalog, "_introduce", introduce_late)

    async def scene() -> None:
        node = Node(NodeConfig(data_directory=tmp_path, wire_port=0, form=True))
        service = MeteredService(node)
        door = WireDoor(node, service, Access(service))
        node.welcome = door.welcome
        await node.start()
        try:
            async with asyncio.timeout(60):
                while not node.host.catalog.may_serve:  # type: ignore[union-attr]  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                join = (f"127.0.0.1:{node.wire_port}",)
                config = NodeConfig(data_directory=tmp_path / "other", join=join)
                asking = asyncio.ensure_future(
                    ask_to_join(config, {"wire": "127.0.0.1:1"}, Asking(), Node(config).lookout)
                )
                # It is asked at least twice before the founder introduces itself.
                await asyncio.wait((asking,), timeout=0.5)
                assert not asking.done()
                may_introduce.set()
                identity, _ = await asking
            assert (node.id, identity.node_id) == (1, 2)
            assert identity.cluster_id == node.folder_identity.cluster_id
        finally:
            await node.stop()

    asyncio.run(scene())


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


def test_a_node_that_never_was_cannot_be_removed(tmp_path: Path) -> None:
    async def scene() -> None:
        node, service = await started(tmp_path)
        try:
            with pytest.raises(NotFound, match="there is no node 9"):
                await service.remove_node(NodeId(9))
        finally:
            await node.stop()

    asyncio.run(scene())


def test_the_only_node_cannot_be_removed_and_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        node, service = await started(tmp_path)
        try:
            with pytest.raises(PreconditionFailed, match="without it there is no cluster"):
                await service.remove_node(node.id)
            await service.create_topic("after", partitions=1, config=TopicConfig())
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
                async with asyncio.timeout(60):
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


def test_a_key_is_refused_where_the_topic_itself_stores_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        node, service = await started(tmp_path)
        try:
            config = TopicConfig(replication=1, mode=DeliveryMode.PERFORMANCE)
            await service.create_topic("passing", partitions=1, config=config)
            producer, epoch, sequence = Once(b"key", b"content").at()
            batch = encode([b"x"], producer_id=producer, epoch=epoch, sequence=sequence)
            keyed = PublishRequest(topic="passing", partition=0, batches=(batch,))
            with pytest.raises(InvalidArgument, match="cannot recognise an idempotency key"):
                await service.publish(keyed)
            plain = PublishRequest(topic="passing", partition=0, batches=(encode([b"x"]),))
            (ack,) = await service.publish(plain)
            assert ack.mode is DeliveryMode.PERFORMANCE
        finally:
            await node.stop()

    asyncio.run(story())
