"""Groups of a topic some of whose partitions have no leader, the first one among them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.component.service.groups.consuming import (
    WAIT_S,
    collect,
    consume,
    next_of,
    publish,
    said,
    settle,
    values,
)
from tests.component.service.groups.test_consuming_in_a_cluster import leader_of, service_of
from tests.on_a_loop import on_a_loop

from angarium.api import Start, StartAt, TopicConfig
from angarium.errors import AlreadyExists, AngariumError, NotLeader
from angarium.kinds import GroupKind
from angarium.testing.broker import in_process_broker
from angarium.testing.cluster.waiting import eventually
from angarium.wire.operations.members import Forget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from angarium.service.broker import Service
    from angarium.testing.broker import InProcessBroker

PARTITIONS = 6
FIRST = Start(StartAt.EARLIEST)


class Spread:
    """Three nodes, and a topic whose partitions have one replica each, on all of them."""

    def __init__(self, broker: InProcessBroker, homes: dict[int, int]) -> None:
        self.broker = broker
        self.homes = homes
        """The node of each partition."""
        self.first = homes[0]
        self.left = next(one for one in (1, 2, 3) if one != self.first)

    @property
    def service(self) -> Service:
        """What a node serves that has not got partition 0."""
        return service_of(self.broker, self.left - 1)

    @property
    def elsewhere(self) -> list[int]:
        """The partitions that are not on the node of partition 0."""
        return [one for one, node in self.homes.items() if node != self.first]

    async def lose_first(self) -> None:
        await self.broker.stop_node(self.first - 1)

    async def bring_first_back(self) -> None:
        await self.broker.start_node(self.first - 1)


@asynccontextmanager
async def spread(folder: Path) -> AsyncIterator[Spread]:
    async with in_process_broker(folder, nodes=3, tick_ms=20) as broker:
        service = service_of(broker, 0)
        config = TopicConfig(replication=1)
        await service.create_topic("orders", partitions=PARTITIONS, config=config)
        homes = {one: await leader_of(service, one) for one in range(PARTITIONS)}
        assert len(set(homes.values())) == 3
        for one in range(PARTITIONS):
            await publish(service_of(broker, homes[one] - 1), [b"%d" % one], partition=one)
        yield Spread(broker, homes)


async def joined_once(spread: Spread, *, kind: GroupKind) -> None:
    """Let the group exist in all partitions, and be left again with nothing settled."""
    consumption = await consume(spread.service, start=FIRST, kind=kind)
    await collect(consumption, PARTITIONS)
    await consumption.close()


@on_a_loop
async def test_an_existing_group_goes_on_and_the_first_partition_joins_later(
    tmp_path: Path,
) -> None:
    async with spread(tmp_path) as here:
        await joined_once(here, kind=GroupKind.STREAM)
        await here.lose_first()
        consumption = await consume(here.service)
        assert consumption.kind is GroupKind.STREAM, "what a leader says"
        found = await collect(consumption, len(here.elsewhere))
        assert {one.partition for one in found} == set(here.elsewhere)
        await settle(consumption, *(said(one) for one in found))
        one = here.elsewhere[0]
        await publish(here.service, [b"more"], partition=one)
        assert values(await next_of(consumption)) == [b"more"]
        await here.bring_first_back()
        found = await collect(consumption, PARTITIONS - len(here.elsewhere))
        assert {one.partition for one in found} == set(range(PARTITIONS)) - set(here.elsewhere)
        await consumption.close()


@on_a_loop
async def test_a_new_group_is_refused_with_the_reason_until_the_first_partition_is_back(
    tmp_path: Path,
) -> None:
    async with spread(tmp_path) as here:
        await here.lose_first()
        with pytest.raises(NotLeader, match="only partition 0 settles what a new group is") as no:
            await consume(here.service, kind=GroupKind.STREAM)
        assert no.value.retriable
        assert await here.service.list_groups() == (), "it was not opened anywhere"
        await here.bring_first_back()
        await _joined(here.service, kind=GroupKind.STREAM)


@on_a_loop
async def test_another_kind_is_refused_although_the_first_partition_is_away(
    tmp_path: Path,
) -> None:
    async with spread(tmp_path) as here:
        await joined_once(here, kind=GroupKind.QUEUE)
        await here.lose_first()
        with pytest.raises(AlreadyExists, match="of the kind queue"):
            await consume(here.service, kind=GroupKind.KEY)


@on_a_loop
async def test_two_kinds_at_once_never_become_two(tmp_path: Path) -> None:
    async with spread(tmp_path) as here:
        await here.lose_first()
        kinds = (GroupKind.STREAM, GroupKind.QUEUE, GroupKind.KEY)
        services = [one for one in here.broker.services if one is not None]
        tasks = [
            asyncio.create_task(_tried(services[number % len(services)], kind))
            for number, kind in enumerate(kinds)
        ]
        await here.bring_first_back()
        answers = await asyncio.gather(*tasks)
        assert sum(one is None for one in answers) == 1, answers
        assert {type(one) for one in answers if one is not None} == {AlreadyExists}

        async def is_open_everywhere() -> bool:
            positions = (await here.service.describe_group("workers")).positions
            return len(positions) == PARTITIONS

        await eventually(is_open_everywhere, within_s=WAIT_S, what="it is open everywhere")
        seen = await here.service.groups.looking.look("workers", with_positions=False)
        assert len({one.kind for one in seen}) == 1


@on_a_loop
async def test_what_joins_later_misses_nothing_that_was_published_since(tmp_path: Path) -> None:
    async with spread(tmp_path) as here:
        await joined_once(here, kind=GroupKind.QUEUE)
        # Open everywhere but in partition 0, where it has to be opened when that is back.
        await here.service.groups._wish("workers", "orders", 0, Forget())
        await here.lose_first()
        consumption = await consume(here.service, start=Start(StartAt.LATEST))
        await here.bring_first_back()
        home = service_of(here.broker, here.first - 1)
        await publish(home, [b"since"], partition=0)
        found: list[bytes | None] = []
        while b"since" not in found:
            found += values(await next_of(consumption))
        await consumption.close()


async def _joined(service: Service, *, kind: GroupKind) -> None:
    """Join as soon as that is possible, and leave again."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                consumption = await consume(service, kind=kind)
            except NotLeader:
                await asyncio.sleep(0.05)
            else:
                await consumption.close()
                return


async def _tried(service: Service, kind: GroupKind) -> AngariumError | None:
    """Join as soon as it is known whether that is possible; return why not."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                await consume(service, kind=kind)
            except AngariumError as error:
                if not error.retriable:
                    return error
                await asyncio.sleep(0.05)
            else:
                return None
