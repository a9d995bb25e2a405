"""One suite for every broker: topics that are made, described, altered and deleted."""

from __future__ import annotations

import pytest
from tests.contract.brokers import Subject, kept_by_all
from tests.contract.reading_back import stored

from angarium.api import TopicConfig
from angarium.api.transactions import HOMES_TOPIC
from angarium.errors import AlreadyExists, InvalidArgument, NotFound
from angarium.modes import DeliveryMode

CHOSEN = TopicConfig(
    replication=1,
    mode=DeliveryMode.EVENTUAL,
    retention_ms=3_600_000,
    retention_bytes=1 << 30,
    retention_groups=True,
    batch_bytes_max=1 << 20,
    expiry_ms=60_000,
    cleanup="compact",
    tombstone_ms=1_000,
    dirty_percent=20,
)


@kept_by_all
async def test_a_topic_is_as_it_was_asked_for(subject: Subject) -> None:
    name = subject.fresh()
    made = await subject.broker.create_topic(name, partitions=3, config=CHOSEN)
    assert (made.name, made.config) == (name, CHOSEN)
    assert [one.number for one in made.partitions] == [0, 1, 2]
    assert all(one.replicas for one in made.partitions)
    assert made.created_at
    described = await subject.broker.describe_topic(name)
    assert (described.id, described.config) == (made.id, CHOSEN)
    assert described.created_at == made.created_at
    assert len(described.partitions) == 3


@kept_by_all
async def test_topics_are_listed_by_name(subject: Subject) -> None:
    later, earlier = subject.fresh("z"), subject.fresh("a")
    for name in (later, earlier):
        await subject.broker.create_topic(name, partitions=1, config=TopicConfig())
    names = [one.name for one in await subject.broker.list_topics()]
    assert names == sorted(names)
    assert {later, earlier} <= set(names)


@kept_by_all
async def test_a_description_says_how_far_a_partition_is(subject: Subject) -> None:
    topic = await subject.topic(partitions=2)
    before = (await subject.broker.describe_topic(topic)).partitions
    assert [(one.start_offset, one.end_offset) for one in before] == [(0, 0), (0, 0)]
    await stored(subject.broker, topic, b"a", b"b")
    after = (await subject.broker.describe_topic(topic)).partitions
    assert after[0].leader in after[0].replicas
    assert (after[0].start_offset, after[1].end_offset) == (0, 0)
    assert after[0].end_offset in {0, 2}, "as the answering node sees it"


@kept_by_all
async def test_a_topic_can_be_made_again_only_as_it_is(subject: Subject) -> None:
    name = subject.fresh()
    config = TopicConfig(replication=1)
    made = await subject.broker.create_topic(name, partitions=1, config=config)
    again = await subject.broker.create_topic(name, partitions=1, config=config)
    assert again.id == made.id
    for partitions, other in ((2, config), (1, TopicConfig(replication=1, expiry_ms=5))):
        with pytest.raises(AlreadyExists) as refused:
            await subject.broker.create_topic(name, partitions=partitions, config=other)
        assert refused.value.code == AlreadyExists.code


@kept_by_all
async def test_a_topic_is_given_partitions_and_settings(subject: Subject) -> None:
    topic = await subject.topic(config=TopicConfig(replication=1))
    await stored(subject.broker, topic, b"a")
    grown = await subject.broker.alter_topic(topic, partitions=3, config=None)
    assert (len(grown.partitions), grown.config.expiry_ms) == (3, None)
    changed = await subject.broker.alter_topic(
        topic, partitions=None, config=TopicConfig(replication=1, expiry_ms=60_000)
    )
    assert (len(changed.partitions), changed.config.expiry_ms) == (3, 60_000)
    described = await subject.broker.describe_topic(topic)
    assert described.config == changed.config
    assert (described.id, len(described.partitions)) == (grown.id, 3)


@kept_by_all
async def test_a_topic_keeps_the_partitions_it_has(subject: Subject) -> None:
    topic = await subject.topic(partitions=2)
    with pytest.raises(InvalidArgument) as refused:
        await subject.broker.alter_topic(topic, partitions=1, config=None)
    assert refused.value.code == InvalidArgument.code
    assert len((await subject.broker.describe_topic(topic)).partitions) == 2


@kept_by_all
async def test_a_deleted_topic_is_gone_and_its_name_free(subject: Subject) -> None:
    topic = await subject.topic()
    before = await subject.broker.describe_topic(topic)
    await stored(subject.broker, topic, b"a")
    await subject.broker.delete_topic(topic)
    with pytest.raises(NotFound):
        await subject.broker.describe_topic(topic)
    assert topic not in {one.name for one in await subject.broker.list_topics()}
    after = await subject.broker.create_topic(topic, partitions=1, config=TopicConfig())
    assert after.id != before.id
    assert (await stored(subject.broker, topic, b"b")).base_offset == 0


@kept_by_all
async def test_what_is_asked_of_a_topic_that_is_not_there_is_told_alike(subject: Subject) -> None:
    name = subject.fresh()
    broker = subject.broker
    for attempt in (
        broker.describe_topic(name),
        broker.alter_topic(name, partitions=2, config=None),
        broker.delete_topic(name),
    ):
        with pytest.raises(NotFound) as refused:
            await attempt
        assert refused.value.code == NotFound.code


@pytest.mark.parametrize(
    ("name", "partitions", "config"),
    [
        ("", 1, TopicConfig()),
        ("no spaces", 1, TopicConfig()),
        ("x" * 1_000, 1, TopicConfig()),
        ("angarium.mine", 1, TopicConfig()),
        ("none", 0, TopicConfig()),
        ("less", -1, TopicConfig()),
        ("many", 1_000_000, TopicConfig()),
        ("copies", 1, TopicConfig(replication=0)),
        ("age", 1, TopicConfig(retention_ms=0)),
        ("size", 1, TopicConfig(retention_bytes=-1)),
        ("batch", 1, TopicConfig(batch_bytes_max=1)),
        ("expiry", 1, TopicConfig(expiry_ms=0)),
        ("dirty", 1, TopicConfig(dirty_percent=0)),
    ],
    ids=lambda one: str(one)[:12] if isinstance(one, str) else "",
)
@kept_by_all
async def test_a_topic_that_cannot_be_is_not_made(
    subject: Subject, name: str, partitions: int, config: TopicConfig
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await subject.broker.create_topic(name, partitions=partitions, config=config)
    assert refused.value.code == InvalidArgument.code
    assert name not in {one.name for one in await subject.broker.list_topics()}


@kept_by_all
async def test_settings_that_cannot_hold_are_refused_of_a_topic_that_is_there(
    subject: Subject,
) -> None:
    topic = await subject.topic(config=TopicConfig(replication=1))
    with pytest.raises(InvalidArgument):
        await subject.broker.alter_topic(
            topic, partitions=None, config=TopicConfig(dirty_percent=101)
        )
    assert (await subject.broker.describe_topic(topic)).config == TopicConfig(replication=1)


@kept_by_all
async def test_the_topic_of_transactions_stays(subject: Subject) -> None:
    with pytest.raises(InvalidArgument):
        await subject.broker.delete_topic(HOMES_TOPIC)
