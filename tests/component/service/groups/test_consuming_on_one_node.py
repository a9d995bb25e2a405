"""Consuming through one node, in process: the whole way from a publish to a committed ack."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
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
    values,
)
from tests.on_a_loop import on_a_loop

from angarium.api import GroupConfig, Held, Settled, Start, StartAt, Verb
from angarium.api.groups import RANGES_MAX
from angarium.errors import (
    AlreadyExists,
    GroupFenced,
    InvalidArgument,
    LimitExceeded,
    NotFound,
)
from angarium.kinds import GroupKind
from angarium.machine.commands import Configure
from angarium.wire.operations.members import GroupWishHeader, SettleFor

if TYPE_CHECKING:
    from pathlib import Path


@on_a_loop
async def test_what_is_published_is_handed_out_and_acknowledged(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b", b"c"])
        consumption = await consume(service)
        assert consumption.kind is GroupKind.QUEUE
        handed = await next_of(consumption)
        assert values(handed) == [b"a", b"b", b"c"]
        assert handed.attempt == 1
        (settled,) = await settle(consumption, said(handed))
        assert (settled.records, settled.code) == (3, "")
        info = await service.describe_group("workers")
        assert info.positions[0].floor == 3
        assert info.lag == 0
        await publish(service, [b"d"])
        assert values(await next_of(consumption)) == [b"d"]
        await consumption.close()


@on_a_loop
async def test_a_nacked_record_comes_again_with_the_next_attempt_and_blocks_nobody(
    tmp_path: Path,
) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b", b"c"])
        consumption = await consume(service, config=GroupConfig(backoff_min_ms=10))
        await next_of(consumption)
        done, failed = await settle(
            consumption, about(0, 2), about(1, verb=Verb.NACK, reason="no luck")
        )
        assert (done.records, failed.records) == (2, 1)
        assert await floor_of(service) == 1
        again = await next_of(consumption)
        assert (offsets(again), again.attempt) == ([1], 2)
        await settle(consumption, said(again))
        assert await floor_of(service) == 3
        await consumption.close()


@on_a_loop
async def test_what_is_released_comes_again_as_the_same_attempt(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b"])
        consumption = await consume(service)
        handed = await next_of(consumption)
        await settle(consumption, said(handed, Verb.RELEASE))
        again = await next_of(consumption)
        assert (offsets(again), again.attempt) == ([0, 1], 1)
        await consumption.close()


@on_a_loop
async def test_a_lease_that_ends_is_a_failed_attempt_unless_it_is_extended(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b"])
        config = GroupConfig(ack_timeout_ms=2_000, backoff_min_ms=0, backoff_max_ms=1)
        consumption = await consume(service, config=config)
        await next_of(consumption)
        (extended,) = await settle(consumption, about(1, verb=Verb.EXTEND, delay_ms=60_000))
        assert extended.records == 1
        again = await next_of(consumption)
        assert (offsets(again), again.attempt) == ([0], 2)
        done = await settle(consumption, about(1), said(again))
        assert [one.records for one in done] == [1, 1]
        await consumption.close()


@on_a_loop
async def test_members_of_a_queue_share_the_records_and_two_groups_each_get_all(
    tmp_path: Path,
) -> None:
    async with one_topic(tmp_path) as service:
        first = await consume(service, credit=50)
        second = await consume(service, credit=50)
        other = await consume(service, group="audit", credit=1_000)
        for _ in range(10):
            await publish(service, [b"x"] * 10)
        mine, yours = await next_of(first), await next_of(second)
        assert not set(offsets(mine)) & set(offsets(yours))
        seen: set[int] = set()
        while len(seen) < 100:
            seen |= set(offsets(await next_of(other)))
        for one in (first, second, other):
            await one.close()


@on_a_loop
async def test_credit_bounds_what_is_on_loan(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"x"] * 20)
        consumption = await consume(service, credit=3)
        handed = await next_of(consumption)
        assert offsets(handed) == [0, 1, 2]
        assert await is_quiet(consumption)
        await settle(consumption, about(1))
        assert offsets(await next_of(consumption)) == [3]
        await consumption.set_credit(6)
        assert offsets(await next_of(consumption)) == [4, 5, 6]
        await consumption.close()


@on_a_loop
async def test_a_consumer_that_leaves_gives_its_records_back_untried(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b"])
        first = await consume(service)
        await next_of(first)
        second = await consume(service)
        assert await is_quiet(second)
        await first.close()
        handed = await next_of(second)
        assert (offsets(handed), handed.attempt) == ([0, 1], 1)
        await second.close()


@on_a_loop
async def test_a_consumer_that_is_lost_has_failed_with_what_it_had(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b"])
        first = await consume(service, config=GroupConfig(backoff_min_ms=1))
        await next_of(first)
        second = await consume(service)
        await first.close(lost=True)
        handed = await next_of(second)
        assert handed.attempt == 2
        await second.close()


@on_a_loop
async def test_a_member_that_comes_again_keeps_what_it_holds(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b", b"c"])
        first = await consume(service, member="me")
        await next_of(first)
        await first.close(lost=True)
        held = (Held("orders", 0, (0, 2), 1),)
        again = await consume(service, member="me", held=held)
        with pytest.raises(GroupFenced):
            await next_of(first)
        (settled,) = await settle(again, about(0, 1))
        assert settled.records == 2
        handed = await next_of(again)
        assert (offsets(handed), handed.attempt) == ([2], 2)
        await again.close()


@on_a_loop
async def test_nobody_settles_what_another_holds(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b"])
        holder, stranger = await consume(service), await consume(service)
        handed = await next_of(holder)
        (refused,) = await settle(stranger, said(handed))
        assert (refused.records, refused.code) == (0, "GROUP_FENCED")
        assert await floor_of(service) == 0
        (elsewhere,) = await settle(holder, about(0, partition=7))
        assert elsewhere.code == "INVALID_ARGUMENT"
        assert (await settle(holder, said(handed)))[0].records == 2
        # Saying it again is harmless.
        assert (await settle(holder, said(handed)))[0] == Settled(0)
        await holder.close()
        await stranger.close()


@on_a_loop
async def test_settling_for_a_member_works_without_its_connection(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"a", b"b"])
        consumption = await consume(service, member="me", credit=2)
        handed = await next_of(consumption)
        wishes = service.groups.wishes
        done = await wishes.grant(
            GroupWishHeader("workers", "orders", 0, SettleFor("me", (said(handed),)))
        )
        assert done.settled[0].records == 2
        foreign = await service.settle("workers", "nobody", [said(handed)])
        assert foreign[0].code == "GROUP_FENCED"
        await consumption.close()


@on_a_loop
async def test_another_kind_is_refused_and_the_own_settings_stay(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        consumption = await consume(
            service, kind=GroupKind.STREAM, config=GroupConfig(max_attempts=9)
        )
        with pytest.raises(AlreadyExists):
            await consume(service, kind=GroupKind.QUEUE)
        second = await consume(service, config=GroupConfig(max_attempts=2))
        assert second.kind is GroupKind.STREAM
        assert second.config.max_attempts == 9
        await consumption.close()
        await second.close()


@on_a_loop
async def test_a_stream_group_hands_a_partition_to_one_member_in_order(tmp_path: Path) -> None:
    async with one_topic(tmp_path, partitions=4) as service:
        first = await consume(service, kind=GroupKind.STREAM, credit=400)
        second = await consume(service, credit=400)
        for partition in range(4):
            await publish(service, [b"x"] * 10, partition=partition)
        owned: dict[int, set[int]] = {1: set(), 2: set()}
        for number, one in ((1, first), (2, second)):
            for handed in await collect(one, 20):
                owned[number].add(handed.partition)
        assert owned[1] | owned[2] == {0, 1, 2, 3}
        assert len(owned[1]) == len(owned[2]) == 2
        info = await service.describe_group("workers")
        assert {len(member.partitions) for member in info.members} == {2}
        await first.close()
        for handed in await collect(second, 20):
            assert handed.partition in owned[1]
        await second.close()


@on_a_loop
async def test_a_stream_group_comes_again_from_where_it_failed(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"x"] * 10)
        config = GroupConfig(backoff_min_ms=1)
        consumption = await consume(service, kind=GroupKind.STREAM, config=config)
        await next_of(consumption)
        await settle(consumption, about(3, cumulative=True))
        assert await floor_of(service) == 4
        await settle(consumption, about(6, verb=Verb.NACK))
        again = await collect(consumption, 4)
        assert [offset for one in again for offset in offsets(one)] == [6, 7, 8, 9]
        assert again[0].attempt == 2
        await consumption.close()


@on_a_loop
async def test_a_key_has_one_record_at_a_time_with_one_member(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        for key in (b"k", b"l"):
            await publish(service, [b"x"] * 5, key=key)
        config = GroupConfig(backoff_min_ms=1)
        consumption = await consume(service, kind=GroupKind.KEY, config=config)
        done: list[int] = []
        while len(done) < 10:
            handed = await next_of(consumption)
            await settle(consumption, said(handed))
            done += offsets(handed)
        for start in (0, 5):
            assert [one for one in done if start <= one < start + 5] == list(
                range(start, start + 5)
            )
        await consumption.close()


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (Start(StartAt.EARLIEST), 0),
        (Start(StartAt.OFFSET, 2), 2),
        (Start(StartAt.OFFSET, 99), 3),
        (Start(StartAt.LATEST), 3),
    ],
)
def test_a_new_group_begins_where_it_is_told(tmp_path: Path, start: Start, first: int) -> None:
    @on_a_loop
    async def begin() -> None:
        async with one_topic(tmp_path) as service:
            await publish(service, [b"a", b"b", b"c"])
            consumption = await consume(service, start=start)
            assert await floor_of(service) == first
            await publish(service, [b"d"])
            assert offsets(await next_of(consumption))[0] == first
            await consumption.close()

    begin()


@on_a_loop
async def test_a_topic_that_gets_more_partitions_is_followed(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        consumption = await consume(service)
        await service.alter_topic("orders", partitions=3, config=None)
        await publish(service, [b"new"], partition=2)
        handed = await next_of(consumption)
        assert handed.partition == 2
        await consumption.close()


@on_a_loop
async def test_a_topic_that_is_not_there_cannot_be_consumed(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        with pytest.raises(NotFound):
            await consume(service, topics=("nothing",))


@on_a_loop
async def test_at_its_bounds_a_group_says_which_one_it_is(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        led = service.groups.host.partition("orders", 0)
        limits = replace(led.replica.partition.machine.limits, members_max=1, groups_max=1)
        configured: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        led.replica.partition.submit(
            Configure(limits=limits),
            now=service.groups.host.around.now(),
            reply=configured.set_result,
        )
        led.replica.process()
        service.groups.host.around.carry_on()
        await configured
        consumption = await consume(service)
        with pytest.raises(LimitExceeded, match="members_max"):
            await consume(service)
        with pytest.raises(LimitExceeded, match="groups_max"):
            await consume(service, group="another")
        with pytest.raises(InvalidArgument, match="credit"):
            await consume(service, credit=0)
        many = about(*range(0, 4 * RANGES_MAX, 2))
        (refused,) = await settle(consumption, many)
        assert refused.code == "TOO_LARGE"
        assert "RANGES_MAX" in refused.message
        await consumption.close()


@on_a_loop
async def test_a_group_that_nobody_needs_takes_no_memory(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"x"])
        for number in range(3):
            consumption = await consume(service, group=f"g{number}")
            await next_of(consumption)
            await consumption.close()
        led = service.groups.host.partition("orders", 0)
        async with asyncio.timeout(WAIT_S):
            while led.groups:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert len(led.replica.partition.machine.groups.by_name) == 3
