"""Brokers in the node itself: offsets that are given away, and what only passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from tests.contract.brokers import Subject, kept_by_all
from tests.contract.reading_back import Taken, batch_of, fetched, published, stored, values_in

from angarium.api.transactions import HOMES_TOPIC
from angarium.errors import AngariumError, InvalidArgument, NotFound
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from angarium.api import OffsetBroker, PassingBroker

pytestmark = pytest.mark.parametrize(
    "subject",
    ["service", "service that follows", "service without a replica", "doors"],
    indirect=True,
)


def offsets(subject: Subject) -> OffsetBroker:
    return cast("OffsetBroker", subject.broker)


def passing(subject: Subject) -> PassingBroker:
    return cast("PassingBroker", subject.broker)


@kept_by_all
async def test_offsets_that_are_given_away_stay_empty(subject: Subject) -> None:
    topic = await subject.topic()
    await stored(subject.broker, topic, b"a")
    assert await offsets(subject).reserve(topic, 0, 3) == 1
    assert (await stored(subject.broker, topic, b"b")).base_offset == 4
    result = await fetched(subject.broker, topic, fresh=True)
    assert (values_in(result.batches), result.end_offset) == ([b"a", b"b"], 5)


@kept_by_all
async def test_a_topic_that_is_not_there_is_made_for_them(subject: Subject) -> None:
    assert await offsets(subject).reserve(subject.fresh(), 0, 1) == 0


@pytest.mark.parametrize(
    ("partition", "count", "error"),
    [(1, 1, NotFound), (-1, 1, InvalidArgument), (0, 0, InvalidArgument)],
)
@kept_by_all
async def test_what_cannot_be_given_away_is_told_alike(
    subject: Subject, partition: int, count: int, error: type[AngariumError]
) -> None:
    topic = await subject.topic()
    with pytest.raises(AngariumError) as refused:
        await offsets(subject).reserve(topic, partition, count)
    assert (type(refused.value), refused.value.code) == (error, error.code)
    with pytest.raises(InvalidArgument):
        await offsets(subject).reserve(HOMES_TOPIC, 0, 1)


@kept_by_all
async def test_who_wants_what_passes_gets_nothing_else(subject: Subject) -> None:
    topic = await subject.topic()
    subscription = await passing(subject).subscribe_passing(topic, (0,))
    try:
        await stored(subject.broker, topic, b"stored")
        mode = DeliveryMode.PERFORMANCE
        (ack,) = await published(subject.broker, topic, batch_of(b"now"), mode=mode)
        assert ack.subscribers == 1
        delivery = await Taken(subscription).next()
        assert (delivery.live, values_in(delivery.batches)) == (True, [b"now"])
    finally:
        await subscription.close()
