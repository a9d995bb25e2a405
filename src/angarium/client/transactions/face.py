"""What a client offers of transactions and of producers that count themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Unpack

from angarium.client.publishing.columns import Table
from angarium.client.publishing.fields import RecordColumns, RecordFields, spelled_out
from angarium.client.publishing.outgoing import outgoing
from angarium.client.transactions.sequenced import Sequenced
from angarium.client.transactions.series import OpenSeries, forget_sequenced, open_series
from angarium.client.transactions.staged import StagedWrite
from angarium.client.transactions.transaction import Transaction
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Ack
    from angarium.api.transactions import Series
    from angarium.client.publishing.outgoing import Text
    from angarium.client.publishing.receipts import Receipt
    from angarium.client.reach import Reach


class TransactionBook:
    """What one open client remembers of the series it writes."""

    def __init__(self) -> None:
        self.series: dict[str, OpenSeries] = {}
        self.sequenced: dict[str, Sequenced] = {}

    async def close(self) -> None:
        """Stop asking on behalf of any of them."""
        for one in self.sequenced.values():
            await one.close()


class Transactional(ABC):
    """The half of a client that writes exactly once."""

    _producer: str | None

    @property
    @abstractmethod
    def _reach(self) -> Reach: ...

    @property
    @abstractmethod
    def _transactions(self) -> TransactionBook: ...

    def transaction(self, name: str | None = None) -> Transaction:
        """Return a transaction: what is in its block happens together, or not at all.

        It belongs to the series `name`, or to that of the client's `producer`. Transactions of one
        name follow each other; those of different names run side by side. A client that is started
        again under the same name first ends what its earlier run has left undecided.
        """
        chosen = self._named(name)
        book = self._transactions
        series = book.series.get(chosen)
        if series is None:
            series = book.series[chosen] = OpenSeries(chosen)
        return Transaction(self._reach, series)

    async def open_series(self, name: str) -> Series:
        """Take a new epoch of a series whose transactions many processes write.

        A client with an older epoch is fenced; what it left undecided is aborted, and what it had
        decided is carried out. Returns the epoch and the last sequence that was committed.
        """
        return await open_series(self._reach, name)

    def staged(self, name: str, *, epoch: int, sequence: int) -> StagedWrite:
        """Return one transaction of a series, to be staged from anywhere and committed once."""
        return StagedWrite(self._reach, name, epoch=epoch, sequence=sequence)

    @spelled_out(RecordFields)
    async def publish_once(
        self,
        topic: str,
        value: Text | None,
        *,
        sequence: int,
        producer: str | None = None,
        **fields: Unpack[RecordFields],
    ) -> Receipt:
        """Publish a record under a number of your own, unless that has been stored before.

        Numbers of one producer grow from publish to publish in each partition; gaps are fine. One
        that is stored already, by whichever run, is answered with `receipt.ack.duplicate`. Always
        CONSISTENT. A second client of the same name takes over, and this one is fenced.
        """
        record = outgoing(value, **fields)
        return await self._sequenced(producer).publish(topic, record, sequence)

    @spelled_out(RecordColumns)
    async def publish_batch_once(
        self,
        topic: str,
        values: Sequence[Text | None],
        *,
        sequence: int,
        partition: int | None = None,
        producer: str | None = None,
        **columns: Unpack[RecordColumns],
    ) -> tuple[Ack, ...]:
        """Publish many records under one number: each partition stores its share once, whole."""
        table = Table.of(values, **columns)
        sequenced = self._sequenced(producer)
        return await sequenced.publish_table(topic, table, sequence, partition=partition)

    async def last_sequences(
        self, topic: str, *, producer: str | None = None
    ) -> dict[int, int | None]:
        """Return the last number stored in each partition, None where there is none.

        From then on no earlier run of the same producer can store anything any more, so a program
        that was restarted may go on from here.
        """
        return await self._sequenced(producer).last(topic)

    async def forget_producer(self, *topics: str, producer: str | None = None) -> None:
        """Forget the numbers that a producer has stored in `topics`: of a name that never comes
        again, because a partition remembers a bounded number of them.

        A number that was stored may be stored again from then on. Raises `NotFound` if there is no
        such topic, and `TransactionPending` while a publish of the producer is under way.
        """
        name = self._named(producer)
        await forget_sequenced(self._reach, name, topics)
        self._transactions.sequenced.pop(name, None)

    def _sequenced(self, producer: str | None) -> Sequenced:
        name = self._named(producer)
        book = self._transactions
        if name not in book.sequenced:
            book.sequenced[name] = Sequenced(self._reach, name)
        return book.sequenced[name]

    def _named(self, name: str | None) -> str:
        chosen = self._producer if name is None else name
        if not chosen:
            raise InvalidArgument("writing exactly once needs a name: Client(producer=...)")
        return chosen
