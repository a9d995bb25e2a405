"""Groups over three nodes in one process: leaders elsewhere, leaders that change, nodes that go."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.component.service.groups.consuming import (
    WAIT_S,
    about,
    collect,
    consume,
    next_of,
    offsets,
    publish,
    said,
    settle,
    values,
)
from tests.on_a_loop import on_a_loop

from angarium.api import GroupConfig, TopicConfig, Verb
from angarium.errors import NotLeader
from angarium.ids import NodeId
from angarium.kinds import GroupKind
from angarium.testing.broker import in_process_broker
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.service.broker import Service
    from angarium.testing.broker import InProcessBroker


def service_of(broker: InProcessBroker, at: int) -> Service:
    service = broker.services[at]
    assert service is not None
    return service


async def leader_of(service: Service, partition: int = 0) -> int:
    """Return who leads a partition, waiting until somebody does."""
    async with asyncio.timeout(WAIT_S):
        while True:
            info = await service.describe_topic("orders")
            leader = info.partitions[partition].leader
            if leader is not None:
                return leader
            await asyncio.sleep(0.01)


async def move_leader(broker: InProcessBroker, partition: int = 0) -> None:
    """Have another node lead a partition."""
    service = service_of(broker, 0)
    old = await leader_of(service, partition)
    target = next(one for one in (1, 2, 3) if one != old)
    async with asyncio.timeout(WAIT_S):
        while await leader_of(service, partition) != target:
            with suppress(NotLeader, Unreachable):  # in the midst of an election
                await service.transfer_leader("orders", partition, NodeId(target))
            await asyncio.sleep(0.05)


@on_a_loop
async def test_a_consumer_gets_all_partitions_whoever_leads_them(tmp_path: Path) -> None:
    async with in_process_broker(tmp_path, nodes=3) as broker:
        service = service_of(broker, 0)
        await service.create_topic("orders", partitions=6, config=TopicConfig())
        for partition in range(6):
            await publish(service, [b"%d" % partition] * 5, partition=partition)
        consumption = await consume(service_of(broker, 1))
        found = await collect(consumption, 30)
        assert {one.partition for one in found} == set(range(6))
        assert {value for one in found for value in values(one)} == {b"%d" % n for n in range(6)}
        done = await settle(consumption, *(said(one) for one in found))
        assert sum(one.records for one in done) == 30
        info = await service_of(broker, 2).describe_group("workers")
        assert info.lag == 0
        assert len(info.positions) == 6
        assert [member.node for member in info.members] == [2]
        await consumption.close()


@on_a_loop
async def test_a_new_leader_goes_on_exactly_where_the_old_one_stopped(tmp_path: Path) -> None:
    async with in_process_broker(tmp_path, nodes=3) as broker:
        service = service_of(broker, 0)
        await service.create_topic("orders", partitions=1, config=TopicConfig())
        await publish(service, [b"x"] * 10)
        consumption = await consume(
            service, credit=8, member="me", config=GroupConfig(backoff_min_ms=1)
        )
        assert offsets(await next_of(consumption)) == list(range(8))
        await settle(consumption, about(0, 1, 5), about(2, verb=Verb.NACK))
        again = await collect(consumption, 3)
        assert sorted((offset, one.attempt) for one in again for offset in offsets(one)) == [
            (2, 2),
            (8, 1),
            (9, 1),
        ]
        await move_leader(broker)
        # What it holds it keeps, at the new leader, and nothing is handed out twice.
        (settled,) = await settle(consumption, about(2, 3, 4, 6, 7, 8))
        assert (settled.records, settled.code) == (6, "")
        info = await service.describe_group("workers")
        assert info.positions[0].floor == 9
        await publish(service, [b"y"])
        assert offsets(await next_of(consumption)) == [10]
        await consumption.close()


@on_a_loop
async def test_a_stream_keeps_its_order_over_a_change_of_leader(tmp_path: Path) -> None:
    async with in_process_broker(tmp_path, nodes=3) as broker:
        service = service_of(broker, 0)
        await service.create_topic("orders", partitions=1, config=TopicConfig())
        consumption = await consume(service, kind=GroupKind.STREAM, credit=20)
        seen = 0
        for turn in range(6):
            await publish(service, [b"x"] * 10)
            while seen < 10 * (turn + 1):
                handed = await next_of(consumption)
                assert offsets(handed)[0] <= seen, "nothing is skipped"
                seen = max(seen, offsets(handed)[-1] + 1)
                if turn % 2:
                    await move_leader(broker)
                (settled,) = await settle(consumption, said(handed, cumulative=True))
                assert not settled.code, settled.message
        info = await service.describe_group("workers")
        assert info.positions[0].floor == 60
        await consumption.close()


@on_a_loop
async def test_the_records_of_a_node_that_is_gone_go_to_others(tmp_path: Path) -> None:
    async with in_process_broker(tmp_path, nodes=3) as broker:
        service = service_of(broker, 0)
        await service.create_topic("orders", partitions=3, config=TopicConfig())
        doomed = await consume(service_of(broker, 2), credit=30)
        for partition in range(3):
            await publish(service, [b"x"] * 10, partition=partition)
        await collect(doomed, 30)
        survivor = await consume(service, config=None)
        await broker.stop_node(2)
        found = await collect(survivor, 30)
        done = await settle(survivor, *(said(one) for one in found))
        assert sum(one.records for one in done) == 30
        await survivor.close()
