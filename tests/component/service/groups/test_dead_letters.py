"""Records whose attempts are used up are stored in the dead-letter topic, each once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.service.groups.consuming import (
    WAIT_S,
    about,
    consume,
    floor_of,
    next_of,
    offsets,
    one_topic,
    publish,
    said,
    settle,
)
from tests.on_a_loop import on_a_loop

from angarium.api import FetchRequest, GroupConfig, TopicConfig, Verb
from angarium.batch import Batch
from angarium.errors import NotFound, NotLeader
from angarium.ids import Offset
from angarium.kinds import GroupKind, Poison

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.batch.decoding import Record
    from angarium.service.broker import Service


async def letters(service: Service, count: int, topic: str = "angarium.dlq") -> list[Record]:
    """Return the records of a dead-letter topic once there are so many."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                result = await service.fetch(
                    FetchRequest(topic=topic, partition=0, offset=Offset(0))
                )
            except (NotFound, NotLeader):  # not made, or not elected yet
                result = None
            found = [
                record
                for batch in (result.batches if result is not None else ())
                for record in Batch.trusted(batch)
            ]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.01)


async def wait_for_floor(service: Service, floor: int) -> None:
    async with asyncio.timeout(WAIT_S):
        while await floor_of(service) != floor:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@on_a_loop
async def test_the_last_attempt_makes_a_dead_letter_that_tells_its_story(tmp_path: Path) -> None:
    async with one_topic(tmp_path) as service:
        await publish(service, [b"good", b"bad"], key=b"k")
        config = GroupConfig(max_attempts=2, backoff_min_ms=1, backoff_max_ms=2)
        consumption = await consume(service, config=config)
        await next_of(consumption)
        await settle(consumption, about(0), about(1, verb=Verb.NACK, reason="first"))
        again = await next_of(consumption)
        assert again.attempt == 2
        await settle(consumption, said(again, Verb.NACK, reason="second"))
        (letter,) = await letters(service, 1)
        assert (letter.key, letter.value) == (b"k", b"bad")
        headers = dict(letter.headers)
        assert headers["angarium-dlq-topic"] == b"orders"
        assert headers["angarium-dlq-partition"] == b"0"
        assert headers["angarium-dlq-offset"] == b"1"
        assert headers["angarium-dlq-group"] == b"workers"
        assert headers["angarium-dlq-attempts"] == b"2"
        assert headers["angarium-dlq-reason"] == b"second"
        assert (
            0
            < int(headers["angarium-dlq-first-at"] or 0)
            <= int(headers["angarium-dlq-last-at"] or 0)
        )
        await wait_for_floor(service, 2)
        await consumption.close()


@pytest.mark.parametrize("kind", [GroupKind.QUEUE, GroupKind.KEY, GroupKind.STREAM])
def test_what_is_rejected_is_a_dead_letter_at_once_whatever_the_settings(
    tmp_path: Path, kind: GroupKind
) -> None:
    @on_a_loop
    async def story(folder: Path) -> None:
        async with one_topic(folder) as service:
            await publish(service, [b"bad", b"good"], key=b"k")
            config = GroupConfig(max_attempts=9, backoff_min_ms=60_000, poison=Poison.RETRY)
            consumption = await consume(service, config=config, kind=kind)
            handed = await next_of(consumption)
            await settle(consumption, about(0, verb=Verb.REJECT, reason="never"))
            (letter,) = await letters(service, 1)
            headers = dict(letter.headers)
            assert (letter.value, headers["angarium-dlq-attempts"]) == (b"bad", b"1")
            assert headers["angarium-dlq-reason"] == b"never"
            if kind is not GroupKind.QUEUE:  # taken back behind it, or kept until it is gone
                handed = await next_of(consumption)
            assert 1 in offsets(handed)
            await settle(consumption, about(1))
            await wait_for_floor(service, 2)
            await consumption.close()

    story(tmp_path)


@on_a_loop
async def test_many_letters_are_each_stored_once_and_in_another_topic_after_a_change(
    tmp_path: Path,
) -> None:
    async with one_topic(tmp_path) as service:
        config = GroupConfig(max_attempts=1, dead_letter_topic="graves")
        await service.create_topic("graves", partitions=1, config=TopicConfig())
        consumption = await consume(service, config=config)
        await publish(service, [b"%d" % number for number in range(100)])
        handed = await next_of(consumption)
        await settle(consumption, said(handed, Verb.NACK))
        await wait_for_floor(service, 100)
        found = await letters(service, 100, "graves")
        assert [record.value for record in found] == [b"%d" % number for number in range(100)]
        for topic, first in (("angarium.dlq", 100), ("graves", 103)):
            await service.alter_group(
                "workers", GroupConfig(max_attempts=1, dead_letter_topic=topic)
            )
            await publish(service, [b"more"] * 3)
            handed = await next_of(consumption)
            assert offsets(handed)[0] == first
            await settle(consumption, said(handed, Verb.NACK))
            await wait_for_floor(service, first + 3)
        assert len(await letters(service, 3)) == 3
        assert len(await letters(service, 103, "graves")) == 103
        await consumption.close()
