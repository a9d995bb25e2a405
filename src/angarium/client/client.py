"""The asynchronous client: one object for a whole cluster, shared by all tasks of a program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from angarium.client.access import AccessAdministration
from angarium.client.addresses import bootstrap_addresses
from angarium.client.administration import Administration
from angarium.client.backups import BackupAdministration
from angarium.client.balance import BalanceAdministration
from angarium.client.dead_letters import DEAD_LETTERS, DeadLetters
from angarium.client.groups.administration import GroupAdministration
from angarium.client.groups.group import Group, GroupChoices
from angarium.client.groups.keeper import Keeper
from angarium.client.local_access import local_access
from angarium.client.login import Login
from angarium.client.opened import Opened
from angarium.client.publishing.columns import Table
from angarium.client.publishing.fields import RecordColumns, RecordFields, spelled_out
from angarium.client.publishing.outgoing import outgoing
from angarium.client.quotas import QuotaAdministration
from angarium.client.reach import Reach
from angarium.client.reading.bounds import offsets_known, staleness_ms_of
from angarium.client.reading.face import Reading
from angarium.client.reading.subscription import Subscription
from angarium.client.recovery import RecoveryAdministration
from angarium.client.settings import ClientSettings
from angarium.client.transactions.face import Transactional
from angarium.client.upgrades import UpgradeAdministration
from angarium.closing import Closings
from angarium.errors import AngariumError
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from angarium.api import Ack, GroupConfig
    from angarium.client.groups.group import KindLike
    from angarium.client.login import SecretText, TokenLike
    from angarium.client.publishing.outgoing import Outgoing, Text
    from angarium.client.publishing.publisher import Publisher
    from angarium.client.publishing.receipts import Loss, Receipt
    from angarium.client.reading.starts import StartLike
    from angarium.client.transactions.face import TransactionBook
    from angarium.modes import DeliveryMode


class Client(
    Administration,
    AccessAdministration,
    QuotaAdministration,
    BackupAdministration,
    BalanceAdministration,
    RecoveryAdministration,
    UpgradeAdministration,
    GroupAdministration,
    Reading,
    Transactional,
):
    """Publishes, subscribes, fetches and administers.

        async with Client("127.0.0.1:7400") as client:
            receipt = await client.publish("greetings", b"hello")

    Addresses are those of any nodes of the cluster; it finds the others. Without any, those in the
    environment variable ANGARIUM_SERVERS are used, or 127.0.0.1:7400.

    Where a cluster wants to know who asks, `user` and `password`, or `token`, say it; without any
    of them ANGARIUM_TOKEN, or ANGARIUM_USER and ANGARIUM_PASSWORD. A token may be a function that
    returns a fresh one, which is called for each connection. `login` is one that was made before,
    and then nothing of the environment counts. If nothing at all is said about TLS, the cluster
    that `angarium up --secure` runs in this folder is spoken to as that has written down.

    `producer` gives it a name under which its records are stored once even across restarts of the
    program; a second client of the same name takes over, and the first one fails with
    `ProducerFenced`. `on_loss` is called with records acknowledged in EVENTUAL mode that turned out
    to be lost. `on_wait` is called with the reason when something was tried in vain for two seconds
    and is tried on, maybe in another thread; without it the log has a warning.

    It belongs to the event loop in which it is first used.
    """

    def __init__(
        self,
        *servers: str,
        settings: ClientSettings | None = None,
        user: str | None = None,
        password: SecretText | None = None,
        token: TokenLike | None = None,
        login: Login | None = None,
        producer: str | None = None,
        on_loss: Callable[[Loss], None] | None = None,
        on_wait: Callable[[AngariumError], None] | None = None,
    ) -> None:
        self.settings = settings or ClientSettings()
        self._bootstrap = bootstrap_addresses(servers)
        self._login = login or Login.of(user=user, password=password, token=token)
        local = local_access(self._bootstrap) if self.settings.tls is None else None
        if local is not None:
            self.settings = replace(self.settings, tls=local.tls)
            if login is None and self._login.is_empty:
                self._login = local.login.login()
        self._producer = producer
        self._on_loss = on_loss
        self._on_wait = on_wait
        self._open: Opened | None = None
        self._is_closed = False
        self._closings = Closings(seconds_max=None)

    # --- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Client:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def connect(self) -> None:
        """Reach the cluster; raises `Unreachable` if no node answers. Other calls do it, too."""
        await self._reach.metadata.status()

    async def close(self) -> None:
        """Publish what waits, for as long as the settings allow, and say goodbye.

        What could not be published fails where it is waited for; records of `publish_nowait` that
        failed are reported in the log, because nobody is left to be told. Call `flush` to hear.
        """
        self._is_closed = True
        opened, self._open = self._open, None
        if opened is not None:
            await self._closings.see_to(opened.close())

    async def is_healthy(self, *, timeout_s: float = 1.0) -> bool:
        """Tell whether the cluster answers and has somebody who leads it."""
        try:
            status = await self._reach.metadata.status(timeout_s=timeout_s)
        except AngariumError:
            return False
        return status.catalog_leader is not None

    # --- publishing -----------------------------------------------------------------------------

    @spelled_out(RecordFields)
    async def publish(
        self,
        topic: str,
        value: Text | None,
        *,
        mode: DeliveryMode | None = None,
        delay: float | timedelta | None = None,
        **fields: Unpack[RecordFields],
    ) -> Receipt:
        """Publish a record and return its receipt once it is acknowledged as `mode` says.

        Calls that overlap travel together. Records with the same key go to the same partition, in
        the order of the calls; others are spread. It waits while too much is on its way already,
        and repeats by itself what can be repeated. A cancelled call may still be stored.

        `deliver_at`, or `delay` in seconds, keeps it from queue and key groups until then; other
        readers see it at once. After `expires_at` nobody does.

        Raises `OutcomeUnknown` if the time was up before anybody could say whether it is stored;
        every other error means that it is not.
        """
        record = outgoing(value, mode, delay, **fields)
        return await self._publisher.publish(topic, record)

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
        self._publisher.publish_nowait(topic, record)

    def take_unattended(self, topic: str, record: Outgoing) -> None:
        """Publish a record whose room another thread has looked at; failures are for `flush`."""
        publisher = self._publisher
        try:
            publisher.publish_nowait(topic, record, may_overdraw=True)
        except Exception as error:
            publisher.sending.note_failure(error, 1)

    @spelled_out(RecordColumns)
    async def publish_batch(
        self,
        topic: str,
        values: Sequence[Text | None],
        *,
        partition: int | None = None,
        mode: DeliveryMode | None = None,
        **columns: Unpack[RecordColumns],
    ) -> tuple[Ack, ...]:
        """Publish many records at once: the fast way.

        Each argument is a column, one entry per record; a time may be one for all. Returns an
        acknowledgement for each batch the records were packed into. If a batch fails its error is
        raised once all are answered, with a note of how many failed.
        """
        table = Table.of(values, **columns)
        return await self._publisher.publish_table(topic, table, partition=partition, mode=mode)

    async def flush(self) -> None:
        """Wait until everything published so far is answered.

        Raises the first error of records that nobody waited for, with a note of how many failed.
        """
        await self._publisher.flush()

    @property
    def buffered_bytes(self) -> int:
        """Bytes published and not answered yet."""
        return 0 if self._open is None else self._open.publisher.sending.room.used

    @property
    def lost_records(self) -> int:
        """Records acknowledged in EVENTUAL mode that turned out to be lost."""
        return 0 if self._open is None else self._open.publisher.sending.lost_records

    # --- subscribing ----------------------------------------------------------------------------

    def subscribe(
        self,
        *topics: str | Sequence[str],
        start: StartLike = "live",
        max_staleness: float | timedelta | None = None,
        at_least: Receipt | Sequence[Receipt] | None = None,
    ) -> Subscription:
        """Return the records of topics, or of all topics that fit a pattern (`orders.*`).

        `start` is "live" or "latest" (what comes from now on), "earliest", an offset, a datetime,
        or a mapping of partitions to offsets.

        A client with a region reads from the nearest replicas. With `max_staleness`, in seconds,
        one that is not known to be as new as that is left for the leader; while nobody is, nothing
        is delivered. `at_least` are receipts of publishes: up to those, what the nearest replica
        does not have yet comes from the leader, at once.

            async with client.subscribe("orders.*", start="earliest") as records:
                async for record in records:
                    print(record.topic, record.offset, record.value)
        """
        names = [
            name for topic in topics for name in ([topic] if isinstance(topic, str) else topic)
        ]
        opened = self._opened
        subscription = Subscription(
            opened.reach,
            names,
            start,
            on_closed=opened.subscriptions.discard,
            max_staleness_ms=staleness_ms_of(max_staleness),
            at_least=offsets_known(at_least),
        )
        opened.subscriptions.add(subscription)
        return subscription

    # --- groups ---------------------------------------------------------------------------------

    def group(
        self,
        name: str,
        *,
        kind: KindLike | None = None,
        start: StartLike = "earliest",
        config: GroupConfig | None = None,
    ) -> Group:
        """Return a consumer group, to take part in it or to look after it.

            async for record in client.group("workers").consume("orders"):
                ...
                await record.ack()

        `kind` is "queue" (any consumer, each record on its own), "key" (the same, but records of
        one key in order) or "stream" (one consumer per partition, in order); None: as the group is,
        or a queue if it is new. `start` is where a new group begins, and `config` what it is made
        with; one that exists keeps its own.
        """
        choices = GroupChoices(name, kind=kind, start=start, config=config)
        return Group(self, self._keeper, choices)

    def dead_letters(self, topic: str = DEAD_LETTERS) -> DeadLetters:
        """Return the records that groups gave up into `topic`, to look at and to send back."""
        return DeadLetters(self, lambda: self._reach, topic)

    # --- inside ---------------------------------------------------------------------------------

    def _keeper(self) -> Keeper:
        opened = self._opened
        if opened.keeper is None:
            opened.keeper = Keeper(
                self._bootstrap, self.settings, login=self._login, on_wait=self._on_wait
            )
        return opened.keeper

    @property
    def _opened(self) -> Opened:
        if self._is_closed:
            raise Unreachable("the client is closed")
        if self._open is None:
            reach = Reach(self._bootstrap, self.settings, login=self._login, on_wait=self._on_wait)
            self._open = Opened(reach, producer=self._producer, on_loss=self._on_loss)
        return self._open

    @property
    def _reach(self) -> Reach:
        return self._opened.reach

    @property
    def _publisher(self) -> Publisher:
        return self._opened.publisher

    @property
    def _transactions(self) -> TransactionBook:
        return self._opened.transactions
