"""The way to a cluster from one of Spark's processes: a client in a thread, shared by all tasks.

Spark reuses its Python workers, so a connection made by one task serves the next. A worker that was
forked makes its own: a thread does not survive a fork.
"""

from __future__ import annotations

import asyncio
import os
import threading
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar

from angarium.api import Checkpoint, FetchRequest, Start, StartAt
from angarium.batch import Batch
from angarium.client import Client
from angarium.client.contract import RemoteBroker
from angarium.client.login import NO_LOGIN, LoginOptions
from angarium.client.loop_thread import LoopThread
from angarium.client.reading.fetching import offset_in
from angarium.client.settings import ClientSettings
from angarium.errors import AngariumError, LayoutChanged, NotFound
from angarium.ids import Offset
from angarium.retrying import Backoff, Tries
from angarium.spark.answering import PATIENCE_S, NobodyAnswers

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from concurrent.futures import Future

    from angarium.api import TopicConfig, TopicInfo
    from angarium.api.layout import Layout
    from angarium.client.reading.face import FetchedBatches
    from angarium.client.transactions.staged import StagedWrite
    from angarium.security.tls import TlsOptions
    from angarium.spark.options import ReadOptions
    from angarium.spark.write_options import WriteOptions

    T = TypeVar("T")

REQUEST_TIMEOUT_S: Final = 60.0
"""How long a request is repeated before a query or a task fails: an election, a restarted node and
a busy machine are waited for here, because a failed plan fails the whole query."""

LAYOUT_PAUSES: Final = Backoff(first_s=0.05, longest_s=0.5)
"""How often it is looked whether a topic's new partitions are in use."""

FETCH_BYTES: Final = 4 << 20
"""How much one fetch asks for. A task holds about twice as much, whatever it reads."""

_links: dict[tuple[int, tuple[str, ...], TlsOptions | None, LoginOptions, str], Link] = {}
_lock = threading.Lock()


def link_for(options: ReadOptions | WriteOptions) -> Link:
    """Return this process's link to the cluster that a read or a write is about."""
    return link_to(options.servers, options.tls, options.login, options.region)


def link_to(
    servers: tuple[str, ...],
    tls: TlsOptions | None = None,
    login: LoginOptions = NO_LOGIN,
    region: str = "",
) -> Link:
    """Return this process's link to a cluster."""
    key = (os.getpid(), servers, tls, login, region)
    with _lock:
        if key not in _links:
            _links[key] = Link(*key[1:])
        return _links[key]


