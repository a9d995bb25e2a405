"""A client whose topic gets another layout while records are under way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_partition import Partition
from tests.component.client.harness import talking
from tests.on_a_loop import eventually

from angarium.batch import split
from angarium.errors import NotFound
from angarium.modes import DeliveryMode
from angarium.wire.operations import Operation, PublishHeader

if TYPE_CHECKING:
    from tests.component.client.fake_broker import Cluster, Node
    from tests.component.wire.running import Runner

    from angarium.wire import Request


def fence(cluster: Cluster) -> None:
    """Give the topic a second partition; the first one has its fence, and no more is known."""
    topic = cluster.topics["t"]
    topic.partitions.append(Partition(leader=1))
    topic.layouts = (1, 2)
    topic.partitions[0].fenced = 1


def put_in_force(cluster: Cluster) -> None:
    cluster.topics["t"].layout = 1


def everything(cluster: Cluster) -> list[bytes]:
    return [value or b"" for one in cluster.topics["t"].partitions for value in one.values()]


def test_what_keys_have_sent_is_dealt_anew_in_order(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish("t", b"first", key="k")
            fence(cluster)
            keys = [str(number % 8) for number in range(80)]
            for number, key in enumerate(keys):
                client.publish_nowait("t", b"%d" % number, key=key)
                client.publish_nowait("t", b"named %d" % number, partition=0)
            await eventually(lambda: cluster.nodes[0].requests.count(Operation.PUBLISH) > 1)
            put_in_force(cluster)
            await client.flush()
            found = everything(cluster)
            assert len(found) == len(set(found)) == 161
            for partition in cluster.topics["t"].partitions:
                values = [int(v) for v in partition.values() if v and v.isdigit()]
                for rest in range(8):
                    own = [number for number in values if number % 8 == rest]
                    assert own == sorted(own)
            assert cluster.topics["t"].partitions[1].values()

    run(main())


def test_a_late_attempt_is_not_taken_for_what_came_after_it(run: Runner) -> None:
    """A batch without a layout was sent behind one that a fence refused, and its attempt is still
    somewhere on the way when the numbers of both are free again."""

    async def main() -> None:
        async with talking(partitions=1) as (cluster, client):
            arrives, begun = asyncio.Event(), asyncio.Event()
            late: list[asyncio.Task[object]] = []

            async def hold(node: Node, request: Request) -> bool:
                await begun.wait()
                return False

            async def come_late(node: Node, request: Request) -> bool:
                header = request.read(PublishHeader)
                batches = [bytes(one) for one in split(request.payload)]

                async def arrive() -> None:
                    await arrives.wait()
                    topic = node.cluster.topic("t")
                    await node.cluster.store(topic, header, batches, DeliveryMode.CONSISTENT)

                late.append(asyncio.create_task(arrive()))
                request.connection._abort()
                return True

            await client.publish("t", b"first", key="k")
            fence(cluster)
            cluster.plan(Operation.PUBLISH, hold, come_late)
            keyed = asyncio.create_task(client.publish("t", b"keyed", key="k"))
            named = asyncio.create_task(client.publish("t", b"named", partition=0))
            await asyncio.sleep(0)
            client.publish_nowait("t", b"more", key="k")  # seals what is named, so that it is sent
            await eventually(lambda: bool(late))
            begun.set()
            put_in_force(cluster)
            await keyed
            await named
            arrives.set()
            await late[0]
            await client.publish("t", b"last", partition=0)
            await client.flush()
            assert sorted(everything(cluster)) == [b"first", b"keyed", b"last", b"more", b"named"]

    run(main())


def test_who_waits_for_a_layout_of_a_topic_that_is_deleted_is_told(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish("t", b"first", key="k")
            fence(cluster)
            waiting = asyncio.create_task(client.publish("t", b"never", key="k"))
            asked = cluster.nodes[0].requests
            await eventually(lambda: asked.count(Operation.DESCRIBE_TOPIC) > 3)
            await client.delete_topic("t")
            async with asyncio.timeout(15):
                with pytest.raises(NotFound):
                    await waiting
            # Another one of the same name has layouts of its own.
            cluster.add_topic("t", partitions=1)
            assert (await client.publish("t", b"second", key="k")).offset == 0
            assert everything(cluster) == [b"second"]

    run(main())


def test_a_topic_that_was_made_anew_while_a_layout_was_waited_for(run: Runner) -> None:
    async def main() -> None:
        async with talking(publish_timeout_s=6.0) as (cluster, client):
            await client.publish("t", b"first", key="k")
            fence(cluster)
            put_in_force(cluster)
            await client.publish("t", b"by layout 1", key="k")
            topic = cluster.topics["t"]
            topic.partitions.append(Partition(leader=1))
            topic.layouts = (1, 2, 3)
            for one in topic.partitions[:2]:
                one.fenced = 2
            waiting = asyncio.create_task(client.publish("t", b"waits", key="k"))
            asked = cluster.nodes[0].requests
            before = asked.count(Operation.DESCRIBE_TOPIC)
            await eventually(lambda: asked.count(Operation.DESCRIBE_TOPIC) > before + 3)
            del cluster.topics["t"]
            cluster.add_topic("t", partitions=1)
            with pytest.raises(NotFound, match="partitions 0 to 0, not 1"):
                await waiting
            for number in range(16):
                assert (await client.publish("t", b"", key=str(number))).partition == 0

    run(main())


def test_a_partition_without_a_leader_holds_nobody_else_up(run: Runner) -> None:
    async def main() -> None:
        async with talking(partitions=2) as (cluster, client):
            topic = cluster.topics["t"]
            homes = {
                (await client.publish("t", b"", key=str(n))).partition: str(n) for n in range(9)
            }
            topic.partitions[0].leader = None
            stuck = asyncio.create_task(client.publish("t", b"stuck", key=homes[0]))
            asked = cluster.nodes[0].requests
            before = asked.count(Operation.PUBLISH)
            await eventually(lambda: asked.count(Operation.PUBLISH) > before + 1)
            topic.partitions.append(Partition(leader=1))
            topic.layouts, topic.layout = (2, 3), 1
            for one in topic.partitions[:2]:
                one.fenced = 1
            async with asyncio.timeout(15):
                await client.publish("t", b"goes", key=homes[1])
            topic.partitions[0].leader = 1
            await stuck
            assert sorted(value for value in everything(cluster) if value) == [b"goes", b"stuck"]

    run(main())
