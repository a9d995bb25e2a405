"""The client for programs without an event loop: the same calls, each returning when it is done.

A thread in the background runs a `Client`. Any number of threads may share one `SyncClient`; what
they publish at the same time travels together, as it does for tasks.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Self, Unpack

from angarium.client.bridge import Bridged, blocking, leading_to, stepping
from angarium.client.client import Client
from angarium.client.groups.sync import SyncDeadLetters, SyncGroup
from angarium.client.loop_thread import LoopThread
from angarium.client.publishing.fields import RecordFields, spelled_out
from angarium.client.publishing.outgoing import outgoing
from angarium.client.reading.subscription import Subscription
from angarium.client.transactions.sync import SyncStagedWrite, SyncTransaction
from angarium.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

    from angarium.client.bridge import Elsewhere
    from angarium.client.login import SecretText, TokenLike
    from angarium.client.publishing.outgoing import Outgoing, Text
    from angarium.client.publishing.receipts import Loss
    from angarium.client.reading.starts import StartLike
    from angarium.client.records import ReceivedBatch, Record
    from angarium.client.settings import ClientSettings
    from angarium.errors import AngariumError
    from angarium.modes import DeliveryMode


class SyncSubscription(Bridged[Subscription]):
    """Records of one or more topics, as they come; see `Subscription`."""

    def __init__(self, elsewhere: Elsewhere, subscription: Subscription) -> None:
        super().__init__(elsewhere, subscription)
        self._records: Iterator[Record] = iter(())
        elsewhere.call(subscription.begin())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Record]:
        while True:
            # A loop that is left and begun again goes on with the next record.
            yield from self._records
            batch = self.next_batch()
            if batch is None:
                return
            self._records = iter(batch)

    def batches(self) -> Iterator[ReceivedBatch]:
        """Yield batches as they are stored: the fast way to read."""
        while (batch := self.next_batch()) is not None:
            yield batch

    def arrow(self) -> Iterator[Any]:
        """Yield each batch as a `pyarrow.RecordBatch`; needs the extra `angarium[arrow]`."""
        return (batch.to_arrow() for batch in self.batches())

    @property
    def waiting_for(self) -> dict[tuple[str, int], AngariumError]:
        """The partitions that are not read because they have no leader; see `Subscription`."""

        async def look() -> dict[tuple[str, int], AngariumError]:
            return self._there.waiting_for

        return self._elsewhere.call(look())

    next_batch = blocking(Subscription.next_batch)
    add = blocking(Subscription.add)
    drop = blocking(Subscription.drop)
    close = blocking(Subscription.close)


class SyncClient(Bridged[Client]):
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
        user: str | None = None,
        password: SecretText | None = None,
        token: TokenLike | None = None,
        producer: str | None = None,
        on_loss: Callable[[Loss], None] | None = None,
        on_wait: Callable[[AngariumError], None] | None = None,
    ) -> None:
        client = Client(
            *servers,
            settings=settings,
            user=user,
            password=password,
            token=token,
            producer=producer,
            on_loss=on_loss,
            on_wait=on_wait,
        )
        self._thread = LoopThread("angarium-client")
        super().__init__(self._thread, client)
        self._outbox: deque[tuple[str, Outgoing]] = deque()
        self._outbox_bytes = 0
        self._lock = threading.Lock()
        self._is_closed = False

    def __enter__(self) -> Self:
        try:
            self._thread.call(self._there.connect())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Publish what waits, say goodbye, and end the thread."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self._thread.call(self._close())
            finally:
                self._thread.stop()

    is_healthy = blocking(Client.is_healthy)

    # --- publishing -----------------------------------------------------------------------------

    publish = blocking(Client.publish)
    publish_batch = blocking(Client.publish_batch)
    publish_once = blocking(Client.publish_once)
    publish_batch_once = blocking(Client.publish_batch_once)
    last_sequences = blocking(Client.last_sequences)
    forget_producer = blocking(Client.forget_producer)
    transaction = leading_to(SyncTransaction, Client.transaction)
    open_series = blocking(Client.open_series)
    staged = leading_to(SyncStagedWrite, Client.staged)

    @spelled_out(RecordFields)
    def publish_nowait(
        self,
        topic: str,
        value: Text | None,
        *,
        mode: DeliveryMode | None = None,
        delay: float | timedelta | None = None,
        **fields: Unpack[RecordFields],
    ) -> None:
        """Publish a record in the background; `flush` waits for it and raises what failed.

        Raises `LimitExceeded` (`buffered_bytes_max`) if too much is on its way already.
        """
        record = outgoing(value, mode, delay, **fields)
        bytes_max = self._there.settings.buffered_bytes_max
        with self._lock:
            if self._outbox_bytes + self._there.buffered_bytes >= bytes_max:
                raise LimitExceeded("buffered_bytes_max", f"{bytes_max} bytes wait already")
            is_first = not self._outbox
            self._outbox.append((topic, record))
            self._outbox_bytes += record.size
        if is_first:
            # One call for all that gather until the other thread comes round to it.
            self._thread.soon(self._empty_outbox)

    def flush(self) -> None:
        """Wait until everything published so far is answered; raise what failed unheard."""
        self._thread.call(self._flush())

    @property
    def lost_records(self) -> int:
        """Records acknowledged in EVENTUAL mode that turned out to be lost."""
        return self._there.lost_records

    # --- reading --------------------------------------------------------------------------------

    subscribe = leading_to(SyncSubscription, Client.subscribe)
    fetch = blocking(Client.fetch)
    fetch_batches = blocking(Client.fetch_batches)
    fetch_one = blocking(Client.fetch_one)
    read_batches = stepping(Client.read_batches)
    find_offset = blocking(Client.find_offset)

    def read(self, topic: str, *, start: StartLike = "earliest") -> Iterator[Record]:
        """Yield everything a topic holds at this moment, one partition after the other."""
        for batch in self.read_batches(topic, start=start):
            yield from batch

    # --- groups ---------------------------------------------------------------------------------

    group = leading_to(SyncGroup, Client.group)
    dead_letters = leading_to(SyncDeadLetters, Client.dead_letters)
    list_groups = blocking(Client.list_groups)
    describe_group = blocking(Client.describe_group)
    alter_group = blocking(Client.alter_group)
    seek_group = blocking(Client.seek_group)
    pause_group = blocking(Client.pause_group)
    resume_group = blocking(Client.resume_group)
    delete_group = blocking(Client.delete_group)
    report_checkpoints = blocking(Client.report_checkpoints)

    # --- administration -------------------------------------------------------------------------

    create_topic = blocking(Client.create_topic)
    alter_topic = blocking(Client.alter_topic)
    delete_topic = blocking(Client.delete_topic)
    list_topics = blocking(Client.list_topics)
    describe_topic = blocking(Client.describe_topic)
    cluster_status = blocking(Client.cluster_status)
    drain_node = blocking(Client.drain_node)
    remove_node = blocking(Client.remove_node)
    transfer_leader = blocking(Client.transfer_leader)
    raise_level = blocking(Client.raise_level)
    describe_balance = blocking(Client.describe_balance)
    rebalance = blocking(Client.rebalance)
    cancel_rebalance = blocking(Client.cancel_rebalance)
    set_auto_balance = blocking(Client.set_auto_balance)
    describe_recovery = blocking(Client.describe_recovery)
    recover_partition = blocking(Client.recover_partition)
    describe_upgrade = blocking(Client.describe_upgrade)

    # --- for backups ----------------------------------------------------------------------------

    fetch_stored = blocking(Client.fetch_stored)
    read_positions = blocking(Client.read_positions)
    read_accounts = blocking(Client.read_accounts)
    restore_topic = blocking(Client.restore_topic)
    restore_records = blocking(Client.restore_records)
    restore_positions = blocking(Client.restore_positions)
    restore_accounts = blocking(Client.restore_accounts)

    # --- who may do what ------------------------------------------------------------------------

    whoami = blocking(Client.whoami)
    can = blocking(Client.can)
    create_user = blocking(Client.create_user)
    alter_user = blocking(Client.alter_user)
    delete_user = blocking(Client.delete_user)
    describe_user = blocking(Client.describe_user)
    list_users = blocking(Client.list_users)
    create_role = blocking(Client.create_role)
    delete_role = blocking(Client.delete_role)
    list_roles = blocking(Client.list_roles)
    create_grant = blocking(Client.create_grant)
    delete_grant = blocking(Client.delete_grant)
    list_grants = blocking(Client.list_grants)
    create_token = blocking(Client.create_token)
    delete_token = blocking(Client.delete_token)
    list_tokens = blocking(Client.list_tokens)
    set_quota = blocking(Client.set_quota)
    delete_quota = blocking(Client.delete_quota)
    describe_quota = blocking(Client.describe_quota)
    list_quotas = blocking(Client.list_quotas)
    create_join_token = blocking(Client.create_join_token)
    delete_join_token = blocking(Client.delete_join_token)
    list_join_tokens = blocking(Client.list_join_tokens)

    # --- in the other thread ----------------------------------------------------------------------

    def _empty_outbox(self) -> None:
        with self._lock:
            records, self._outbox = self._outbox, deque()
            self._outbox_bytes = 0
        for topic, record in records:
            self._there.take_unattended(topic, record)

    async def _flush(self) -> None:
        self._empty_outbox()
        await self._there.flush()

    async def _close(self) -> None:
        self._empty_outbox()
        await self._there.close()
