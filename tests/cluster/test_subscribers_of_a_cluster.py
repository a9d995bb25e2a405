"""Subscribers on every node: live from memory, from the log, slow ones, and ones left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from angarium.api import Start, StartAt
from angarium.batch import Batch, encode, split
from angarium.ids import RaftGroupId
from angarium.modes import DeliveryMode
from angarium.testing.cluster import Contact, Load, eventually
from angarium.testing.cluster.subscribers import Subscriber
from angarium.testing.cluster.waiting import now_micros
from angarium.testing.history import History
from angarium.testing.reserved_port import HOST
from angarium.wire.operations import Delivered, Operation, Told, Want, Wants

if TYPE_CHECKING:
    from tests.cluster.running import ClusterOf, Run

    from angarium.wire import Stream

WANTED = 200
STALLED_S_MAX = 30.0
"""What one publish may take on a machine that does much else."""


async def subscription(contact: Contact, topic: str, start: Start) -> Stream:
    connection = await contact.connection()
    return connection.open_stream(Operation.SUBSCRIBE, Wants((Want(1, topic, 0, start),)))


async def take_live(stream: Stream, count: int) -> list[bytes]:
    taken: list[bytes] = []
    while len(taken) < count:
        frame = await stream.receive()
        assert frame is not None
        told: Told = frame.read(Told)  # type: ignore[arg-type]
        assert isinstance(told, Delivered)
        assert told.live
        taken += [one.value or b"" for data in split(frame.payload) for one in Batch.parse(data)]
    return taken


def test_performance_mode_reaches_the_subscribers_of_every_node_in_order(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(4) as cluster:
            await cluster.create_topic("ticks")
            streams = [
                await subscription(cluster.contact(node), "ticks", Start(StartAt.LATEST))
                for node in cluster.ids
            ]
            publisher = cluster.contact(cluster.ids[0])

            async def all_are_known() -> bool:
                (ack,) = await publisher.publish(
                    "ticks", 0, [bytes(encode([b"?"]))], mode=DeliveryMode.PERFORMANCE
                )
                assert ack.base_offset is None
                assert ack.id
                return ack.subscribers == len(cluster.ids)

            await eventually(all_are_known, what="the leader knows all subscribers")
            for number in range(WANTED):
                # Through every node in turn; each waits for its ack, so there is one order.
                node = cluster.ids[number % len(cluster.ids)]
                await cluster.contact(node).publish(
                    "ticks", 0, [bytes(encode([b"%d" % number]))], mode=DeliveryMode.PERFORMANCE
                )
            expected = [b"%d" % number for number in range(WANTED)]
            for stream in streams:
                async with asyncio.timeout(60):
                    taken: list[bytes] = []
                    while len(taken) < WANTED:
                        taken += [one for one in await take_live(stream, 1) if one != b"?"]
                assert taken == expected
            info = await publisher.describe("ticks")
            assert info.partitions[0].end_offset in (0, None), "nothing of it is stored"

    run(scenario())


def test_a_subscriber_whose_node_dies_goes_on_elsewhere_without_gap(
    run: Run, cluster_of: ClusterOf
) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("orders")
            async with Load(cluster, topic="orders", subscribers=3) as load:
                for node in cluster.ids:
                    cluster.nodes[node].kill()
                    await load.acknowledged_after(now_micros())
                    cluster.restart(node)
                    await cluster.back(node)
                    await cluster.settled(topics=["orders"])
                verdict = await load.conclude()
            assert verdict.violations == []
            assert verdict.resumed >= 3

    run(scenario())


def test_a_subscriber_that_does_not_read_stalls_nobody(run: Run, cluster_of: ClusterOf) -> None:
    async def scenario() -> None:
        async with cluster_of(3) as cluster:
            await cluster.create_topic("big")
            leader = await cluster.leader("big")
            lazy = Contact(HOST, cluster.nodes[leader].port.number)
            stalled = await subscription(lazy, "big", Start(StartAt.EARLIEST))
            eager = Subscriber(
                cluster, History(), topic="big", groups={0: RaftGroupId(1)}, seed=0, node=leader
            )
            following = asyncio.create_task(eager.run())
            batch = bytes(encode([bytes(1_000)] * 250))
            publisher = cluster.contact(leader)
            slowest = 0.0
            for _ in range(100):  # 25 MB: far more than any window or buffer on the way holds
                began = asyncio.get_running_loop().time()
                await publisher.publish("big", 0, [batch], timeout_s=60.0)
                slowest = max(slowest, asyncio.get_running_loop().time() - began)
            await eventually(lambda: eager.reach({0: 25_000}), what="the eager one has it all")
            assert slowest < STALLED_S_MAX, "whoever waits for the other waits for good"
            following.cancel()
            # The stalled one has lost nothing either: it reads when it likes.
            read = 0
            async with asyncio.timeout(60):
                while read < 25_000:
                    frame = await stalled.receive()
                    assert frame is not None
                    read += sum(len(Batch.parse(data)) for data in split(frame.payload))
            lazy.cut()

    run(scenario())
