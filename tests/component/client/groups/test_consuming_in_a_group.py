"""Consuming in a group: records come, and what is said about them is carried out."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.component.client.groups.fake_group import GROUP, grouped, grouped_elsewhere

from angarium.api import GroupConfig, Settled, Verb
from angarium.errors import GroupFenced, InvalidArgument, NotFound, OutcomeUnknown
from angarium.kinds import GroupKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.component.client.groups.fake_group import FakeGroup
    from tests.component.wire.running import Runner

    from angarium.client import Client, Consumer, GroupRecord

QUICK_LEASE = GroupConfig(ack_timeout_ms=300)


async def published(client: Client, count: int, *, partition: int = 0) -> None:
    await client.publish_batch("t", [b"%d" % n for n in range(count)], partition=partition)


@asynccontextmanager
async def consuming(count: int, **choices: Any) -> AsyncIterator[tuple[FakeGroup, Consumer]]:
    """A group, its only consumer, and so many records for it."""
    async with grouped(**choices) as (group, client):
        await published(client, count)
        async with client.group(GROUP).consume("t") as consumer:
            yield group, consumer


async def taken(consumer: Consumer, count: int, *, within_s: float = 60.0) -> list[GroupRecord]:
    records: list[GroupRecord] = []
    async with asyncio.timeout(within_s):
        async for record in consumer:
            records.append(record)
            if len(records) == count:
                break
    return records


# --- acknowledging --------------------------------------------------------------------------------


def test_records_come_and_an_awaited_ack_is_committed(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 3)
            async with client.group(GROUP).consume("t") as consumer:
                seen = []
                async for record in consumer:
                    seen.append((record.topic, record.offset, record.value, record.attempt))
                    await record.ack()
                    assert record.offset in group.offsets()
                    if len(seen) == 3:
                        break
            assert seen == [("t", n, b"%d" % n, 1) for n in range(3)]

    run(story())


def test_many_acks_travel_in_few_frames(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 2_000)
            async with client.group(GROUP).consume("t", credit=500) as consumer:
                for _ in range(4):
                    for record in await taken(consumer, 500):
                        record.ack_nowait()
                await consumer.flush()
                assert group.offsets() == list(range(2_000))
                assert len(group.frames) < 50

    run(story())


def test_acks_awaited_by_many_tasks_share_frames(run: Runner) -> None:
    async def story() -> None:
        async with consuming(300) as (group, consumer):
            records = await taken(consumer, 300)
            await asyncio.gather(*(record.ack() for record in records))
            assert group.offsets() == list(range(300))
            assert len(group.frames) < 30

    run(story())


def test_saying_it_twice_changes_nothing(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 1)
            async with client.group(GROUP).consume("t") as consumer:
                (record,) = await taken(consumer, 1)
                await record.ack()
                await record.ack()
                await record.nack()
                record.ack_nowait()
                await consumer.flush()
            assert sum(len(frame.settlements) for frame in group.frames) == 1

    run(story())


def test_automatic_acks_follow_the_loop(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 5)
            async with client.group(GROUP).consume("t", ack="auto") as consumer:
                async for record in consumer:
                    if record.offset == 3:
                        break
            assert group.offsets() == [0, 1, 2, 3]

    run(story())


def test_an_exception_gives_the_record_back_as_failed(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 2)

            async def work() -> None:
                async with client.group(GROUP).consume("t", ack="auto") as consumer:
                    async for record in consumer:
                        if record.offset == 1:
                            raise ValueError("bad order")

            with pytest.raises(ValueError, match="bad order"):
                await work()
            assert group.offsets() == [0]
            assert group.reasons == ["ValueError: bad order"]

    run(story())


# --- other words ----------------------------------------------------------------------------------


def test_a_nack_brings_the_record_again_with_the_next_attempt(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 1)
            async with client.group(GROUP).consume("t") as consumer:
                (record,) = await taken(consumer, 1)
                await record.nack(delay=timedelta(seconds=1.5), reason="no teapot")
                (record,) = await taken(consumer, 1)
                assert record.attempt == 2
                await record.release()
                (record,) = await taken(consumer, 1)
                assert record.attempt == 2
                await record.ack()
            assert group.reasons == ["no teapot"]
            assert group.delays == [1500]

    run(story())


def test_in_a_stream_what_lies_behind_a_failed_record_is_out_of_hand(run: Runner) -> None:
    async def story() -> None:
        async with grouped(kind=GroupKind.STREAM) as (group, client):
            await published(client, 100)
            order = []
            async with client.group(GROUP).consume("t") as consumer, asyncio.timeout(60):
                async for record in consumer:
                    order.append(record.offset)
                    if record.offset == 7 and record.attempt == 1:
                        await record.nack()
                    else:
                        record.ack_nowait()
                    if record.offset == 99:
                        break
                await consumer.flush()
            assert order == [*range(8), *range(7, 100)]
            assert group.offsets() == list(range(100))

    run(story())


def test_a_stream_acknowledges_through(run: Runner) -> None:
    async def story() -> None:
        async with grouped(kind=GroupKind.STREAM) as (group, client):
            await published(client, 50)
            group.records_per_delivery = 20
            async with client.group(GROUP, kind="stream").consume("t") as consumer:
                records = await taken(consumer, 45)
                await records[41].ack_through()
                assert group.offsets() == list(range(42))

    run(story())


def test_a_queue_does_not_acknowledge_through(run: Runner) -> None:
    async def story() -> None:
        async with consuming(1) as (_, consumer):
            (record,) = await taken(consumer, 1)
            with pytest.raises(InvalidArgument, match="stream group"):
                await record.ack_through()

    run(story())


# --- batches --------------------------------------------------------------------------------------


def test_a_batch_is_settled_whole_or_in_parts(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 20)
            group.records_per_delivery = 10
            async with client.group(GROUP).consume("t") as consumer:
                batches = consumer.batches()
                first = await anext(batches)
                assert first.values() == [b"%d" % n for n in range(10)]
                await first.ack()
                second = await anext(batches)
                await second.ack(offsets=[11, 13])
                assert [record.offset for record in second] == [10, 12, *range(14, 20)]
                await second.nack(reason="half of it", offsets=[10])
                third = await anext(batches)
                assert third.attempt == 2
                assert third.offsets() == [10]
            assert group.offsets() == [*range(10), 11, 13]
            assert group.frames[0].settlements[0].ranges == (0, 10)

    run(story())


def test_a_batch_becomes_an_arrow_table(run: Runner) -> None:
    pytest.importorskip("pyarrow")

    async def story() -> None:
        async with grouped() as (_, client):
            await published(client, 4)
            await published(client, 4)
            async with client.group(GROUP).consume("t") as consumer, asyncio.timeout(60):
                seen: list[Any] = []
                async for batch, table in consumer.arrow():
                    seen += table.column("offset").to_pylist()
                    batch.ack_nowait()
                    if len(seen) == 8:
                        break
                assert seen == list(range(8))

    run(story())


def test_batches_can_be_had_without_a_consumer_in_between(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 12)
            async for batch in client.group(GROUP).consume_batches("t"):
                await batch.ack()
                if group.offsets() == list(range(12)):
                    break

    run(story())


# --- leases ---------------------------------------------------------------------------------------


def test_a_handler_that_computes_keeps_its_records(run: Runner) -> None:
    async def story() -> None:
        # A lease that is short, and long enough for a machine that has other things to do.
        async with grouped_elsewhere(config=GroupConfig(ack_timeout_ms=3_000)) as (group, client):
            await published(client, 20)
            async with client.group(GROUP).consume("t") as consumer:
                (record, *_) = await taken(consumer, 1)
                end = time.monotonic() + 3.8  # more than a lease
                while time.monotonic() < end:
                    sum(range(1_000))
                await record.ack()
                records = await taken(consumer, 19)
                assert {one.attempt for one in records} == {1}
            assert group.handed == 20

    run(story())


def test_nothing_is_renewed_for_ever(run: Runner) -> None:
    async def story() -> None:
        async with grouped(config=QUICK_LEASE) as (_, client):
            await published(client, 1)
            async with client.group(GROUP).consume("t", keep_s=0.1) as consumer:
                (record,) = await taken(consumer, 1)
                (again,) = await taken(consumer, 1)
                assert (record.attempt, again.attempt) == (1, 2)
                await again.ack()

    run(story())


def test_a_lease_that_was_extended_is_not_cut_short(run: Runner) -> None:
    async def story() -> None:
        async with consuming(2, config=QUICK_LEASE) as (group, consumer):
            first, _ = await taken(consumer, 2)
            await first.extend(60)
            lease = group.leases["t", 0, 0]
            ends = [lease.ends]

            def is_renewed() -> bool:
                extends = [
                    one
                    for frame in group.frames
                    for one in frame.settlements
                    if one.verb is Verb.EXTEND and one.delay_ms is None
                ]
                return len(extends) > 2

            await group.until(is_renewed)
            assert [group.leases["t", 0, 0].ends] == ends

    run(story())


# --- refusals -------------------------------------------------------------------------------------


def test_an_ack_for_a_lost_lease_is_refused(run: Runner) -> None:
    async def story() -> None:
        async with consuming(3) as (group, consumer):
            records = await taken(consumer, 3)
            group.leases["t", 0, 1].member = "another"
            results = await asyncio.gather(
                *(record.ack() for record in records), return_exceptions=True
            )
            assert [type(one) for one in results] == [type(None), GroupFenced, type(None)]
            assert group.offsets() == [0, 2]

    run(story())


def test_flush_tells_what_nobody_waited_for(run: Runner) -> None:
    async def story() -> None:
        async with consuming(3) as (group, consumer):
            records = await taken(consumer, 3)
            group.leases["t", 0, 1].member = "another"
            for record in records:
                record.ack_nowait()
            with pytest.raises(GroupFenced) as caught:
                await consumer.flush()
            assert caught.value.__notes__ == ["1 settlements were refused since the last flush"]
            await consumer.flush()
            assert group.offsets() == [0, 2]

    run(story())


def test_a_refusal_that_passes_is_tried_again(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 1)
            group.refusals = [Settled(0, "NOT_LEADER", "a moment please")] * 3
            async with client.group(GROUP).consume("t") as consumer:
                (record,) = await taken(consumer, 1)
                await record.ack()
                assert group.offsets() == [0]

    run(story())


def test_an_answer_that_never_comes_is_called_unknown(run: Runner) -> None:
    async def story() -> None:
        async with grouped(request_timeout_s=3, close_timeout_s=0.1, config=QUICK_LEASE) as (
            group,
            client,
        ):
            await published(client, 1)
            group.holds_answers = True
            async with client.group(GROUP).consume("t") as consumer:
                (record,) = await taken(consumer, 1)
                with pytest.raises(OutcomeUnknown, match="t/0"):
                    await record.ack()

    run(story())


def test_a_group_of_a_topic_that_is_not_there_cannot_be_joined(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (_, client):
            with pytest.raises(NotFound, match="nowhere"):
                await client.group(GROUP).consume("nowhere").begin()

    run(story())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"credit": 0}, "credit"),
        ({"ack": "perhaps"}, "perhaps"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(
    run: Runner,
    words: dict[str, Any],
    complaint: str,
) -> None:
    async def story() -> None:
        async with grouped() as (_, client):
            with pytest.raises(InvalidArgument, match=complaint):
                client.group(GROUP).consume("t", **words)
            with pytest.raises(InvalidArgument, match="at least one topic"):
                client.group(GROUP).consume()
            with pytest.raises(InvalidArgument, match="not a kind"):
                client.group(GROUP, kind="pile")

    run(story())


# --- failures -------------------------------------------------------------------------------------


def test_a_consumer_goes_on_at_another_node_with_what_it_holds(run: Runner) -> None:
    async def story() -> None:
        async with grouped(nodes=2) as (group, client):
            await published(client, 30)
            async with client.group(GROUP).consume("t", credit=10) as consumer:
                records = await taken(consumer, 10)
                name = consumer.member
                records[0].ack_nowait()
                await consumer.flush()
                # The one that its credit is free for is here, too: none is lost on its way.
                records += await taken(consumer, 1)
                for node in group.cluster.nodes:
                    node.cut()
                await group.until(lambda: len(group.opened) == 2)
                again = group.opened[1]
                assert again.member == name
                assert max(one.ranges[-1] for one in again.held) == 11
                await asyncio.gather(*(record.ack() for record in records))
                for _ in range(19):
                    (record,) = await taken(consumer, 1)
                    assert record.attempt == 1
                    record.ack_nowait()
            assert group.offsets() == list(range(30))
            assert group.handed == 30

    run(story())


def test_what_was_said_and_not_answered_is_said_again(run: Runner) -> None:
    async def story() -> None:
        async with grouped(nodes=2) as (group, client):
            await published(client, 10)
            async with client.group(GROUP).consume("t", credit=10) as consumer:
                records = await taken(consumer, 10)
                group.holds_answers = True
                acks = asyncio.gather(*(record.ack() for record in records[:5]))
                await group.until(lambda: group.frames)
                group.holds_answers = False
                for node in group.cluster.nodes:
                    node.cut()
                await acks
                assert group.offsets() == list(range(5))

    run(story())


def test_a_consumer_whose_name_is_taken_ends(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (_, client):
            first = client.group(GROUP).consume("t", member="me")
            await first.begin()
            async with client.group(GROUP).consume("t", member="me"):
                with pytest.raises(GroupFenced):
                    await taken(first, 1)
            await first.close()

    run(story())


def test_closing_sends_what_was_said_and_gives_back_the_rest(run: Runner) -> None:
    async def story() -> None:
        async with grouped() as (group, client):
            await published(client, 10)
            async with client.group(GROUP).consume("t") as consumer:
                for record in (await taken(consumer, 10))[:4]:
                    record.ack_nowait()
            assert group.offsets() == [0, 1, 2, 3]
            await group.until(lambda: not group.leases and not group.members)

    run(story())
