"""The client for programs without an event loop: the same calls, each returning when it is done.

A thread in the background runs a `Client`. Any number of threads may share one `SyncClient`; what
they publish at the same time travels together, as it does for tasks.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Self

from angarium.client.addresses import bootstrap_addresses
from angarium.client.client import Client
from angarium.client.groups.keeper import Keeper
from angarium.client.groups.sync import SyncGroups
from angarium.client.loop_thread import LoopThread
from angarium.client.publishing.outgoing import outgoing
from angarium.client.transactions.sync import SyncTransactional
from angarium.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from datetime import timedelta
    from types import TracebackType

    from angarium.api import Ack, ClusterStatus, TopicConfig, TopicInfo
    from angarium.batch.columns import HeadersOf
    from angarium.client.publishing.outgoing import HeadersLike, Outgoing, Text
    from angarium.client.publishing.receipts import Loss, Receipt
    from angarium.client.reading.face import FetchedBatches
    from angarium.client.reading.starts import StartLike
    from angarium.client.reading.subscription import Subscription
    from angarium.client.records import ReceivedBatch, Record
    from angarium.client.settings import ClientSettings
    from angarium.client.times import Moment
    from angarium.ids import Buffer, NodeId, Offset
    from angarium.modes import DeliveryMode


class SyncClient(SyncGroups, SyncTransactional):
    """Publishes, subscribes, fetches and administers; see `Client` for what each call means.

    with SyncClient("127.0.0.1:7400") as client:
        client.publish("greetings", b"hello")
        for record in client.subscribe("greetings", start="earliest"):
            print(record.value)
    """

    def __init__(
        self,
        *servers: str,
        settings: ClientSettings | None = None,
        producer: str | None = None,
        on_loss: Callable[[Loss], None] | None = None,
    ) -> None:
        self._client = Client(*servers, settings=settings, producer=producer, on_loss=on_loss)
        self._thread = LoopThread("angarium-client")
        self._outbox: deque[tuple[str, Outgoing]] = deque()
        self._outbox_bytes = 0
        self._lock = threading.Lock()
        self._is_closed = False
        self._consuming = Keeper(bootstrap_addresses(servers), self._client.settings)

    def __enter__(self) -> Self:
        try:
            self._thread.call(self._client.connect())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Publish what waits, say goodbye, and end the thread."""
        if not self._is_closed:
            self._is_closed = True
            self._consuming.close_and_wait()
            try:
                self._thread.call(self._close())
            finally:
                self._thread.stop()

    def is_healthy(self, *, timeout_s: float = 1.0) -> bool:
        """Tell whether the cluster answers and has somebody who leads it."""
        return self._thread.call(self._client.is_healthy(timeout_s=timeout_s))

    # --- publishing -----------------------------------------------------------------------------

    def publish(
        self,
        topic: str,
        value: Text | None,
        *,
        key: Text | None = None,
        headers: HeadersLike | None = None,
        partition: int | None = None,
        mode: DeliveryMode | None = None,
        timestamp: Moment | None = None,
        expires_at: Moment | None = None,
        deliver_at: Moment | None = None,
        delay: float | timedelta | None = None,
    ) -> Receipt:
        """Publish a record and return its receipt once it is acknowledged."""
        return self._thread.call(
            self._client.publish(
                topic,
                value,
                key=key,
                headers=headers,
                partition=partition,
                mode=mode,
                timestamp=timestamp,
                expires_at=expires_at,
                deliver_at=deliver_at,
                delay=delay,
            )
        )

    def publish_nowait(
        self,
        topic: str,
        value: Text | None,
        *,
        key: Text | None = None,
        headers: HeadersLike | None = None,
        partition: int | None = None,
        mode: DeliveryMode | None = None,
        timestamp: Moment | None = None,
        expires_at: Moment | None = None,
        deliver_at: Moment | None = None,
        delay: float | timedelta | None = None,
    ) -> None:
        """Publish a record in the background; `flush` waits for it and raises what failed.

        Raises `LimitExceeded` (`buffered_bytes_max`) if too much is on its way already.
        """
        record = outgoing(
            value,
            key=key,
            headers=headers,
            partition=partition,
            mode=mode,
            timestamp=timestamp,
            expires_at=expires_at,
            deliver_at=deliver_at,
            delay=delay,
        )
        bytes_max = self._client.settings.buffered_bytes_max
        with self._lock:
            if self._outbox_bytes + self._client.buffered_bytes >= bytes_max:
                raise LimitExceeded("buffered_bytes_max", f"{bytes_max} bytes wait already")
            is_first = not self._outbox
            self._outbox.append((topic, record))
            self._outbox_bytes += record.size
        if is_first:
            # One call for all that gather until the other thread comes round to it.
            self._thread.soon(self._empty_outbox)

    def publish_batch(
        self,
        topic: str,
        values: Sequence[Buffer | None],
        *,
        keys: Sequence[Buffer | None] | None = None,
        headers: Sequence[HeadersOf | None] | None = None,
        partition: int | None = None,
        mode: DeliveryMode | None = None,
        timestamps: int | Sequence[int] | None = None,
        expires_at: int | Sequence[int] | None = None,
        deliver_at: int | Sequence[int] | None = None,
    ) -> tuple[Ack, ...]:
        """Publish many records at once: the fast way."""
        return self._thread.call(
            self._client.publish_batch(
                topic,
                values,
                keys=keys,
                headers=headers,
                partition=partition,
                mode=mode,
                timestamps=timestamps,
                expires_at=expires_at,
                deliver_at=deliver_at,
            )
        )

    def flush(self) -> None:
        """Wait until everything published so far is answered; raise what failed unheard."""
        self._thread.call(self._flush())

    @property
    def lost_records(self) -> int:
        """Records acknowledged in EVENTUAL mode that turned out to be lost."""
        return self._client.lost_records

    # --- reading --------------------------------------------------------------------------------

    def subscribe(
        self, *topics: str | Sequence[str], start: StartLike = "live"
    ) -> SyncSubscription:
        """Return the records of topics or patterns, as they come; being read from now on."""
        return SyncSubscription(self._thread, self._thread.call(self._subscribe(topics, start)))

    def fetch(
        self,
        topic: str,
        partition: int = 0,
        offset: int = 0,
        *,
        records_max: int | None = None,
        bytes_max: int | None = None,
        wait_s: float = 0.0,
        fresh: bool = False,
    ) -> list[Record]:
        """Return records from `offset` on; none at the end."""
        batches = self.fetch_batches(
            topic, partition, offset, bytes_max=bytes_max, wait_s=wait_s, fresh=fresh
        )
        records = [record for batch in batches for record in batch]
        return records if records_max is None else records[:records_max]

    def fetch_batches(
        self,
        topic: str,
        partition: int = 0,
        offset: int = 0,
        *,
        bytes_max: int | None = None,
        wait_s: float = 0.0,
        fresh: bool = False,
    ) -> FetchedBatches:
        """Return the same as `fetch`, in the batches in which it is stored, and where to go on."""
        return self._thread.call(
            self._client.fetch_batches(
                topic, partition, offset, bytes_max=bytes_max, wait_s=wait_s, fresh=fresh
            )
        )

    def fetch_one(self, topic: str, partition: int, offset: int, *, fresh: bool = False) -> Record:
        """Return the record at exactly `offset`; `Expired`, `OffsetOutOfRange` or `NotFound`."""
        return self._thread.call(self._client.fetch_one(topic, partition, offset, fresh=fresh))

    def read(self, topic: str, *, start: StartLike = "earliest") -> Iterator[Record]:
        """Yield everything a topic holds at this moment, one partition after the other."""
        for batch in self.read_batches(topic, start=start):
            yield from batch

    def read_batches(self, topic: str, *, start: StartLike = "earliest") -> Iterator[ReceivedBatch]:
        """Yield the same as `read`, in the batches in which it is stored."""
        batches = self._thread.call(self._read(topic, start))
        while (batch := self._thread.call(_next(batches))) is not None:
            yield batch

    def find_offset(self, topic: str, partition: int, start: StartLike) -> Offset:
        """Return the offset that `start` stands for."""
        return self._thread.call(self._client.find_offset(topic, partition, start))

    # --- administration -------------------------------------------------------------------------

    def create_topic(
        self, name: str, *, partitions: int = 1, config: TopicConfig | None = None
    ) -> TopicInfo:
        """Make a topic; `AlreadyExists` if there is one of that name with other settings."""
        return self._thread.call(
            self._client.create_topic(name, partitions=partitions, config=config)
        )

    def alter_topic(
        self, name: str, *, partitions: int | None = None, config: TopicConfig | None = None
    ) -> TopicInfo:
        """Give a topic more partitions or other settings."""
        return self._thread.call(
            self._client.alter_topic(name, partitions=partitions, config=config)
        )

    def delete_topic(self, name: str) -> None:
        """Remove a topic with everything in it."""
        self._thread.call(self._client.delete_topic(name))

    def list_topics(self) -> tuple[TopicInfo, ...]:
        """Return all topics, by name."""
        return self._thread.call(self._client.list_topics())

    def describe_topic(self, name: str) -> TopicInfo:
        """Return one topic; `NotFound`."""
        return self._thread.call(self._client.describe_topic(name))

    def cluster_status(self) -> ClusterStatus:
        """Return the cluster, as one of its nodes sees it."""
        return self._thread.call(self._client.cluster_status())

    def drain_node(self, node: NodeId, *, draining: bool = True) -> None:
        """Move everything away from a node, or let it have replicas again."""
        self._thread.call(self._client.drain_node(node, draining=draining))

    def remove_node(self, node: NodeId) -> None:
        """Forget a node that holds nothing any more."""
        self._thread.call(self._client.remove_node(node))

    def transfer_leader(self, topic: str, partition: int, to: NodeId) -> None:
        """Ask a partition's leader to hand over."""
        self._thread.call(self._client.transfer_leader(topic, partition, to))

    def raise_level(self, level: int | None = None) -> int:
        """Let the cluster work at a higher feature level, the end of an upgrade."""
        return self._thread.call(self._client.raise_level(level))

    # --- inside ---------------------------------------------------------------------------------

    @property
    def _keeper(self) -> Keeper:
        return self._consuming

    # --- in the other thread ----------------------------------------------------------------------

    def _empty_outbox(self) -> None:
        with self._lock:
            records, self._outbox = self._outbox, deque()
            self._outbox_bytes = 0
        for topic, record in records:
            self._client.take_unattended(topic, record)

    async def _flush(self) -> None:
        self._empty_outbox()
        await self._client.flush()

    async def _close(self) -> None:
        self._empty_outbox()
        await self._client.close()

    async def _subscribe(
        self, topics: tuple[str | Sequence[str], ...], start: StartLike
    ) -> Subscription:
        subscription = self._client.subscribe(*topics, start=start)
        await subscription.begin()
        return subscription

    async def _read(self, topic: str, start: StartLike) -> AsyncIterator[ReceivedBatch]:
        return self._client.read_batches(topic, start=start)


