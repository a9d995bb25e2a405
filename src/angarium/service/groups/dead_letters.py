"""Doing what the storing of dead letters asks for (`angarium.lending.letters`)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, assert_never

from angarium.api import PublishRequest, TopicConfig
from angarium.errors import AlreadyExists, AngariumError, NotFound
from angarium.lending.letters import LETTER_BYTES_MAX, Pause, Publish
from angarium.machine.catalog import ProducerShare, TopicCreate
from angarium.modes import DeliveryMode
from angarium.service.makers import counting_for, no_maker

if TYPE_CHECKING:
    from angarium.lending.letters import Burial
    from angarium.machine.catalog import Maker
    from angarium.service.own_node import OwnNode
    from angarium.service.publishing import Publisher
    from angarium.service.topics import Topics


class DeadLetters:
    """The letters that this node owes, as the leader of some partitions."""

    def __init__(self, node: OwnNode, topics: Topics, publishing: Publisher) -> None:
        self._node = node
        self._topics = topics
        self._publishing = publishing
        self._tasks: set[asyncio.Task[None]] = set()

    def carry_out(self, burial: Burial) -> None:
        """Begin to store letters."""
        task = asyncio.create_task(self._work(burial))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, burial: Burial) -> None:
        answer: object = None
        failure: Exception | None = None
        with suppress(StopIteration):
            while True:
                errand = burial.send(answer) if failure is None else burial.throw(failure)
                answer = failure = None
                try:
                    with counting_for(no_maker):
                        answer = await self._do(errand)
                except (AngariumError, TimeoutError) as error:
                    failure = error

    async def _do(self, errand: ProducerShare | Publish | Pause) -> object:
        match errand:
            case Pause():
                await asyncio.sleep(errand.seconds)
            case ProducerShare():
                return await self._node.catalog.submit(errand)
            case Publish():
                # The group's owner was counted when it named the topic; letters are never refused.
                await found_or_made(self._node, self._topics, errand.topic, maker=None)
                request = PublishRequest(
                    topic=errand.topic,
                    partition=0,
                    batches=errand.batches,
                    mode=DeliveryMode.CONSISTENT,
                )
                async with asyncio.timeout(self._node.config.request_timeout_s):
                    return await self._publishing.publish(request)
            case _:
                assert_never(errand)
        return None


async def found_or_made(node: OwnNode, topics: Topics, topic: str, *, maker: Maker | None) -> None:
    """Have a topic for dead letters; a new one counts for `maker`, or for no quota."""
    try:
        await topics.find(topic)
    except NotFound:
        settings = topics.settings(TopicConfig(batch_bytes_max=LETTER_BYTES_MAX))
        with suppress(AlreadyExists):  # another request was faster
            await node.catalog.submit(
                TopicCreate(name=topic, partitions=1, settings=settings, internal=True, maker=maker)
            )
