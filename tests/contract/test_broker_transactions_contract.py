"""One suite for every broker: transactions, and producers that count themselves."""

from __future__ import annotations

import pytest
from tests.contract.brokers import GROUPED, Subject, kept_by_all
from tests.contract.reading_back import batch_of, fetched, history, stored, values_in

from angarium.api import ConsumeRequest, TopicConfig
from angarium.api.transactions import (
    HOMES_TOPIC,
    GroupAck,
    SequencedPublish,
    StagedIn,
    StageRequest,
    TransactionId,
)
from angarium.errors import (
    AngariumError,
    InvalidArgument,
    NotFound,
    ProducerFenced,
    TooLarge,
    TransactionAborted,
)
from angarium.ids import Epoch

pytestmark = pytest.mark.parametrize("subject", GROUPED, indirect=True)


def staging(
    transaction: TransactionId,
    topic: str,
    *values: bytes,
    partition: int = 0,
    part: int = 0,
    acks: tuple[GroupAck, ...] = (),
) -> StageRequest:
    return StageRequest(
        transaction=transaction,
        stage="s",
        part=part,
        topic=topic,
        partition=partition,
        batches=(batch_of(*values),) if values else (),
        acks=acks,
    )


@kept_by_all
async def test_what_is_staged_shows_when_it_is_committed(subject: Subject) -> None:
    topic, name = await subject.topic(partitions=2), subject.fresh("series")
    series = await subject.transactions.open_series(name)
    assert series.last_sequence is None
    this = TransactionId(name, series.epoch, 0)
    first = await subject.transactions.stage(staging(this, topic, b"a"))
    assert (first.parts, first.repeated, first.is_committed) == (1, False, False)
    again = await subject.transactions.stage(staging(this, topic, b"a"))
    assert (again.parts, again.repeated) == (1, True)
    await subject.transactions.stage(staging(this, topic, b"b", partition=1))
    assert await history(subject.broker, topic) == []
    stages = tuple(StagedIn(topic, number, ("s",)) for number in (0, 1))
    committed = await subject.transactions.commit(this, stages, content="all of it")
    assert (committed.repeated, committed.last_sequence) == (False, 0)
    assert committed.content == "all of it"
    placed = {one.partition: (one.base_offset, one.next_offset) for one in committed.partitions}
    assert placed.keys() == {0, 1}
    assert await history(subject.broker, topic) == [b"a"]
    other = await fetched(subject.broker, topic, partition=1, fresh=True)
    assert values_in(other.batches) == [b"b"]
    repeated = await subject.transactions.commit(this, stages, content="again")
    assert (repeated.repeated, repeated.content) == (True, "all of it")
    assert (await subject.transactions.open_series(name)).last_sequence == 0
    await subject.transactions.forget_series(name, (topic,))
    assert (await subject.transactions.open_series(name)).last_sequence is None


@kept_by_all
async def test_what_is_aborted_never_shows(subject: Subject) -> None:
    topic, name = await subject.topic(), subject.fresh("series")
    series = await subject.transactions.open_series(name)
    this, stages = TransactionId(name, series.epoch, 0), (StagedIn(topic, 0, ("s",)),)
    await subject.transactions.stage(staging(this, topic, b"a"))
    assert not (await subject.transactions.abort(this, stages)).committed
    with pytest.raises(TransactionAborted) as refused:
        await subject.transactions.commit(this, stages)
    assert refused.value.code == TransactionAborted.code
    assert await history(subject.broker, topic) == []


@kept_by_all
async def test_who_opens_a_series_again_fences_its_earlier_run(subject: Subject) -> None:
    topic, name = await subject.topic(), subject.fresh("series")
    earlier = await subject.transactions.open_series(name)
    this = TransactionId(name, earlier.epoch, 0)
    await subject.transactions.stage(staging(this, topic, b"a"))
    later = await subject.transactions.open_series(name)
    assert later.epoch > earlier.epoch
    with pytest.raises((ProducerFenced, TransactionAborted)):
        await subject.transactions.commit(this, (StagedIn(topic, 0, ("s",)),))
    assert await history(subject.broker, topic) == []