class SyncSubscription:
    """Records of one or more topics, as they come; see `Subscription`."""

    def __init__(self, thread: LoopThread, subscription: Subscription) -> None:
        self._thread = thread
        self._subscription = subscription
        self._records: Iterator[Record] = iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Record]:
        while True:
            # Whoever leaves a loop and comes back goes on with the next record.
            yield from self._records
            batch = self.next_batch()
            if batch is None:
                return
            self._records = iter(batch)

    def next_batch(self) -> ReceivedBatch | None:
        """Return the next batch, waiting for one; None once the subscription is closed."""
        return self._thread.call(self._subscription.next_batch())

    def batches(self) -> Iterator[ReceivedBatch]:
        """Yield batches as they are stored: the fast way to read."""
        while (batch := self.next_batch()) is not None:
            yield batch

    def arrow(self) -> Iterator[Any]:
        """Yield each batch as a `pyarrow.RecordBatch`; needs the extra `angarium[arrow]`."""
        return (batch.to_arrow() for batch in self.batches())

    def add(self, *topics: str, start: StartLike = "live") -> None:
        """Deliver further topics or patterns, too."""
        self._thread.call(self._subscription.add(*topics, start=start))

    def drop(self, *topics: str) -> None:
        """Deliver topics or patterns no longer."""
        self._thread.call(self._subscription.drop(*topics))

    def close(self) -> None:
        """End it."""
        self._thread.call(self._subscription.close())


async def _next(batches: AsyncIterator[ReceivedBatch]) -> ReceivedBatch | None:
    return await anext(batches, None)
