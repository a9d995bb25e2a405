"""A handler at work: so many records at a time, in the order its group promises.

In a queue or key group any worker takes the next record: the broker lends only one record of a key
at a time. In a stream group each partition belongs to one worker, so that its records follow each
other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from angarium.errors import AlreadyExists, NotFound
from angarium.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.client.client import Client
    from angarium.client.groups.consumer import Consumer
    from angarium.client.groups.group_records import GroupRecord
    from angarium.client.handlers.handler import Handler

LOOK_AGAIN_S: Final = 0.5
"""How often a handler whose topic is not there looks again."""

_log = logging.getLogger(__name__)


class Running:
    """One handler, its consumer, and its workers."""

    def __init__(self, handler: Handler, client: Client) -> None:
        self._handler = handler
        self._client = client
        self.consumer = self._new_consumer()
        self._records: Iterator[GroupRecord] = iter(())
        self._fetching = asyncio.Lock()
        self._lanes = [_Lane() for _ in range(handler.concurrency)]
        self._is_draining = False
        self._draining = asyncio.Event()

    def _new_consumer(self) -> Consumer:
        handler = self._handler
        group = self._client.group(
            handler.group, kind=handler.kind, start=handler.start, config=handler.config
        )
        return group.consume(*handler.topics, credit=max(handler.credit, handler.concurrency))

    async def begin(self, *, create_topics: bool) -> None:
        """Join the group. Topics that are not there are waited for, or made."""
        has_waited = False
        while not self._is_draining:
            try:
                await self.consumer.begin()
            except NotFound as missing:
                self.consumer = self._new_consumer()
                if create_topics:
                    await self._make_topics()
                    continue
                if not has_waited:
                    _log.warning("%s waits: %s", self._handler.name, missing)
                has_waited = True
            else:
                topics = ", ".join(self._handler.topics)
                _log.info(
                    "%s is at work on %s (group %s)",
                    self._handler.name,
                    topics,
                    self._handler.group,
                )
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._draining.wait(), LOOK_AGAIN_S)

    async def _make_topics(self) -> None:
        for topic in self._handler.topics:
            try:
                await self._client.describe_topic(topic)
            except NotFound:
                with suppress(AlreadyExists):  # another handler, or program, was faster
                    await self._client.create_topic(topic)

    async def run(self, *, create_topics: bool = False) -> None:
        """Work until drained; raises what broke the consumer."""
        await self.begin(create_topics=create_topics)
        if self._is_draining:
            return
        handler = self._handler
        threads = None
        if not handler.is_async:
            threads = ThreadPoolExecutor(handler.concurrency, thread_name_prefix=handler.name)
        try:
            async with asyncio.TaskGroup() as workers:
                if self.consumer.kind.is_ordered:
                    workers.create_task(self._spread())
                    for lane in self._lanes:
                        workers.create_task(self._work_off(lane, threads))
                else:
                    for _ in range(handler.concurrency):
                        workers.create_task(self._work(threads))
        finally:
            if threads is not None:
                threads.shutdown(wait=False, cancel_futures=True)

    def drain(self) -> None:
        """Take no further record; `run` ends when those being worked on are done.

        The others go back untried when the consumer is closed.
        """
        self._is_draining = True
        self._draining.set()
        self._records = iter(())
        for lane in self._lanes:
            lane.end()
        self.consumer.stop_reading()

    # --- queues and keys --------------------------------------------------------------------------

    async def _work(self, threads: ThreadPoolExecutor | None) -> None:
        handle, client, loop = self._handler.handle, self._client, asyncio.get_running_loop()
        while (record := await self._next()) is not None:
            await handle(record, client, loop, threads)

    async def _next(self) -> GroupRecord | None:
        while not self._is_draining:
            for record in self._records:
                return record
            async with self._fetching:
                for record in self._records:  # another worker was faster
                    return record
                batch = await self.consumer.next_batch()
                if batch is None or self._is_draining:
                    return None
                self._records = iter(batch)
        return None

    # --- streams ----------------------------------------------------------------------------------

    async def _spread(self) -> None:
        lanes: dict[TopicPartition, _Lane] = {}
        while (batch := await self.consumer.next_batch()) is not None:
            partition = TopicPartition(batch.topic, batch.partition)
            # One after the other, so that no worker has two partitions while another has none.
            lane = lanes.setdefault(partition, self._lanes[len(lanes) % len(self._lanes)])
            lane.put(iter(batch))
        for lane in self._lanes:
            lane.end()

    async def _work_off(self, lane: _Lane, threads: ThreadPoolExecutor | None) -> None:
        handle, client, loop = self._handler.handle, self._client, asyncio.get_running_loop()
        while (records := await lane.take()) is not None:
            # A record that fails takes back what lies behind it: the iterator leaves that out.
            for record in records:
                await handle(record, client, loop, threads)
                if self._is_draining:
                    return


class _Lane:
    """Deliveries for one worker; bounded by the consumer's credit."""

    def __init__(self) -> None:
        self._deliveries: deque[Iterator[GroupRecord]] = deque()
        self._news = asyncio.Event()
        self._is_over = False

    def put(self, records: Iterator[GroupRecord]) -> None:
        self._deliveries.append(records)
        self._news.set()

    def end(self) -> None:
        self._is_over = True
        self._news.set()

    async def take(self) -> Iterator[GroupRecord] | None:
        while not self._deliveries:
            if self._is_over:
                return None
            self._news.clear()
            await self._news.wait()
        return None if self._is_over else self._deliveries.popleft()