@kept_by_all
async def test_records_are_acknowledged_in_a_transaction(subject: Subject) -> None:
    topic, group, name = await subject.topic(), subject.fresh("group"), subject.fresh("series")
    await stored(subject.broker, topic, b"a", b"b")
    consumption = await subject.broker.consume(ConsumeRequest(group=group, topics=(topic,)))
    handed = await anext(aiter(consumption))
    generation = int(handed.generation)
    series = await subject.transactions.open_series(name)
    this = TransactionId(name, series.epoch, 0)
    acks = (GroupAck(group, (0, 1), generation),)
    await subject.transactions.stage(staging(this, topic, acks=acks))
    await subject.transactions.commit(this, (StagedIn(topic, 0, ("s",)),))
    position = await subject.transactions.settled_by(group, topic=topic, partition=0)
    assert (position.floor, position.generation) == (1, generation)
    await consumption.close()


@kept_by_all
async def test_a_group_that_was_never_here_has_settled_nothing(subject: Subject) -> None:
    topic = await subject.topic()
    position = await subject.transactions.settled_by("nobody", topic=topic, partition=0)
    assert (position.floor, position.ranges, position.generation) == (0, (), None)


@kept_by_all
async def test_numbers_that_a_producer_chose_are_stored_once(subject: Subject) -> None:
    topic, name = await subject.topic(), subject.fresh("producer")
    epoch = (await subject.transactions.open_sequenced(name)).epoch

    def numbered(sequence: int, value: bytes, *, by: Epoch = epoch) -> SequencedPublish:
        return SequencedPublish(
            producer=name,
            epoch=by,
            sequence=sequence,
            topic=topic,
            partition=0,
            batches=(batch_of(value),),
        )

    async def last() -> int | None:
        return await subject.transactions.last_sequence(name, epoch, topic=topic, partition=0)

    assert await last() is None
    ack = await subject.transactions.publish_sequenced(numbered(7, b"a"))
    assert (ack.base_offset, ack.next_offset, ack.duplicate) == (0, 1, False)
    again = await subject.transactions.publish_sequenced(numbered(7, b"a"))
    assert again.duplicate
    assert await last() == 7
    epoch = (await subject.transactions.open_sequenced(name)).epoch
    assert await last() == 7
    with pytest.raises(ProducerFenced) as refused:
        await subject.transactions.publish_sequenced(numbered(8, b"x", by=Epoch(epoch - 1)))
    assert refused.value.code == ProducerFenced.code
    assert await history(subject.broker, topic) == [b"a"]
    await subject.transactions.forget_sequenced(name, (topic,))
    assert await last() is None


@kept_by_all
async def test_what_cannot_be_staged_is_told_alike(subject: Subject) -> None:
    topic, name = await subject.topic(config=TopicConfig(batch_bytes_max=1 << 10)), "staging"
    series = await subject.transactions.open_series(subject.fresh(name))
    this = TransactionId(subject.fresh(name), series.epoch, 0)
    for request, error in (
        (staging(this, topic, b"x" * 2_000), TooLarge),
        (staging(this, topic, b"a", partition=1), NotFound),
        (staging(this, topic, b"a", partition=-1), InvalidArgument),
        (staging(this, HOMES_TOPIC, b"a"), InvalidArgument),
        (staging(TransactionId("", Epoch(1), 0), topic, b"a"), InvalidArgument),
        (staging(TransactionId(this.name, Epoch(1), -1), topic, b"a"), InvalidArgument),
    ):
        with pytest.raises(AngariumError) as refused:
            await subject.transactions.stage(request)
        assert (type(refused.value), refused.value.code) == (error, error.code), request


@kept_by_all
async def test_a_series_has_a_name(subject: Subject) -> None:
    for name in ("", "x" * 251):
        with pytest.raises(InvalidArgument):
            await subject.transactions.open_series(name)
        with pytest.raises(InvalidArgument):
            await subject.transactions.open_sequenced(name)
