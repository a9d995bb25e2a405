"""Groups seen and changed from outside: list, describe, seek, pause, delete, checkpoints."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.service.groups.consuming import (
    WAIT_S,
    about,
    collect,
    consume,
    floor_of,
    is_quiet,
    next_of,
    offsets,
    one_topic,
    publish,
    said,
    settle,
)
from tests.on_a_loop import on_a_loop

from angarium.api import Checkpoint, GroupConfig, Start, StartAt, TopicConfig, Verb
from angarium.errors import (
    AlreadyExists,
    GroupFenced,
    InvalidArgument,
    NotFound,
    OffsetOutOfRange,
    PreconditionFailed,
)
from angarium.ids import Offset
from angarium.kinds import Behind, GroupKind
from angarium.machine import Trim
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.api import Moved
    from angarium.service.broker import Service


@on_a_loop
async def test_a_group_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        start = Start(StartAt.EARLIEST)
        for asked in (
            service.describe_group("nobody"),
            service.alter_group("nobody", GroupConfig()),
            service.pause_group("nobody", paused=True),
            service.delete_group("nobody", topic=None),
            service.seek_group("nobody", topic=None, partition=None, start=start, dry_run=True),
        ):
            with pytest.raises(NotFound):
                await asked
        assert await service.list_groups() == ()


@on_a_loop
async def test_a_description_shows_members_positions_and_lag(tmp_path: Path) -> None:
    async with one_topic(tmp_path, partitions=2) as service:
        consumption = await consume(service, member="me")
        await publish(service, [b"x"] * 10)
        await next_of(consumption)
        config = about(3, verb=Verb.NACK, delay_ms=60_000)
        await settle(consumption, about(0, 1, 7), config)
        (listed,) = await service.list_groups()
        assert (listed.name, listed.kind, listed.positions) == ("workers", GroupKind.QUEUE, ())
        assert (listed.lag, listed.lag_ms) == (7, None)
        info = await service.describe_group("workers")
        (member,) = info.members
        assert (member.name, member.pending) == ("me", 6)
        assert member.partitions == (("orders", 0), ("orders", 1))
        first, second = info.positions
        assert (first.floor, first.end_offset, first.acked_above) == (2, 10, 1)
        assert (first.lag, first.pending, first.retrying) == (7, 6, 1)
        assert 0 <= first.lag_ms < 60_000
        assert (second.lag, second.lag_ms) == (0, 0)
        assert info.lag == 7
        assert first.waits_for == "another attempt at record 3"
        assert 0 < (first.waits_until or 0) - service.groups.host.around.now() <= 60_000_000
        assert (second.waits_for, second.waits_until) == ("", None)
        await consumption.close()
        # Without members it is told from the log alone.
        (first, _) = (await service.describe_group("workers")).positions
        assert first.waits_for == "another attempt at record 3"
        assert 0 < (first.waits_until or 0) - service.groups.host.around.now() <= 60_000_000


@on_a_loop
async def test_a_seek_moves_the_group_and_fences_what_is_on_loan(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"x"] * 10)
        consumption = await consume(service, credit=100)
        handed = await next_of(consumption)
        await settle(consumption, about(*range(8)))
        start = Start(StartAt.OFFSET, 5)

        async def seek(*, dry_run: bool) -> Moved:
            (moved,) = await service.seek_group(
                "workers", topic=None, partition=None, start=start, dry_run=dry_run
            )
            return moved

        would = await seek(dry_run=True)
        assert (would.old_floor, would.new_floor) == (8, 5)
        assert await floor_of(service) == 8
        assert await seek(dry_run=False) == would
        assert await floor_of(service) == 5
        (fenced,) = await settle(consumption, about(9, generation=handed.generation))
        assert fenced.code == GroupFenced.code
        again = await collect(consumption, 5)
        assert [offset for one in again for offset in offsets(one)] == [5, 6, 7, 8, 9]
        assert again[0].generation != handed.generation
        done = await settle(consumption, *(said(one) for one in again))
        assert sum(one.records for one in done) == 5
        with pytest.raises(NotFound):
            await service.seek_group(
                "workers", topic="others", partition=None, start=start, dry_run=False
            )
        with pytest.raises(InvalidArgument):
            await service.seek_group("workers", topic=None, partition=0, start=start, dry_run=False)
        await consumption.close()


@on_a_loop
async def test_a_paused_group_is_handed_nothing_until_it_goes_on(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        consumption = await consume(service)
        await service.pause_group("workers", paused=True)
        assert (await service.describe_group("workers")).paused
        await publish(service, [b"x"])
        assert await is_quiet(consumption)
        await service.pause_group("workers", paused=False)
        assert offsets(await next_of(consumption)) == [0]
        await consumption.close()


@on_a_loop
async def test_a_group_is_not_deleted_while_somebody_takes_part(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        consumption = await consume(service)
        with pytest.raises(PreconditionFailed, match="has members"):
            await service.delete_group("workers", topic=None)
        await consumption.close()
        async with asyncio.timeout(WAIT_S):
            while (await service.describe_group("workers")).members:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await service.delete_group("workers", topic=None)
        with pytest.raises(NotFound):
            await service.describe_group("workers")
        anew = await consume(service, kind=GroupKind.STREAM)
        assert anew.kind is GroupKind.STREAM
        await anew.close()


@on_a_loop
async def test_other_settings_hold_from_then_on(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        consumption = await consume(service)
        config = GroupConfig(max_attempts=2, ack_timeout_ms=1_234)
        assert (await service.alter_group("workers", config)).config == config
        await publish(service, [b"x"])
        assert (await next_of(consumption)).lease_ms <= 1_234
        with pytest.raises(InvalidArgument, match="max_attempts"):
            await service.alter_group("workers", GroupConfig(max_attempts=0))
        await consumption.close()


@on_a_loop
async def test_checkpoints_are_kept_and_shown(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"x"] * 10)
        await service.report_checkpoints("spark", [Checkpoint("orders", 0, Offset(4))])
        info = await service.describe_group("spark")
        assert (info.kind, info.lag) == (GroupKind.CHECKPOINT, 6)
        await service.report_checkpoints("spark", [Checkpoint("orders", 0, Offset(9))])
        assert (await service.describe_group("spark")).lag == 1
        with pytest.raises(AlreadyExists):
            await consume(service, group="spark", kind=GroupKind.QUEUE)
        with pytest.raises(InvalidArgument):
            await consume(service, group="spark", kind=GroupKind.CHECKPOINT)


async def trim(service: Service, offset: int) -> None:
    replica = service.groups.host.partition("orders", 0).replica
    applied: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    replica.partition.submit(
        Trim(start_offset=Offset(offset)),
        now=service.groups.host.around.now(),
        reply=applied.set_result,
    )
    replica.process()
    service.groups.host.around.carry_on()
    async with asyncio.timeout(WAIT_S):
        await applied


@on_a_loop
async def test_a_group_that_fell_behind_is_told_so(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        consumption = await consume(service, credit=1)
        await publish(service, [b"x"] * 10)
        await next_of(consumption)
        await trim(service, 6)
        with pytest.raises(OffsetOutOfRange):
            await next_of(consumption)
        (position,) = (await service.describe_group("workers")).positions
        assert (position.is_behind, position.floor, position.lag) == (True, 0, 4)


@on_a_loop
async def test_a_group_that_fell_behind_jumps_if_it_wants_to(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        consumption = await consume(service, credit=1, config=GroupConfig(behind=Behind.JUMP))
        await publish(service, [b"x"] * 10)
        handed = await next_of(consumption)
        await trim(service, 6)
        await settle(consumption, said(handed))
        assert offsets(await next_of(consumption)) == [6]
        assert await floor_of(service) == 6
        await consumption.close()


@on_a_loop
async def test_thousands_of_groups_are_listed_and_slow_nobody_down(tmp_path: Path) -> None:
    async with in_process_broker(tmp_path, nodes=2) as broker:
        first, second = broker.services
        assert first is not None
        assert second is not None
        await first.create_topic("orders", partitions=1, config=TopicConfig(replication=1))
        for start in range(0, 3_000, 500):
            await asyncio.gather(
                *(
                    first.report_checkpoints(f"g{at}", [Checkpoint("orders", 0, Offset(0))])
                    for at in range(start, start + 500)
                )
            )
        for service in (first, second):
            assert len(await service.list_groups()) == 3_000
        consumption = await consume(second)
        await publish(second, [b"x"] * 100)
        done = 0
        while done < 100:
            handed = await next_of(consumption)
            (settled,) = await settle(consumption, said(handed))
            done += settled.records
        await consumption.close()
