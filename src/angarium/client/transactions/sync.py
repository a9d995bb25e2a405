"""The same without asyncio: each call is carried out in the client's own thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from angarium.api import Ack
    from angarium.api.transactions import Aborted, Committed, Series
    from angarium.client.client import Client
    from angarium.client.loop_thread import LoopThread
    from angarium.client.publishing.receipts import Receipt
    from angarium.client.transactions.staged import Stage, StagedWrite, Ticket
    from angarium.client.transactions.transaction import OnLoan, Transaction
    from angarium.ids import Buffer


class SyncTransactional:
    """The half of a `SyncClient` that writes exactly once; see `Transactional`."""

    _client: Client
    _thread: LoopThread

    def transaction(self, name: str | None = None) -> SyncTransaction:
        """Return a transaction, to be used with `with`."""
        return SyncTransaction(self._thread, self._thread.call(self._new_transaction(name)))

    def open_series(self, name: str) -> Series:
        """Take a new epoch of a series whose transactions many processes write."""
        return self._thread.call(self._client.open_series(name))

    def staged(self, name: str, *, epoch: int, sequence: int) -> SyncStagedWrite:
        """Return one transaction of a series, to be staged from anywhere and committed once."""
        write = self._thread.call(self._new_write(name, epoch, sequence))
        return SyncStagedWrite(self._thread, write)

    def publish_once(
        self, topic: str, value: Buffer | str | None, *, sequence: int, **fields: Any
    ) -> Receipt:
        """Publish a record under a number of your own, unless that has been stored before."""
        work = self._client.publish_once(topic, value, sequence=sequence, **fields)
        return self._thread.call(work)

    def publish_batch_once(
        self, topic: str, values: Sequence[Buffer | None], *, sequence: int, **columns: Any
    ) -> tuple[Ack, ...]:
        """Publish many records under one number."""
        work = self._client.publish_batch_once(topic, values, sequence=sequence, **columns)
        return self._thread.call(work)

    def last_sequences(self, topic: str, *, producer: str | None = None) -> dict[int, int | None]:
        """Return the last number stored in each partition, None where there is none."""
        return self._thread.call(self._client.last_sequences(topic, producer=producer))

    def forget_producer(self, *topics: str, producer: str | None = None) -> None:
        """Forget the numbers that a producer has stored in `topics`."""
        self._thread.call(self._client.forget_producer(*topics, producer=producer))

    # A client belongs to the event loop in which it is first used, so even what does not wait is
    # made there.

    async def _new_transaction(self, name: str | None) -> Transaction:
        return self._client.transaction(name)

    async def _new_write(self, name: str, epoch: int, sequence: int) -> StagedWrite:
        return self._client.staged(name, epoch=epoch, sequence=sequence)


class SyncTransaction:
    """Publishes and acknowledges together; see `Transaction`."""

    def __init__(self, thread: LoopThread, transaction: Transaction) -> None:
        self._thread = thread
        self._transaction = transaction

    @property
    def committed(self) -> Committed | None:
        """Where its records are, once it is committed."""
        return self._transaction.committed

    def __enter__(self) -> Self:
        self._thread.call(self._transaction.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.call(self._transaction.__aexit__(kind, error, trace))

    def publish(self, topic: str, value: Buffer | str | None, **fields: Any) -> None:
        """Publish a record if the transaction commits."""
        self._thread.call(self._transaction.publish(topic, value, **fields))

    def publish_batch(self, topic: str, values: Sequence[Buffer | None], **columns: Any) -> None:
        """Publish many records at once if the transaction commits."""
        self._thread.call(self._transaction.publish_batch(topic, values, **columns))

    def ack(self, *records: OnLoan) -> None:
        """Acknowledge records of a consumer group if the transaction commits."""
        self._transaction.ack(*records)

    def commit(self) -> Committed:
        """Commit now; leaving the block does so otherwise."""
        return self._thread.call(self._transaction.commit())

    def abort(self) -> None:
        """Drop everything."""
        self._thread.call(self._transaction.abort())


class SyncStagedWrite:
    """One transaction of a series; see `StagedWrite`."""

    def __init__(self, thread: LoopThread, write: StagedWrite) -> None:
        self._thread = thread
        self._write = write

    def stage(self, name: str) -> SyncStage:
        """Return a stage to fill."""
        return SyncStage(self._thread, self._write.stage(name))

    def commit(self, tickets: Iterable[Ticket]) -> Committed:
        """Publish what the tickets stand for, and drop everything else."""
        return self._thread.call(self._write.commit(tickets))

    def abort(self, tickets: Iterable[Ticket] = ()) -> Aborted:
        """Drop everything, unless it was committed."""
        return self._thread.call(self._write.abort(tickets))

    def forget(self, *topics: str) -> None:
        """Forget the whole series."""
        self._thread.call(self._write.forget(*topics))


class SyncStage:
    """One attempt's share; see `Stage`."""

    def __init__(self, thread: LoopThread, stage: Stage) -> None:
        self._thread = thread
        self._stage = stage

    @property
    def ticket(self) -> Ticket:
        """What to commit; there once the stage is closed."""
        return self._stage.ticket

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.call(self._stage.__aexit__(kind, error, trace))

    def close(self) -> Ticket:
        """Stage everything and return the ticket."""
        return self._thread.call(self._stage.close())

    def publish(self, topic: str, value: Buffer | str | None, **fields: Any) -> None:
        """Add a record."""
        self._thread.call(self._stage.publish(topic, value, **fields))

    def publish_batch(self, topic: str, values: Sequence[Buffer | None], **columns: Any) -> None:
        """Add many records at once."""
        self._thread.call(self._stage.publish_batch(topic, values, **columns))

    def put_batch(self, topic: str, partition: int, batch: Buffer) -> None:
        """Add a batch built by `angarium.batch` for one partition."""
        self._thread.call(self._stage.put_batch(topic, partition, batch))
