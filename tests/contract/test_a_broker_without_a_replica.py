"""A node that has no replica of a partition finds its leader, whichever replica that is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.contract.brokers import SOON_S, kept_by_all
from tests.contract.reading_back import batch_of, stored

from angarium.api import ConsumeRequest, GroupConfig, PublishRequest, TopicConfig
from angarium.api.transactions import StagedIn, StageRequest, TransactionId
from angarium.errors import NotLeader

if TYPE_CHECKING:
    from tests.contract.brokers import Subject

pytestmark = pytest.mark.parametrize("subject", ["service without a replica"], indirect=True)


async def led_by_another(subject: Subject) -> str:
    """Return a topic that the first of its replicas, who is asked first, does not lead.

    It has one record, so somebody leads.
    """
    topic = await subject.topic(config=TopicConfig(replication=2))
    async with asyncio.timeout(SOON_S):
        while True:
            (place,) = (await subject.broker.describe_topic(topic)).partitions
            with suppress(NotLeader):  # leadership is being handed over
                if place.leader == place.replicas[1]:
                    await stored(subject.broker, topic, b"a")
                    return topic
                if place.leader is not None:
                    await subject.broker.transfer_leader(topic, 0, place.replicas[1])
            await asyncio.sleep(0.01)


@kept_by_all
async def test_a_topic_that_it_has_made_can_be_used_at_once(subject: Subject) -> None:
    topic = await subject.topic()
    request = PublishRequest(topic=topic, partition=0, batches=(batch_of(b"a"),))
    (ack,) = await subject.broker.publish(request)
    assert ack.base_offset == 0


@kept_by_all
async def test_it_changes_groups_where_they_are_led(subject: Subject) -> None:
    topic, group = await led_by_another(subject), subject.fresh("group")
    await (await subject.broker.consume(ConsumeRequest(group=group, topics=(topic,)))).close()
    changed = GroupConfig(max_attempts=9)
    async with asyncio.timeout(SOON_S / 4):  # long before it gives up
        assert (await subject.broker.alter_group(group, changed)).config == changed


@kept_by_all
async def test_its_transactions_find_whoever_leads(subject: Subject) -> None:
    topic, name = await led_by_another(subject), subject.fresh("series")
    series = await subject.transactions.open_series(name)
    this = TransactionId(name, series.epoch, 0)
    request = StageRequest(
        transaction=this, stage="s", part=0, topic=topic, partition=0, batches=(batch_of(b"a"),)
    )
    async with asyncio.timeout(SOON_S / 4):
        assert (await subject.transactions.stage(request)).parts == 1
        await subject.transactions.commit(this, (StagedIn(topic, 0, ("s",)),))
