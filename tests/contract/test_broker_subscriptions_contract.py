"""One suite for every broker: subscriptions to what was, what comes, and what only passes."""

from __future__ import annotations

import asyncio

import pytest
from tests.contract.brokers import SOON_S, Subject, kept_by_all
from tests.contract.reading_back import batch_of, published, stored, subscribed, values_in

from angarium.api import Interest, Start, StartAt
from angarium.batch import encode
from angarium.errors import AngariumError, InvalidArgument, NotFound
from angarium.modes import DeliveryMode

EARLIEST = Start(StartAt.EARLIEST)
LATEST = Start(StartAt.LATEST)


def at(topic: str, start: Start = EARLIEST, *, partition: int = 0) -> Interest:
    return Interest(topic=topic, partition=partition, start=start)


@kept_by_all
async def test_history_comes_first_and_then_what_is_published(subject: Subject) -> None:
    topic = await subject.topic()
    await stored(subject.broker, topic, b"a", b"b")
    async with subscribed(subject.broker, at(topic)) as taken:
        first = await taken.next()
        assert (first.topic, first.partition, first.from_offset) == (topic, 0, 0)
        assert (first.live, first.expired) == (False, ())
        assert values_in(first.batches) == [b"a", b"b"]
        await stored(subject.broker, topic, b"c")
        second = await taken.next()
        assert (values_in(second.batches), second.from_offset) == ([b"c"], 2)


@kept_by_all
async def test_from_the_end_only_what_comes_is_delivered(subject: Subject) -> None:
    topic = await subject.topic()
    await stored(subject.broker, topic, b"before")
    async with subscribed(subject.broker, at(topic, LATEST)) as taken:
        await stored(subject.broker, topic, b"after")
        assert await taken.values(1) == [b"after"]


@kept_by_all
async def test_a_subscription_begins_at_an_offset_inside_a_batch(subject: Subject) -> None:
    topic = await subject.topic()
    await stored(subject.broker, topic, b"a", b"b", b"c")
    async with subscribed(subject.broker, at(topic, Start(StartAt.OFFSET, 1))) as taken:
        delivery = await taken.next()
    assert delivery.from_offset == 1
    assert values_in(delivery.batches) == [b"a", b"b", b"c"], "batches are whole"
    assert values_in(delivery.batches, from_offset=1) == [b"b", b"c"]


@kept_by_all
async def test_a_subscription_begins_at_a_time(subject: Subject) -> None:
    topic = await subject.topic()
    await stored(subject.broker, topic, b"a")
    await asyncio.sleep(0.002)  # so that the next one has a later time
    ack = await stored(subject.broker, topic, b"b")
    assert ack.append_time is not None
    start = Start(StartAt.TIMESTAMP, ack.append_time)
    async with subscribed(subject.broker, at(topic, start)) as taken:
        assert await taken.values(1) == [b"b"]


@kept_by_all
async def test_a_subscription_has_many_partitions_each_in_order(subject: Subject) -> None:
    one, other = await subject.topic(partitions=2), await subject.topic()
    wanted = [at(one), at(one, partition=1), at(other)]
    found: dict[tuple[str, int], list[bytes | None]] = {}
    async with subscribed(subject.broker, *wanted) as taken:
        for number in range(3):
            for topic, partition in ((one, 0), (one, 1), (other, 0)):
                value = b"%d" % number
                await stored(subject.broker, topic, value, partition=partition)
        while sum(map(len, found.values())) < 9:
            delivery = await taken.next()
            place = (delivery.topic, delivery.partition)
            found.setdefault(place, []).extend(values_in(delivery.batches))
    assert set(found) == {(one, 0), (one, 1), (other, 0)}
    assert all(values == [b"0", b"1", b"2"] for values in found.values())


@kept_by_all
async def test_partitions_are_added_and_dropped(subject: Subject) -> None:
    topic = await subject.topic(partitions=2)
    async with subscribed(subject.broker, at(topic)) as taken:
        await taken.subscription.add([at(topic, LATEST, partition=1)])
        await stored(subject.broker, topic, b"added", partition=1)
        assert await taken.values(1) == [b"added"]
        await taken.subscription.drop(topic, 1)
        await stored(subject.broker, topic, b"dropped", partition=1)
        await stored(subject.broker, topic, b"kept")
        assert await taken.values(1) == [b"kept"]


