"""One suite for every broker: records that are published, and read by offset and by time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.contract.brokers import SOON_S, Subject, kept_by_all
from tests.contract.reading_back import batch_of, fetched, history, published, stored, values_in

from angarium.api import Start, StartAt, TopicConfig
from angarium.api.transactions import HOMES_TOPIC
from angarium.batch import encode, stamp
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    InvalidBatch,
    KeyReused,
    NotFound,
    OffsetOutOfRange,
    ProducerFenced,
    SequenceGap,
    TooLarge,
)
from angarium.ids import Micros, Offset, Sequence, Term
from angarium.machine.keys import identity_of
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import Producer

SMALL = TopicConfig(batch_bytes_max=1 << 10)


# --- the three modes -----------------------------------------------------------------------------


@kept_by_all
async def test_a_consistent_publish_is_stored_where_its_answers_say(subject: Subject) -> None:
    topic = await subject.topic()
    batches = (batch_of(b"a", b"b"), batch_of(b"c"))
    first, second = await published(subject.broker, topic, *batches, mode=DeliveryMode.CONSISTENT)
    assert (first.base_offset, first.next_offset) == (0, 2)
    assert (second.base_offset, second.next_offset) == (2, 3)
    for ack in (first, second):
        assert (ack.topic, ack.partition, ack.mode) == (topic, 0, DeliveryMode.CONSISTENT)
        assert (ack.provisional, ack.duplicate, ack.code) == (False, False, "")
        assert ack.append_time
        assert ack.term
    assert await history(subject.broker, topic) == [b"a", b"b", b"c"]


@kept_by_all
async def test_an_eventual_publish_says_that_its_offset_is_provisional(subject: Subject) -> None:
    topic = await subject.topic()
    (ack,) = await published(subject.broker, topic, batch_of(b"a"), mode=DeliveryMode.EVENTUAL)
    assert (ack.base_offset, ack.next_offset, ack.provisional) == (0, 1, True)
    assert ack.mode is DeliveryMode.EVENTUAL
    assert ack.term
    result = await fetched(subject.broker, topic, wait_ms=int(SOON_S * 1_000), fresh=True)
    assert values_in(result.batches) == [b"a"]


@kept_by_all
async def test_a_performance_publish_is_stored_nowhere(subject: Subject) -> None:
    topic = await subject.topic()
    performance = DeliveryMode.PERFORMANCE
    first, second = await published(
        subject.broker, topic, batch_of(b"a"), batch_of(b"b"), mode=performance
    )
    assert (first.mode, first.base_offset, first.next_offset) == (performance, None, None)
    assert first.subscribers == 0
    assert first.id
    assert first.id != second.id, "each has an id of its own"
    assert first.term
    assert await history(subject.broker, topic) == []


@kept_by_all
async def test_who_names_no_mode_gets_the_topics_own(subject: Subject) -> None:
    topic = await subject.topic(config=TopicConfig(mode=DeliveryMode.EVENTUAL))
    (ack,) = await published(subject.broker, topic, batch_of(b"a"))
    assert (ack.mode, ack.provisional) == (DeliveryMode.EVENTUAL, True)


@kept_by_all
async def test_partitions_count_on_their_own(subject: Subject) -> None:
    topic = await subject.topic(partitions=2)
    one = await stored(subject.broker, topic, b"a", b"b")
    other = await stored(subject.broker, topic, b"c", partition=1)
    assert (one.base_offset, other.base_offset, other.partition) == (0, 0, 1)
    result = await fetched(subject.broker, topic, partition=1, fresh=True)
    assert values_in(result.batches) == [b"c"]


@kept_by_all
async def test_a_topic_that_is_not_there_is_made_by_a_publish(subject: Subject) -> None:
    topic = subject.fresh()
    assert (await stored(subject.broker, topic, b"a")).base_offset == 0
    assert len((await subject.broker.describe_topic(topic)).partitions) == 1
    assert await history(subject.broker, topic) == [b"a"]


# --- once ----------------------------------------------------------------------------------------


def numbered(producer: Producer, sequence: int, *values: bytes) -> bytes:
    return bytes(
        encode(
            list(values),
            producer_id=producer.id,
            epoch=producer.epoch,
            sequence=Sequence(sequence),
        )
    )


@kept_by_all
async def test_a_batch_that_comes_again_is_answered_with_its_first_place(subject: Subject) -> None:
    topic = await subject.topic()
    producer = await subject.broker.open_producer()
    batch = numbered(producer, 0, b"a", b"b")
    (first,) = await published(subject.broker, topic, batch)
    (next_one,) = await published(subject.broker, topic, numbered(producer, 2, b"c"))
    (again,) = await published(subject.broker, topic, batch)
    assert (first.duplicate, next_one.duplicate, again.duplicate) == (False, False, True)
    assert (again.base_offset, again.next_offset) == (first.base_offset, first.next_offset)
    assert await history(subject.broker, topic) == [b"a", b"b", b"c"]


@kept_by_all
async def test_a_gap_in_a_producers_sequence_is_refused_and_its_neighbours_are_not(
    subject: Subject,
) -> None:
    topic = await subject.topic()
    producer = await subject.broker.open_producer()
    batches = (numbered(producer, 0, b"a"), numbered(producer, 5, b"x"), batch_of(b"b"))
    first, gap, other = await published(subject.broker, topic, *batches)
    assert (first.code, gap.code, other.code) == ("", SequenceGap.code, "")
    assert gap.base_offset is None
    assert gap.message
    assert await history(subject.broker, topic) == [b"a", b"b"]


@kept_by_all
async def test_a_producer_that_opens_its_name_again_fences_its_earlier_self(
    subject: Subject,
) -> None:
    topic = await subject.topic()
    name = subject.fresh("producer")
    earlier = await subject.broker.open_producer(name)
    await published(subject.broker, topic, numbered(earlier, 0, b"a"))
    later = await subject.broker.open_producer(name)
    assert (later.id, later.epoch) == (earlier.id, earlier.epoch + 1)
    await published(subject.broker, topic, numbered(later, 0, b"b"))
    (fenced,) = await published(subject.broker, topic, numbered(earlier, 1, b"x"))
    assert fenced.code == ProducerFenced.code
    assert await history(subject.broker, topic) == [b"a", b"b"]


@kept_by_all
async def test_nameless_producers_are_never_the_same(subject: Subject) -> None:
    found = [await subject.broker.open_producer() for _ in range(3)]
    assert len({one.id for one in found}) == 3


@kept_by_all
async def test_a_key_stores_its_content_once_and_no_other(subject: Subject) -> None:
    topic = await subject.topic()

    def keyed(content: bytes) -> bytes:
        producer, sequence = identity_of(b"order-7", content)
        return bytes(encode([content], producer_id=producer, sequence=sequence))

    (first,) = await published(subject.broker, topic, keyed(b"a"))
    (again,) = await published(subject.broker, topic, keyed(b"a"))
    (other,) = await published(subject.broker, topic, keyed(b"b"))
    assert (first.duplicate, again.duplicate) == (False, True)
    assert (again.base_offset, again.next_offset) == (0, 1)
    assert other.code == KeyReused.code
    assert await history(subject.broker, topic) == [b"a"]


# --- reading -------------------------------------------------------------------------------------


@kept_by_all
async def test_an_empty_topic_gives_an_empty_result(subject: Subject) -> None:
    topic = await subject.topic()
    result = await fetched(subject.broker, topic)
    assert (result.start_offset, result.end_offset, result.batches) == (0, 0, ())


@kept_by_all
async def test_a_fetch_begins_with_the_batch_that_holds_its_offset(subject: Subject) -> None:
    topic = await subject.topic()
    for values in ((b"a", b"b"), (b"c", b"d"), (b"e",)):
        await stored(subject.broker, topic, *values)
    result = await fetched(subject.broker, topic, 3, fresh=True)
    assert values_in(result.batches) == [b"c", b"d", b"e"]
    assert (result.start_offset, result.end_offset, result.expired) == (0, 5, ())
    at_the_end = await fetched(subject.broker, topic, 5, fresh=True)
    assert (at_the_end.batches, at_the_end.end_offset) == ((), 5)


@kept_by_all
async def test_a_fetch_returns_no_more_than_it_asked_for_but_one_batch(subject: Subject) -> None:
    topic = await subject.topic()
    for value in (b"a" * 500, b"b" * 500, b"c" * 500):
        await stored(subject.broker, topic, value)
    one = await fetched(subject.broker, topic, bytes_max=1, fresh=True)
    assert values_in(one.batches) == [b"a" * 500]
    size = len(one.batches[0])
    two = await fetched(subject.broker, topic, bytes_max=2 * size + size // 2, fresh=True)
    assert values_in(two.batches) == [b"a" * 500, b"b" * 500]


@kept_by_all
async def test_a_fetch_at_the_end_waits_for_what_comes(subject: Subject) -> None:
    topic = await subject.topic()
    waiting = asyncio.create_task(fetched(subject.broker, topic, wait_ms=int(SOON_S * 1_000)))
    await asyncio.sleep(0)
    await stored(subject.broker, topic, b"a")
    assert values_in((await waiting).batches) == [b"a"]


@kept_by_all
async def test_a_fetch_that_waited_in_vain_returns_nothing(subject: Subject) -> None:
    topic = await subject.topic()
    begun = asyncio.get_running_loop().time()
    result = await fetched(subject.broker, topic, wait_ms=60)
    assert result.batches == ()
    assert asyncio.get_running_loop().time() - begun >= 0.05


@kept_by_all
async def test_places_are_found_by_name_offset_and_time(subject: Subject) -> None:
    topic = await subject.topic()
    times = []
    for values in ((b"a", b"b"), (b"c",)):
        ack = await stored(subject.broker, topic, *values)
        assert ack.append_time is not None
        times.append(ack.append_time)
        await asyncio.sleep(0.002)  # so that the next one has a later time

    async def found(place: StartAt, value: int = 0) -> int:
        return await subject.broker.find_offset(topic, 0, Start(place, value))

    assert await found(StartAt.EARLIEST) == 0
    assert await found(StartAt.LATEST) == 3
    assert await found(StartAt.OFFSET, 1) == 1
    assert await found(StartAt.TIMESTAMP, 0) == 0
    assert await found(StartAt.TIMESTAMP, times[0]) == 0
    assert await found(StartAt.TIMESTAMP, times[1]) == 2
    assert await found(StartAt.TIMESTAMP, times[1] + 1) == 3


@kept_by_all
async def test_records_that_have_expired_are_named(subject: Subject) -> None:
    topic = await subject.topic()
    await published(subject.broker, topic, bytes(encode([b"a", b"b"], expires_at=1)))
    result = await fetched(subject.broker, topic, fresh=True)
    assert result.expired == (0, 2)


# --- what is refused -----------------------------------------------------------------------------


def flipped() -> bytes:
    batch = bytearray(batch_of(b"a"))
    batch[-1] ^= 1
    return bytes(batch)


def stamped() -> bytes:
    batch = encode([b"a"])
    stamp(batch, base_offset=Offset(0), term=Term(1), append_time=Micros(1))
    return bytes(batch)


@pytest.mark.parametrize(
    ("batches", "error"),
    [
        ((), InvalidArgument),
        ((flipped(),), InvalidBatch),
        ((stamped(),), InvalidArgument),
        ((batch_of(b"a"), flipped()), InvalidBatch),
        ((batch_of(b"a" * 2_000),), TooLarge),
    ],
    ids=["none", "damaged", "stamped", "damaged neighbour", "too large"],
)
@kept_by_all
async def test_a_publish_with_something_wrong_stores_nothing(
    subject: Subject, batches: tuple[bytes, ...], error: type[AngariumError]
) -> None:
    topic = await subject.topic(config=SMALL)
    with pytest.raises(error) as refused:
        await published(subject.broker, topic, *batches)
    assert refused.value.code == error.code
    assert await history(subject.broker, topic) == []


@kept_by_all
async def test_nobody_writes_where_transactions_are_decided(subject: Subject) -> None:
    with pytest.raises(InvalidArgument):
        await published(subject.broker, HOMES_TOPIC, batch_of(b"a"))


@pytest.mark.parametrize(("partition", "error"), [(1, NotFound), (-1, InvalidArgument)])
@kept_by_all
async def test_a_partition_that_is_not_there_is_told_alike(
    subject: Subject, partition: int, error: type[AngariumError]
) -> None:
    topic = await subject.topic()
    for attempt in (
        published(subject.broker, topic, batch_of(b"a"), partition=partition),
        fetched(subject.broker, topic, partition=partition),
        fetched(subject.broker, topic, partition=partition, fresh=True),
        subject.broker.find_offset(topic, partition, Start(StartAt.EARLIEST)),
        subject.broker.find_offset(topic, partition, Start(StartAt.LATEST)),
    ):
        with pytest.raises(error) as refused:
            await attempt
        assert refused.value.code == error.code


@kept_by_all
async def test_a_topic_that_is_not_there_is_told_alike(subject: Subject) -> None:
    topic = subject.fresh()
    for attempt in (
        fetched(subject.broker, topic),
        fetched(subject.broker, topic, fresh=True),
        subject.broker.find_offset(topic, 0, Start(StartAt.LATEST)),
    ):
        with pytest.raises(NotFound) as refused:
            await attempt
        assert refused.value.code == NotFound.code


@kept_by_all
async def test_an_offset_past_the_end_is_out_of_range(subject: Subject) -> None:
    topic = await subject.topic()
    await stored(subject.broker, topic, b"a", b"b")
    with pytest.raises(OffsetOutOfRange) as refused:
        await fetched(subject.broker, topic, 3)
    assert refused.value.code == OffsetOutOfRange.code


@pytest.mark.parametrize("wrong", [{"offset": -1}, {"bytes_max": 0}, {"wait_ms": -1}])
@kept_by_all
async def test_a_fetch_of_what_cannot_be_is_refused(
    subject: Subject, wrong: dict[str, int]
) -> None:
    topic = await subject.topic()
    with pytest.raises(InvalidArgument) as refused:
        await fetched(subject.broker, topic, **wrong)  # type: ignore[arg-type]
    assert refused.value.code == InvalidArgument.code


@kept_by_all
async def test_a_producers_name_that_is_empty_or_too_long_is_refused(subject: Subject) -> None:
    for name in ("", "x" * 1_000):
        with pytest.raises(InvalidArgument):
            await subject.broker.open_producer(name)