class Link:
    """Asks a cluster, in the background or right away. It is a `Cluster` for planning."""

    def __init__(
        self,
        servers: tuple[str, ...],
        tls: TlsOptions | None = None,
        login: LoginOptions = NO_LOGIN,
        region: str = "",
    ) -> None:
        self._thread = LoopThread("angarium-spark")
        settings = ClientSettings(
            request_timeout_s=REQUEST_TIMEOUT_S, fetch_bytes=FETCH_BYTES, tls=tls, region=region
        )
        self._client = Client(*servers, settings=settings, login=login.login())
        self._is_connected = False

    # --- planning -----------------------------------------------------------------------------

    def topics(self) -> Mapping[str, TopicInfo]:
        """Return all topics by name, and note who leads them."""
        return self._thread.call(self._topics())

    def offsets(self, wanted: Sequence[tuple[str, int, Start]]) -> list[int]:
        """Return the offset that each start stands for; `NobodyAnswers`."""
        answers = self.offsets_within(wanted, [REQUEST_TIMEOUT_S] * len(wanted))
        found = []
        for (topic, partition, _), answer in zip(wanted, answers, strict=True):
            if isinstance(answer, AngariumError):
                raise NobodyAnswers(topic, partition, answer)
            found.append(answer)
        return found

    def offsets_within(
        self, wanted: Sequence[tuple[str, int, Start]], patience_s: Sequence[float]
    ) -> list[int | AngariumError]:
        """Return the same, and where nobody answers within so many seconds what came instead."""
        return self._thread.call(self._offsets(wanted, patience_s))

    def record_bytes(self, topic: str, partition: int, offset: int) -> float | None:
        """Return the mean size of the records in the batch at `offset`; None if none is there."""
        wanted = FetchRequest(topic=topic, partition=partition, offset=Offset(offset), bytes_max=1)
        found = self._thread.call(RemoteBroker(self._client).fetch(wanted)).batches
        batch = Batch.parse(found[0], compacted=True, contents=False) if found else None
        return batch.length / batch.count if batch is not None and batch.count else None

    def group_floors(self, group: str) -> Mapping[tuple[str, int], int]:
        """Return where a group stands, by topic and partition."""
        positions = self._thread.call(self._client.describe_group(group)).positions
        return {(one.topic, one.partition): int(one.floor) for one in positions}

    def report(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Say how far a group of kind CHECKPOINT has come, in each topic and partition.

        It is no reason to keep a query waiting for longer than a partition that falls silent does.
        """
        told = [
            Checkpoint(topic, partition, Offset(offset))
            for (topic, partition), offset in offsets.items()
        ]
        self._thread.call(self._client.report_checkpoints(group, told, timeout_s=PATIENCE_S))

    # --- reading ------------------------------------------------------------------------------

    def end_offset(self, topic: str, partition: int) -> int:
        """Return where a partition ends now."""
        return self.offsets([(topic, partition, Start(StartAt.LATEST))])[0]

    def topic_id(self, topic: str, *, from_nearest: bool) -> int:
        """Return the id of a topic; unless the nearest node is to answer, note who leads it."""
        return self._thread.call(self._topic_id(topic, from_nearest=from_nearest))

    def begin_fetch(
        self, topic: str, partition: int, offset: int, *, fresh: bool = False
    ) -> Future[FetchedBatches]:
        """Begin to fetch from `offset` on: the batches, and where to go on."""
        return self.begin(self._client.fetch_batches(topic, partition, offset, fresh=fresh))

    # --- writing ------------------------------------------------------------------------------

    def layout(self, topic: str, *, creates: bool) -> Layout:
        """Return which partitions of a topic are written to by now; one that is not there is made
        or refused."""
        return self._thread.call(self._layout(topic, creates=creates))

    def layout_beyond(self, topic: str, number: int) -> Layout:
        """Return the same, once a newer layout than `number` is in force; `LayoutChanged` if that
        takes too long."""
        return self._thread.call(self._layout_beyond(topic, number))

    def describe(self, topic: str) -> TopicInfo:
        """Return a topic as it is by now."""
        return self._thread.call(self._client.describe_topic(topic))

    def create_topic(self, name: str, *, partitions: int, config: TopicConfig) -> None:
        """Make a topic; `AlreadyExists`."""
        self._thread.call(self._client.create_topic(name, partitions=partitions, config=config))

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Have a topic have so many partitions."""
        self._thread.call(self._client.alter_topic(topic, partitions=partitions))

    def publish(self, topic: str, *, key: str, value: bytes) -> None:
        """Publish one record, and wait until it is safe."""
        self._thread.call(self._client.publish(topic, value, key=key))

    def staged(self, name: str, *, epoch: int, sequence: int) -> StagedWrite:
        """Return one transaction of a series, which every process makes for itself."""
        return self._thread.call(self._staged(name, epoch, sequence))

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done, and wait for it."""
        return self._thread.call(work)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have something done in the background."""
        return self._thread.submit(work)

    # --- in the other thread --------------------------------------------------------------------

    async def _topics(self) -> Mapping[str, TopicInfo]:
        topics = {info.name: info for info in await self._client.list_topics()}
        if not self._is_connected:
            # From then on it knows all nodes, should those it was told of be gone.
            await self._client.connect()
            self._is_connected = True
        return topics

    async def _offsets(
        self, wanted: Sequence[tuple[str, int, Start]], patience_s: Sequence[float]
    ) -> list[int | AngariumError]:
        asked = (self._offset(*one, s) for one, s in zip(wanted, patience_s, strict=True))
        return await asyncio.gather(*asked)

    async def _offset(
        self, topic: str, number: int, start: Start, patience_s: float
    ) -> int | AngariumError:
        reach = self._client._reach
        try:
            return int(await offset_in(reach, topic, number, start, timeout_s=patience_s))
        except AngariumError as error:
            if not error.retriable:
                raise
            return error

    async def _layout(self, topic: str, *, creates: bool) -> Layout:
        info = await self._topic_by_now(topic, creates=creates)
        return self._client._reach.routes.layout(info)

    async def _layout_beyond(self, topic: str, number: int) -> Layout:
        deadline = asyncio.get_running_loop().time() + REQUEST_TIMEOUT_S
        tries = Tries(LAYOUT_PAUSES, deadline=deadline)
        while True:
            layout = await self._layout(topic, creates=False)
            if layout.number > number:
                return layout
            if not await tries.pause():
                raise LayoutChanged(
                    f"{topic} is being given partitions, and its keys wait for that: look with "
                    f"`angarium topic describe {topic}`"
                )

    async def _topic_by_now(self, topic: str, *, creates: bool) -> TopicInfo:
        try:
            return await self._client.describe_topic(topic, or_new=creates)
        except NotFound:
            if creates:
                raise
            near = get_close_matches(topic, await self._topics(), n=1)
            raise NotFound(
                f"there is no topic {topic}{f'; did you mean {near[0]}?' if near else ''} "
                f"(`angarium topic create {topic}` makes one, and so does createTopic=true)"
            ) from None

    async def _topic_id(self, topic: str, *, from_nearest: bool) -> int:
        if not from_nearest:
            return int((await self._client.describe_topic(topic)).id)
        info = (await self._topics()).get(topic)
        return -1 if info is None else int(info.id)

    async def _staged(self, name: str, epoch: int, sequence: int) -> StagedWrite:
        return self._client.staged(name, epoch=epoch, sequence=sequence)