@kept_by_all
async def test_a_closed_subscription_ends(subject: Subject) -> None:
    topic = await subject.topic()
    async with subscribed(subject.broker, at(topic)) as taken:
        ending = asyncio.create_task(taken.is_over())
        await asyncio.sleep(0)
        await taken.subscription.close()
        assert await ending


@kept_by_all
async def test_what_passes_reaches_whoever_is_there_and_nobody_later(subject: Subject) -> None:
    topic = await subject.topic()
    mode = DeliveryMode.PERFORMANCE
    async with (
        subscribed(subject.broker, at(topic, LATEST)) as one,
        subscribed(subject.broker, at(topic)) as other,
    ):
        (ack,) = await published(subject.broker, topic, batch_of(b"now"), mode=mode)
        assert ack.subscribers == 2
        for taken in (one, other):
            delivery = await taken.next()
            assert (delivery.live, delivery.topic, delivery.partition) == (True, topic, 0)
            assert values_in(delivery.batches) == [b"now"]
    async with subscribed(subject.broker, at(topic)) as later:
        await stored(subject.broker, topic, b"stored")
        assert await later.values(1) == [b"stored"]


@kept_by_all
async def test_who_has_left_is_counted_no_more(subject: Subject) -> None:
    topic = await subject.topic()
    async with subscribed(subject.broker, at(topic, LATEST)):
        pass
    async with asyncio.timeout(SOON_S):
        while True:
            (ack,) = await published(
                subject.broker, topic, batch_of(b"now"), mode=DeliveryMode.PERFORMANCE
            )
            if ack.subscribers == 0:  # the nodes tell each other, which takes a moment
                return


@kept_by_all
async def test_records_that_have_expired_are_no_part_of_a_delivery(subject: Subject) -> None:
    topic = await subject.topic()
    await published(subject.broker, topic, bytes(encode([b"a", b"b"], expires_at=1)))
    async with subscribed(subject.broker, at(topic)) as taken:
        assert (await taken.next()).expired == (0, 2)


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("start", [EARLIEST, LATEST, Start(StartAt.OFFSET, 0)])
@kept_by_all
async def test_nobody_subscribes_to_a_topic_that_is_not_there(
    subject: Subject, start: Start
) -> None:
    with pytest.raises(NotFound) as refused:
        await subject.broker.subscribe([at(subject.fresh(), start)])
    assert refused.value.code == NotFound.code


@pytest.mark.parametrize("start", [EARLIEST, LATEST, Start(StartAt.OFFSET, 0)])
@pytest.mark.parametrize(("partition", "error"), [(1, NotFound), (-1, InvalidArgument)])
@kept_by_all
async def test_nobody_subscribes_to_a_partition_that_is_not_there(
    subject: Subject, partition: int, error: type[AngariumError], start: Start
) -> None:
    topic = await subject.topic()
    with pytest.raises(error) as refused:
        await subject.broker.subscribe([at(topic), at(topic, start, partition=partition)])
    assert refused.value.code == error.code


@kept_by_all
async def test_a_subscription_that_refuses_a_partition_goes_on_as_it_was(
    subject: Subject,
) -> None:
    topic = await subject.topic(partitions=2)
    async with subscribed(subject.broker, at(topic)) as taken:
        with pytest.raises(NotFound):
            await taken.subscription.add([at(topic, partition=1), at(topic, partition=7)])
        await stored(subject.broker, topic, b"not added", partition=1)
        await stored(subject.broker, topic, b"a")
        assert await taken.values(1) == [b"a"]


@kept_by_all
async def test_a_subscription_from_past_the_end_waits_for_its_offset(subject: Subject) -> None:
    topic = await subject.topic()
    await stored(subject.broker, topic, b"0")
    async with subscribed(subject.broker, at(topic, Start(StartAt.OFFSET, 3))) as taken:
        for value in (b"1", b"2", b"3", b"4"):
            await stored(subject.broker, topic, value)
        assert await taken.values(2) == [b"3", b"4"]


@kept_by_all
async def test_no_offset_is_below_0(subject: Subject) -> None:
    topic = await subject.topic()
    start = Start(StartAt.OFFSET, -1)
    with pytest.raises(InvalidArgument):
        await subject.broker.subscribe([at(topic, start)])
    with pytest.raises(InvalidArgument):
        await subject.broker.find_offset(topic, 0, start)
