"""Groups on real processes when a leader stops answering, or all nodes start again."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Self

import uvloop

from angarium import Client
from angarium.api import ConsumeRequest, GroupConfig, Settlement, Verb
from angarium.batch import Batch, split
from angarium.kinds import GroupKind
from angarium.testing.cluster import ProcessCluster
from angarium.wire.operations import (
    Answered,
    ConsumeHeader,
    HandedOver,
    Heard,
    Joined,
    Operation,
    Settle,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from angarium.client.groups.consumer import Consumer
    from angarium.ids import NodeId
    from angarium.wire import Frame, Stream

GOES_ON_S = 60.0
"""How long a group may take to go on, on a busy machine; a second or two on a quiet one."""


def run(work: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


async def taken(consumer: Consumer, count: int) -> list[tuple[bytes | None, int]]:
    """Return values and attempts of so many records, all acknowledged."""
    found: list[tuple[bytes | None, int]] = []
    async with asyncio.timeout(GOES_ON_S):
        while len(found) < count:
            batch = await consumer.next_batch()
            assert batch is not None
            found += [(value, batch.attempt) for value in batch.values()]
            await batch.ack()
    return found


class WireConsumer:
    """A consumer at one node and no other: what `wire.operations.groups` says, frame by frame."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._number = 0

    @classmethod
    async def join(cls, cluster: ProcessCluster, node: NodeId) -> Self:
        connection = await cluster.contact(node).connection()
        request = ConsumeRequest(group="workers", topics=("orders",))
        stream = connection.open_stream(Operation.CONSUME, ConsumeHeader(request))
        consumer = cls(stream)
        joined, _ = await consumer.hear()
        assert isinstance(joined, Joined)
        assert joined.kind is GroupKind.QUEUE
        return consumer

    async def hear(self) -> tuple[Heard, Frame]:
        async with asyncio.timeout(GOES_ON_S):
            frame = await self._stream.receive()
        assert frame is not None
        heard: Heard = frame.read(Heard)  # type: ignore[arg-type]
        return heard, frame

    async def take(self) -> tuple[list[bytes | None], int]:
        """Return the values of the next delivery, acknowledged, and its attempt."""
        handed, frame = await self.hear()
        assert isinstance(handed, HandedOver)
        self._number += 1
        settlement = Settlement("orders", 0, Verb.ACK, handed.ranges)
        await self._stream.send(Settle(self._number, (settlement,)))
        answered, _ = await self.hear()
        assert isinstance(answered, Answered)
        assert answered.number == self._number
        assert [one.code for one in answered.settled] == [""]
        wanted = range(handed.ranges[0], handed.ranges[-1])
        batches = map(Batch.parse, split(frame.payload))
        records = [one for batch in batches for one in batch if one.offset in wanted]
        return [one.value for one in records], handed.attempt


def test_a_consumer_goes_on_when_the_leader_it_is_attached_to_is_paused(tmp_path: Path) -> None:
    async def main() -> None:
        async with ProcessCluster(tmp_path) as cluster:
            await cluster.create_topic("orders")
            leader = await cluster.leader("orders")
            agent = next(one for one in cluster.ids if one != leader)
            async with Client(*(node.address for node in cluster.nodes.values())) as client:
                await client.publish("orders", b"before")
                consumer = await WireConsumer.join(cluster, agent)
                assert await consumer.take() == ([b"before"], 1)
                cluster.nodes[leader].pause()
                started = time.monotonic()
                await client.publish("orders", b"while")
                assert await consumer.take() == ([b"while"], 1)
                print(f"went on after {time.monotonic() - started:.2f} s")
                cluster.nodes[leader].resume()
                await cluster.settled()
                await client.publish("orders", b"after")
                assert await consumer.take() == ([b"after"], 1)
                assert (await client.describe_group("workers")).lag == 0

    run(main())


def test_positions_and_attempts_survive_when_every_node_is_killed(tmp_path: Path) -> None:
    async def main() -> None:
        async with ProcessCluster(tmp_path) as cluster:
            await cluster.create_topic("orders")
            servers = [node.address for node in cluster.nodes.values()]
            config = GroupConfig(backoff_min_ms=1, backoff_max_ms=2)
            async with Client(*servers) as client:
                await client.publish_batch("orders", [b"%d" % number for number in range(10)])
                group = client.group("workers", config=config)
                async with group.consume("orders", credit=10) as consumer:
                    batch = await consumer.next_batch()
                    assert batch is not None
                    await batch.nack(offsets=[3])
                    await batch.ack([0, 1, 2, 7])
            for node in cluster.nodes.values():
                node.kill()
            for one in cluster.ids:
                cluster.restart(one)
            await cluster.settled()
            async with (
                Client(*servers) as client,
                client.group("workers").consume("orders") as consumer,
            ):
                found = dict(await taken(consumer, 6))
                assert found == {b"3": 2, b"4": 1, b"5": 1, b"6": 1, b"8": 1, b"9": 1}

    run(main())
