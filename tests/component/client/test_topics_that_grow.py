"""A topic is given more partitions by somebody else while a client publishes to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.client.fake_partition import Partition
from tests.component.client.harness import talking

from angarium.errors import InvalidArgument, NotFound
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from tests.component.client.fake_broker import Cluster
    from tests.component.wire.running import Runner


def grow(cluster: Cluster, partitions: int) -> None:
    """As another client would have it done."""
    topic = cluster.topics["t"]
    while len(topic.partitions) < partitions:
        topic.partitions.append(Partition(leader=1))


def test_a_partition_that_was_added_is_found_when_it_is_asked_for(run: Runner) -> None:
    async def main() -> None:
        async with talking(refresh_s=60.0) as (cluster, client):
            await client.publish("t", b"before")
            grow(cluster, 2)
            assert (await client.publish("t", b"one", partition=1)).partition == 1
            grow(cluster, 3)
            (ack,) = await client.publish_batch("t", [b"two"], partition=2)
            assert ack.partition == 2
            grow(cluster, 4)
            client.publish_nowait("t", b"three", partition=3)
            client.publish_nowait("t", b"four", partition=3)
            await client.flush()
            assert cluster.topics["t"].partitions[3].values() == [b"three", b"four"]

    run(main())


def test_a_partition_that_is_not_there_is_said_at_once(run: Runner) -> None:
    async def main() -> None:
        async with talking(refresh_s=60.0) as (cluster, client):
            await client.publish("t", b"before")
            with pytest.raises(NotFound, match="partitions 0 to 0, not 7"):
                await client.publish("t", b"", partition=7)
            with pytest.raises(NotFound, match="partitions 0 to 0, not 7"):
                await client.publish_batch("t", [b""], partition=7)
            with pytest.raises(InvalidArgument):
                await client.publish("t", b"", partition=-1)
            client.publish_nowait("t", b"lost", partition=7)
            client.publish_nowait("t", b"kept")
            with pytest.raises(NotFound):
                await client.flush()
            assert cluster.topics["t"].partitions[0].values() == [b"before", b"kept"]
            assert client.buffered_bytes == 0

    run(main())


def test_a_leader_that_answers_says_that_there_are_more(run: Runner) -> None:
    async def main() -> None:
        async with talking(refresh_s=60.0) as (cluster, client):
            await client.publish("t", b"")
            grow(cluster, 3)
            used: set[int] = set()
            async with asyncio.timeout(60):
                while used != {0, 1, 2}:
                    used.add((await client.publish("t", b"")).partition)
            keyed = {(await client.publish("t", b"", key=b"%d" % n)).partition for n in range(64)}
            assert keyed == {0, 1, 2}
            asked = cluster.nodes[0].requests.count(Operation.DESCRIBE_TOPIC)
            await client.publish("t", b"")
            assert cluster.nodes[0].requests.count(Operation.DESCRIBE_TOPIC) == asked

    run(main())


def test_programs_that_publish_one_record_each_do_not_meet_in_one_partition(run: Runner) -> None:
    async def main() -> None:
        used: set[int] = set()
        for _ in range(60):
            async with talking(partitions=2) as (_, client):
                used.add((await client.publish("t", b"")).partition)
            if len(used) == 2:
                return
        raise AssertionError(f"only {used} of two partitions in sixty programs")

    run(main())
